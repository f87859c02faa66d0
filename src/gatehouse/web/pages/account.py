"""The account page and its connected applications (R3)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.failed_sign_ins.model import FailedSignIn
from gatehouse.accounts.model import OWN_FIELDS, EnabledMethods, Identity, SignInMethod, User
from gatehouse.accounts.own_account.model import AccountActivity, AccountDetails, PastSignIn, may_remove_password
from gatehouse.accounts.own_account.profile import AccountProfile, activity_of
from gatehouse.accounts.phones.verification import PhoneNumbers
from gatehouse.accounts.second_factors.model import Passkey
from gatehouse.accounts.second_factors.phone_codes import PhoneCodes
from gatehouse.accounts.session_model import Session
from gatehouse.admin.names import NamedApplication
from gatehouse.admin.own_permissions import OwnPermissionsLoader
from gatehouse.fields.derive import copy_as, form_rows
from gatehouse.images.model import image_path
from gatehouse.kernel.addresses import Address
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.authorize.service import Consents
from gatehouse.oauth.delegation import without_delegates
from gatehouse.oauth.given_grants import GivenGrants, ListedGrant
from gatehouse.oauth.model import Client, Consent
from gatehouse.personal_data.requests import DataRequests
from gatehouse.providers.model import Provider
from gatehouse.throttle.proof_of_work import Puzzle
from gatehouse.web.http.browser import device_name
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.geoip import GeoIpLookup
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages import account_contexts as shown
from gatehouse.web.pages.account_contexts import AccountContext, ConnectedApplication, GivenGrantRow
from gatehouse.web.pages.account_request import AccountRequest, AccountView, NoticeCookie
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.vocabulary import NOTICE_SECTIONS, AccountSection, Notice, PageProblem


class RevokeApplicationForm(CsrfForm, frozen=True, kw_only=True):
    client_id: str


class EndGrantForm(CsrfForm, frozen=True, kw_only=True):
    grant_id: str


class ConnectedApplicationForms(Struct, kw_only=True, eq=False):
    consents: Consents
    given_grants: GivenGrants
    view: AccountView

    async def revoke(self, request: Request, account: AccountRequest, form: RevokeApplicationForm) -> Response:  # noqa: ARG002
        """Revoke an application's access; one that is gone already looks the same."""
        await self.consents.withdraw(account.user.user_id, form.client_id, account.origin)
        return self.view.redirect_with_notice(Notice.APPLICATION_REVOKED)

    async def end_grant(self, request: Request, account: AccountRequest, form: EndGrantForm) -> Response:  # noqa: ARG002
        """End one sign-in; one that has ended already looks the same."""
        await self.given_grants.end(account.user.user_id, form.grant_id, account.origin)
        return self.view.redirect_with_notice(Notice.GRANT_ENDED)

    def endpoints(self) -> list[Endpoint]:
        return [
            self.view.form(
                Path.GRANT_END,
                EndGrantForm,
                self.end_grant,
                name="account.grant_end",
                summary="End one sign-in to an application",
                fresh=True,
            ),
            self.view.form(
                Path.APPLICATION_REVOKE,
                RevokeApplicationForm,
                self.revoke,
                name="account.application_revoke",
                summary="Withdraw an application's access",
                fresh=True,
            ),
        ]


async def connected_applications(
    consents: Consents, given: Sequence[tuple[Consent, Client]], grants: Sequence[ListedGrant]
) -> tuple[ConnectedApplication, ...]:
    """Return the clients that a person allowed something, each with its live grants."""
    texts = await consents.scope_texts(given)
    rows = [(one.grant.client_id, given_grant_row(one, texts)) for one in grants]
    return tuple(
        connected_application(consent, client, texts, tuple(row for name, row in rows if name == client.client_id))
        for consent, client in given
    )


