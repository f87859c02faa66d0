"""The account page: all that its owner may see of the account, on one page."""

from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import Session
from gatehouse.accounts.own import activity
from gatehouse.accounts.own.model import AccountActivity, AccountDetails
from gatehouse.accounts.own.profile import AccountProfile
from gatehouse.accounts.second_factors.model import Passkey
from gatehouse.admin.own_permissions import OwnPermissionsLoader
from gatehouse.kernel.addresses import Address
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.consent import Consents
from gatehouse.personal_data.requests import DataRequests
from gatehouse.web.agents import device_name
from gatehouse.web.middleware.client_address import caller_address_of
from gatehouse.web.pages import account_contexts as shown
from gatehouse.web.pages.account_applications import connected_applications
from gatehouse.web.pages.account_contexts import AccountContext
from gatehouse.web.pages.notices import NoticeCookie
from gatehouse.web.pages.owner_desk import AccountRequest, AccountView
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.vocabulary import NOTICE_SECTIONS, AccountSection, Notice, PageProblem
from gatehouse.web.places import GeoIpLookup
from gatehouse.web.routes.table import Endpoint

# Whether the console has anything for somebody who comes from there.
MayAdminister = Callable[[str, Address | None], Awaitable[bool]]


class AccountPage:
    def __init__(
        self,
        *,
        profile: AccountProfile,
        data: DataRequests,
        consents: Consents,
        permissions: OwnPermissionsLoader,
        view: AccountView,
        pages: PageRenderer,
        notices: NoticeCookie,
        places: GeoIpLookup,
        may_administer: MayAdminister,
        clock: Clock,
        mail_is_logged: bool,
    ) -> None:
        self._may_administer = may_administer
        self._profile = profile
        self._data = data
        self._consents = consents
        self._permissions = permissions
        self._view = view
        self._pages = pages
        self._notices = notices
        self._places = places
        self._clock = clock
        self._mail_is_logged = mail_is_logged

    async def show(self, request: Request, account: AccountRequest) -> Response:
        notice = self._notices.read(request)
        page = self._view.show(request, await self._context(request, account, notice=notice))
        return page if notice is None else self._notices.clear(page)

    async def show_problem(
        self,
        request: Request,
        account: AccountRequest,
        section: AccountSection,
        problem: PageProblem,
        *,
        status: int,
        typed: str = "",
    ) -> Response:
        """The page again, with what was wrong where it was wrong."""
        context = await self._context(request, account, problem=problem, at=section, typed=typed)
        answer = self._view.show(request, context, status=status)
        if problem.seconds:
            answer.headers["Retry-After"] = str(problem.seconds)
        return answer

    async def _context(
        self,
        request: Request,
        account: AccountRequest,
        *,
        problem: PageProblem | None = None,
        at: AccountSection | None = None,
        typed: str = "",
        notice: Notice | None = None,
    ) -> AccountContext:
        user = account.user
        held = await self._profile.load_details(user)
        data = await self._data.export_status(user.user_id)
        lang = self._pages.language_of(request)
        caller = caller_address_of(request.scope)
        address = caller.address if caller.proven else None  # an address that nobody proved is none
        return AccountContext(
            may_administer=await self._may_administer(user.user_id, address),
            csrf=self._view.csrf_token(account),
            now=self._clock.now(),
            user_id=user.user_id,
            nick=user.nick,
            login=user.login or "",
            email_verified=user.email_verified,
            has_password=user.password_hash is not None,
            pending_login=held.pending_login,
            typed=typed,
            problem=problem,
            problem_at=at,
            notice=notice,
            notice_at=None if notice is None else NOTICE_SECTIONS.get(notice),
            passkeys=passkey_rows(held.passkeys),
            totp_since=held.overview.totp_since,
            email_code=user.email_code,
            recovery_left=held.overview.recovery_left,
            sessions=self._sessions(held, account.session, lang),
            applications=connected_applications(await self._consents.of_user(user.user_id)),
            permissions=await self._permissions.load(user.user_id, address),
            activity=tuple(activity_row(act) for act in activity.activity_of(held.records, user.user_id)),
            lang=lang,
            theme=self._pages.theme_of(request),
            data_in=tuple(shown.DataRequestStatus(name=name, state=state.value) for name, state in data.applications),
            may_ask_for_data=data.may_request,
            mail_is_logged=self._mail_is_logged,
        )

    def _sessions(self, held: AccountDetails, current: Session, lang: str) -> tuple[shown.AccountSessionRow, ...]:
        return tuple(
            shown.AccountSessionRow(
                session_id=session.session_id,
                device=device_name(session.agent),
                place=self._places.place_name(session.address, lang),
                address=session.address,
                created_at=session.created_at,
                seen_at=session.seen_at,
                is_current=session.session_id == current.session_id,
            )
            for session in held.sessions
        )

    def endpoints(self) -> list[Endpoint]:
        return [self._view.page(Path.ACCOUNT, self.show, name="account.show", summary="Show the account page")]


def passkey_rows(held: Sequence[Passkey]) -> tuple[shown.AccountPasskeyRow, ...]:
    return tuple(
        shown.AccountPasskeyRow(
            passkey_id=passkey.passkey_id, name=passkey.name, created_at=passkey.created_at, used_at=passkey.used_at
        )
        for passkey in held
    )


def activity_row(act: AccountActivity) -> shown.AccountActivityRow:
    return shown.AccountActivityRow(at=act.at, event=act.event, address=act.address)
