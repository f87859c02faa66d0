"""The result of testing a sign-in provider."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.identities import ForeignPerson
from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, Details
from gatehouse.audit.recorder import Recorder
from gatehouse.providers.model import ProviderProblem
from gatehouse.providers.sign_in import ProviderSignIn, TakenRequest
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.http.browser import Browser, is_full_session
from gatehouse.web.http.context import origin_of
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.sign_in_flow import SignInFlowPages

MAX_CLAIMS_SHOWN: Final = 100
MAX_CLAIM_LENGTH: Final = 300  # characters
SETTINGS_PATH: Final = ConsoleEntry.SETTINGS.path


class ProviderTestContext(PageContext, frozen=True, kw_only=True):
    template = "provider_test.html"

    provider: str  # its name
    back: str  # the page of its settings
    problem: str = ""  # why it proved no one
    taken: Sequence[tuple[str, str]] = ()  # what this service would use; the texts are `provider_test.<name>`
    claims: Sequence[tuple[str, str]] = ()  # as they were received


class ProviderTests(Struct, kw_only=True, eq=False):
    """A sign-in that only shows what the provider says: no account is made, and nothing of it is stored."""

    providers: ProviderSignIn
    pages: PageRenderer
    flow_pages: SignInFlowPages
    recorder: Recorder
    add_record: Callable[[AuditRecord], Awaitable[None]]
    is_administrator: Callable[[User], Awaitable[bool]]

    async def show_result(
        self, request: Request, browser: Browser, taken: TakenRequest, answer: Mapping[str, str]
    ) -> Response:
        """Show it in the session that began the test, to a person who still administers."""
        signed_in, provider = browser.signed_in, taken.provider
        if not is_full_session(signed_in) or signed_in.session.session_id != taken.tested_in:
            return self.flow_pages.show_expired(request, "")
        if not await self.is_administrator(signed_in.user):
            return self.flow_pages.show_expired(request, "")
        context = ProviderTestContext(
            provider=provider.name, back=f"{SETTINGS_PATH}/change?part=providers.{provider.provider_id}"
        )
        try:
            person = await self.providers.fetch_person(taken, answer)
            context = replace(context, taken=person_lines(person), claims=claim_lines(person))
        except ProviderProblem as error:
            context = replace(context, problem=str(error))
        details: Details = {"provider": provider.provider_id, "is_ok": not context.problem}
        origin = origin_of(request, signed_in.user.user_id)
        subject = f"provider {provider.provider_id}"
        await self.add_record(
            self.recorder.record(AuditEvent.PROVIDER_TESTED, origin, subject=subject, details=details)
        )
        return self.pages.render(request, context, account_lang=signed_in.user.lang)


def person_lines(person: ForeignPerson) -> list[tuple[str, str]]:
    lines = [("issuer", person.issuer), ("subject", person.subject), ("email", person.email)]
    lines += [("email_verified", person.email if person.email_verified else "")]
    lines += [("name", person.name), ("nick", person.nick)]
    return lines


def claim_lines(person: ForeignPerson) -> list[tuple[str, str]]:
    shown = sorted(person.claims.items())[:MAX_CLAIMS_SHOWN]
    return [(name[:MAX_CLAIM_LENGTH], json.dumps(value)[:MAX_CLAIM_LENGTH]) for name, value in shown]