def connected_application(
    consent: Consent, client: Client, texts: Mapping[str, str], grants: tuple[GivenGrantRow, ...]
) -> ConnectedApplication:
    scopes = without_delegates(consent.scopes)
    return ConnectedApplication(
        client_id=client.client_id,
        name=client.name,
        scopes=consent.scopes,
        shown_scopes=tuple(texts.get(scope, scope) for scope in scopes),
        since=consent.given_at,
        ends_at=consent.ends_at,
        used_at=max((grant.used_at for grant in grants), default=0),
        logo=image_path(client.logo),
        grants=grants,
    )


def given_grant_row(listed: ListedGrant, texts: Mapping[str, str]) -> GivenGrantRow:
    grant = listed.grant
    return GivenGrantRow(
        grant_id=grant.grant_id,
        scopes=grant.scopes,
        shown_scopes=tuple(texts.get(scope, scope) for scope in without_delegates(grant.scopes)),
        resource=listed.resource,
        acting=listed.acting,
        since=grant.given_at,
        used_at=grant.used_at,
        ends_at=grant.ends_at,
    )


# The account page: everything the owner may see of the account.


SIGN_IN_METHODS: Final = frozenset(method.value for method in SignInMethod)
# Whether the console has anything for this request's user.
MayAdminister = Callable[[str, Address | None], Awaitable[bool]]


class AccountPage:
    def __init__(
        self,
        *,
        profile: AccountProfile,
        data: DataRequests,
        consents: Consents,
        given_grants: GivenGrants,
        permissions: OwnPermissionsLoader,
        view: AccountView,
        pages: PageRenderer,
        notices: NoticeCookie,
        places: GeoIpLookup,
        may_administer: MayAdminister,
        providers: Callable[[], Mapping[str, Provider]],
        methods: Callable[[], EnabledMethods],
        passkey_signals: Callable[[User, Sequence[Passkey]], str],
        clock: Clock,
        mail_is_logged: Callable[[], bool],
        phones: PhoneNumbers,
        phone_codes: PhoneCodes,
        phone_puzzle: Callable[[], Awaitable[Puzzle | None]],
    ) -> None:
        self._phones = phones
        self._phone_codes = phone_codes
        self._phone_puzzle = phone_puzzle
        self._may_administer = may_administer
        self._providers = providers
        self._methods = methods
        self._passkey_signals = passkey_signals
        self._profile = profile
        self._data = data
        self._consents = consents
        self._given_grants = given_grants
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
        profile: Mapping[str, str] | None = None,
    ) -> Response:
        """Render the page again, with the error at its form."""
        context = await self._context(request, account, problem=problem, at=section, typed=typed, profile=profile)
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
        profile: Mapping[str, str] | None = None,
        notice: Notice | None = None,
    ) -> AccountContext:
        user = account.user
        details = await self._profile.load_details(user)
        given = await self._consents.of_user(user.user_id)
        data = await self._data.export_status(user.user_id)
        lang = self._pages.language_of(request)
        caller = caller_address_of(request.scope)
        address = caller.address if caller.proven else None  # an unproven address is not recorded
        named = await self._permissions.find_applications(user.user_id, address)
        may_administer = await self._may_administer(user.user_id, address)
        offers_phone = self._phones.policy.is_on
        return AccountContext(
            may_administer=may_administer,
            csrf=self._view.csrf_token(account),
            now=self._clock.now(),
            user_id=user.user_id,
            is_banned=user.is_banned_anywhere(self._clock.now()),
            nick=user.nick,
            picture=image_path(user.picture),
            profile_rows=form_rows(OWN_FIELDS),
            profile={one.name: one.value_of(user) for one in OWN_FIELDS} | dict(profile or {}),
            username=typed if at is AccountSection.PROFILE and profile is None else user.username or "",
            usernames_enabled=self._profile.offers_usernames,
            login=user.login or "",
            email_verified=user.email_verified,
            sections=tuple(
                one for one in AccountSection if one is not AccountSection.PHONE or offers_phone or user.phone
            ),
            phone=user.phone,
            phone_verified=user.phone_verified,
            pending_phone=await self._phones.pending(user) if offers_phone else "",
            phones_enabled=offers_phone,
            phone_puzzle=await self._phone_puzzle() if offers_phone else None,
            has_password=user.password_hash is not None,
            may_remove_password=user.password_hash is not None
            and may_remove_password(
                passkeys=user.passkeys,
                identities=sum(one.provider in self._methods().providers for one in details.identities),
                email_verified=user.email_verified,
            ),
            pending_login=details.pending_login,
            typed=typed,
            problem=problem,
            problem_at=at,
            notice=notice,
            notice_at=None if notice is None else NOTICE_SECTIONS.get(notice),
            passkeys=passkey_rows(details.passkeys),
            passkey_signals=self._passkey_signals(user, details.passkeys),
            identities=tuple(connected_identity(one, self._providers()) for one in details.identities),
            connectable=tuple(
                shown.ConnectableProvider(provider=provider.provider_id, name=provider.name)
                for provider in self._providers().values()
                if provider.has_browser_sign_in
            ),
            totp_since=details.overview.totp_since,
            email_code=user.email_code,
            phone_code=user.phone_code,
            phone_closed=user.phone_closed,
            may_enable_phone_code=await self._phone_codes.may_be_enabled_by(user),
            recovery_left=details.overview.recovery_left,
            sessions=self._sessions(details, account.session, lang),
            sign_ins=sign_in_rows(await self._profile.load_sign_ins(user.user_id), self._places, lang),
            failures=failure_rows(await self._profile.load_failures(user.user_id), self._places, lang),
            applications=await connected_applications(
                self._consents, given, await self._given_grants.of_user(user.user_id)
            ),
            my_applications=await self._my_applications(user, given, named),
            permissions=await self._permissions.load(user.user_id, named, address),
            activity=tuple(activity_row(act) for act in activity_of(details.records, user.user_id)),
            lang=lang,
            theme=self._pages.theme_of(request),
            data_in=tuple(shown.DataRequestStatus(name=name, state=state.value) for name, state in data.applications),
            may_ask_for_data=data.may_request,
            mail_is_logged=may_administer and self._mail_is_logged(),
        )

    async def _my_applications(
        self, user: User, given: Sequence[tuple[Consent, Client]], named: Sequence[NamedApplication]
    ) -> tuple[shown.MyApplicationCard, ...]:
        connected = {client.application_id for _, client in given if client.application_id}
        return tuple(
            copy_as(shown.MyApplicationCard, one, logo=image_path(one.logo))
            for one in await self._permissions.find_own_applications(user, named, connected)
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


def sign_in_rows(
    sign_ins: Sequence[PastSignIn], places: GeoIpLookup, lang: str
) -> tuple[shown.SignInHistoryRow, ...]:
    return tuple(
        shown.SignInHistoryRow(
            at=one.at,
            method=one.auth if one.auth in SIGN_IN_METHODS else "",
            application=one.application,
            device=device_name(one.agent),
            place=places.place_name(one.address, lang),
            address=one.address,
        )
        for one in sign_ins
    )


def failure_rows(failures: Sequence[FailedSignIn], places: GeoIpLookup, lang: str) -> tuple[shown.FailureRow, ...]:
    return tuple(
        shown.FailureRow(
            hour=one.hour,
            reason=one.reason.value,
            network=one.network,
            place=places.place_name(one.network.partition("/")[0], lang),
            times=one.times,
        )
        for one in failures
    )


def passkey_rows(held: Sequence[Passkey]) -> tuple[shown.AccountPasskeyRow, ...]:
    return tuple(
        shown.AccountPasskeyRow(
            passkey_id=passkey.passkey_id, name=passkey.name, created_at=passkey.created_at, used_at=passkey.used_at
        )
        for passkey in held
    )


def connected_identity(identity: Identity, providers: Mapping[str, Provider]) -> shown.ConnectedIdentity:
    provider = providers.get(identity.provider)
    return copy_as(shown.ConnectedIdentity, identity, name=provider.name if provider else identity.provider)


def activity_row(act: AccountActivity) -> shown.AccountActivityRow:
    return shown.AccountActivityRow(at=act.at, event=act.event, address=act.address)
