"""The pages people see: setup, sign-in, registration, their own account."""

from collections.abc import Callable
from functools import cache, partial

from gatehouse.accounts.model import CENTRAL_APPLICATION, FlowReference, User
from gatehouse.admin.access_invitations import AccessInvitations
from gatehouse.app.services import Services
from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.purpose import KIND as GAME
from gatehouse.oauth.device_sign_in import KIND as DEVICE
from gatehouse.oauth.redirects import web_root
from gatehouse.throttle.proof_of_work import PuzzlePurpose
from gatehouse.throttle.quotas import Quota
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.access_invitations import InvitationsPage
from gatehouse.web.pages.account import AccountPage, ConnectedApplicationForms
from gatehouse.web.pages.account_data import PersonalDataForms
from gatehouse.web.pages.account_factors import FactorForms
from gatehouse.web.pages.account_phone import PhoneForms
from gatehouse.web.pages.account_profile import ProfileForms
from gatehouse.web.pages.account_request import AccountView, NoticeCookie
from gatehouse.web.pages.account_sessions import SessionForms
from gatehouse.web.pages.choose_account import ChooseAccountPage
from gatehouse.web.pages.confirm_sign_in import ConfirmSignInPage
from gatehouse.web.pages.consent import ConsentPage
from gatehouse.web.pages.email_sign_in import EmailSignInPages
from gatehouse.web.pages.email_verification import VerifyEmailPage
from gatehouse.web.pages.forms import PublicForms
from gatehouse.web.pages.game import GamePages
from gatehouse.web.pages.home import HomePage, ShortTokenPage
from gatehouse.web.pages.invitation import InvitePage
from gatehouse.web.pages.provider_test import ProviderTests
from gatehouse.web.pages.providers import ProviderPages
from gatehouse.web.pages.reauthentication import ReauthenticationPage
from gatehouse.web.pages.recovery import ForgotPage, ResetPage
from gatehouse.web.pages.registration import RegisterPage
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.resuming import FlowResumption
from gatehouse.web.pages.second_factor import SecondFactorPages
from gatehouse.web.pages.setup import SampleCommands, SetupPage
from gatehouse.web.pages.sign_in import SignInPages
from gatehouse.web.pages.sign_in_flow import SignInCompletion, SignInFlowPages
from gatehouse.web.pages.terms import TermsPage
from gatehouse.web.pages.waiting_registration import WaitingPages


def setup_endpoints(services: Services, pages: PageRenderer, samples: SampleCommands) -> list[Endpoint]:
    return SetupPage(
        setup=services.accounts.setup,
        attempts=services.limits.attempts,
        sessions=services.accounts.sessions,
        devices=services.accounts.device_cookies,
        browsers=services.accounts.browsers,
        pages=pages,
        base_url=services.base_url,
        samples=samples,
    ).endpoints()


def sign_in_completion(services: Services, pages: PageRenderer) -> SignInCompletion:
    return SignInCompletion(
        sessions=services.accounts.sessions,
        devices=services.accounts.device_cookies,
        sign_in_flows=services.sign_in_flows,
        browsers=services.accounts.browsers,
        deny_banned_game=services.games.purpose.deny_banned,
        composer=services.mail.composer,
        pages=pages,
        clock=services.clock,
        failures=services.core.failed_sign_ins,
        notice_quota=Quota(store=services.storage.throttle, clock=services.clock),
        notices_enabled=lambda: services.settings.sessions.new_device_email,
        is_administrator=services.permissions.login_rules.has_protected_role,
    )


def sign_in_pages(
    services: Services, pages: PageRenderer, completion: SignInCompletion, flow_pages: SignInFlowPages
) -> SignInPages:
    return SignInPages(
        sign_in=services.sign_in.passwords,
        accounts=services.storage.accounts,
        passkeys=services.factors.passkeys,
        sessions=services.accounts.sessions,
        completion=completion,
        browsers=services.accounts.browsers,
        pages=pages,
        flow_pages=flow_pages,
        providers=services.sign_in.providers,
        register_enabled=lambda: services.settings.accounts.registration,
        email_enabled=lambda: services.sign_in.emails.is_on,
        usernames_enabled=lambda: services.settings.accounts.username_sign_in,
        base_url=services.base_url,
    )


def sign_in_endpoints(services: Services, pages: PageRenderer) -> list[Endpoint]:
    flows, browsers = services.sign_in_flows, services.accounts.browsers
    flow_pages = SignInFlowPages(sign_in_flows=flows, browsers=browsers, pages=pages)
    completion = sign_in_completion(services, pages)
    sign_in = sign_in_pages(services, pages, completion, flow_pages)
    second_factor = SecondFactorPages(
        accounts=services.storage.accounts,
        factors=services.factors.second_factors,
        email_codes=services.factors.email_codes,
        phone_codes=services.factors.phone_codes,
        passkeys=services.factors.passkeys,
        sign_in_flows=flows,
        completion=completion,
        browsers=browsers,
        flow_pages=flow_pages,
    )
    consent = ConsentPage(
        consents=services.oauth.consents,
        owners=services.oauth.owners,
        purpose=services.oauth.authorize_purpose,
        clients=services.storage.clients,
        sign_in_flows=flows,
        browsers=browsers,
        flow_pages=flow_pages,
    )
    short_token = ShortTokenPage(
        tokens=services.sign_in.short_tokens, sessions=services.accounts.sessions, browsers=browsers, pages=pages
    )
    game = game_pages(services, pages)
    terms = TermsPage(
        terms=services.sign_in.terms,
        sign_in_flows=flows,
        completion=completion,
        browsers=browsers,
        flow_pages=flow_pages,
        pages=pages,
    )
    return [
        HomePage(browsers=browsers, sign_in=sign_in, short_token=short_token, game=game).endpoint(),
        short_token.endpoint(),
        *sign_in.endpoints(),
        *second_factor.endpoints(),
        *ChooseAccountPage(completion=completion, browsers=browsers, flow_pages=flow_pages).endpoints(),
        *terms.endpoints(),
        *consent.endpoints(),
        *confirm_page(services, pages).endpoints(),
        *game.endpoints(),
    ]


def confirm_page(services: Services, pages: PageRenderer) -> ConfirmSignInPage:
    return ConfirmSignInPage(
        purposes={DEVICE: services.oauth.device_purpose, GAME: services.games.purpose},
        sign_in_flows=services.sign_in_flows,
        browsers=services.accounts.browsers,
        pages=pages,
        places=services.geoip,
        clock=services.clock,
        base_url=services.base_url,
    )


def game_pages(services: Services, pages: PageRenderer) -> GamePages:
    return GamePages(
        purpose=services.games.purpose,
        owners=services.oauth.owners,
        reasons=services.oauth.denial_reasons,
        sign_in_flows=services.sign_in_flows,
        browsers=services.accounts.browsers,
        pages=pages,
        rate_limiter=services.limits.requests,
        clock=services.clock,
    )


def email_sign_in_pages(services: Services, pages: PageRenderer, forms: PublicForms) -> EmailSignInPages:
    flow_pages = SignInFlowPages(
        sign_in_flows=services.sign_in_flows, browsers=services.accounts.browsers, pages=pages
    )
    completion = sign_in_completion(services, pages)
    return EmailSignInPages(
        email_sign_in=services.sign_in.emails,
        sign_in=sign_in_pages(services, pages, completion, flow_pages),
        sign_in_flows=services.sign_in_flows,
        completion=completion,
        browsers=services.accounts.browsers,
        pages=pages,
        flow_pages=flow_pages,
        forms=forms,
        offers_passkeys=lambda: services.factors.passkeys.are_supported,
    )


def registration_endpoints(services: Services, pages: PageRenderer) -> list[Endpoint]:
    forms = PublicForms(browsers=services.accounts.browsers, pages=pages, proof_of_work=services.limits.proof_of_work)
    by_email = email_sign_in_pages(services, pages, forms)
    registration, recovery = services.registration.self_registration, services.registration.password_recovery
    flow_pages, completion = by_email.flow_pages, by_email.completion
    resumption = FlowResumption(sign_in_flows=services.sign_in_flows, flow_pages=flow_pages)
    waiting = WaitingPages(
        pending=services.registration.pending,
        proofs=services.registration.email_verification,
        completion=completion,
        resumption=resumption,
        flow_pages=flow_pages,
        forms=forms,
    )
    verify = VerifyEmailPage(
        registration=registration,
        proofs=services.registration.email_verification,
        pending=services.registration.pending,
        waiting=waiting,
        resumption=resumption,
        flow_pages=flow_pages,
        forms=forms,
    )
    return [
        *by_email.endpoints(),
        *RegisterPage(
            registration=registration,
            email_sign_in=services.sign_in.emails,
            email_pages=by_email,
            waiting=waiting,
            flow_pages=flow_pages,
            resumption=resumption,
            forms=forms,
        ).endpoints(),
        *waiting.endpoints(),
        *verify.endpoints(),
        *InvitePage(
            invitations=services.registration.invitations,
            accept_access=partial(accept_access, services),
            find_application=partial(find_invited_application, services),
            resumption=resumption,
            flow_pages=flow_pages,
            accounts=services.storage.accounts,
            completion=completion,
            forms=forms,
        ).endpoints(),
        *ForgotPage(recovery=recovery, resumption=resumption, flow_pages=flow_pages, forms=forms).endpoints(),
        *ResetPage(
            recovery=recovery, resumption=resumption, completion=completion, flow_pages=flow_pages, forms=forms
        ).endpoints(),
    ]


def lazy_access_invitations(services: Services) -> Callable[[], AccessInvitations]:
    @cache
    def load() -> AccessInvitations:
        from gatehouse.app.services.people import access_invitations  # noqa: PLC0415 - few processes use it

        return access_invitations(services)

    return load


async def find_invited_application(services: Services, user: User) -> FlowReference:
    """Return the application that the invitation gives a role in, and where it starts, if it gives one."""
    for one in await services.storage.access_invitations.of_user(user.user_id, services.clock.now(), 1):
        application_id = one.access.application_id
        if not application_id or application_id == CENTRAL_APPLICATION:
            continue
        application = await services.games.purpose.application_by_id(application_id)
        clients = await services.storage.clients.clients_of_application(application_id)
        starts = [client.client_uri or next(map(web_root, client.redirect_uris), "") for client in clients]
        start = next(filter(None, starts), "")
        return FlowReference(application=application.name, logo=application.logo, start=start)
    return FlowReference()


async def accept_access(services: Services, user: User, origin: AuditOrigin) -> None:
    """Give what an invitation carried, with the account as it is after its link was used."""
    now = services.clock.now()
    if await services.storage.access_invitations.of_user(user.user_id, now, 1):
        accepted = await services.storage.accounts.user(user.user_id)
        await lazy_access_invitations(services)().accept_all(accepted, origin)


def provider_endpoints(
    services: Services, pages: PageRenderer, account: AccountPage, view: AccountView
) -> list[Endpoint]:
    flow_pages = SignInFlowPages(
        sign_in_flows=services.sign_in_flows, browsers=services.accounts.browsers, pages=pages
    )
    completion = sign_in_completion(services, pages)
    return ProviderPages(
        providers=services.sign_in.providers,
        identities=services.accounts.identities,
        email_sign_in=services.sign_in.emails,
        sign_in=sign_in_pages(services, pages, completion, flow_pages),
        completion=completion,
        browsers=services.accounts.browsers,
        pages=pages,
        flow_pages=flow_pages,
        account=account,
        view=view,
        tests=ProviderTests(
            providers=services.sign_in.providers,
            pages=pages,
            flow_pages=flow_pages,
            recorder=services.core.recorder,
            add_record=services.storage.profile.add_record,
            is_administrator=services.permissions.login_rules.is_administrator,
        ),
    ).endpoints()


def account_view(services: Services, pages: PageRenderer, notices: NoticeCookie) -> AccountView:
    return AccountView(
        browsers=services.accounts.browsers,
        sessions=services.accounts.sessions,
        sign_in_flows=services.sign_in_flows,
        pages=pages,
        notices=notices,
    )


def account_endpoints(services: Services, pages: PageRenderer) -> list[Endpoint]:
    notices = NoticeCookie(https=services.core.is_https)
    view = account_view(services, pages, notices)
    account = AccountPage(
        profile=services.accounts.profile,
        data=services.personal_data.requests,
        consents=services.oauth.consents,
        given_grants=services.oauth.given_grants,
        permissions=services.admin.own_permissions,
        view=view,
        pages=pages,
        notices=notices,
        places=services.geoip,
        may_administer=services.admin.console_access.may_open,
        providers=services.sign_in.providers.all_providers,
        methods=services.accounts.enabled_methods,
        passkey_signals=services.factors.passkeys.signals_about,
        clock=services.clock,
        mail_is_logged=services.mail.is_logged,
        phones=services.factors.phones,
        phone_codes=services.factors.phone_codes,
        phone_puzzle=partial(services.limits.proof_of_work.issue_puzzle, PuzzlePurpose.PHONE),
    )
    profile = ProfileForms(
        profile=services.accounts.profile,
        new_address=services.registration.email_changes,
        new_password=services.registration.password_change,
        account=account,
        view=view,
        pages=pages,
    )
    factors = FactorForms(
        totp=services.factors.totp,
        passkeys=services.factors.passkeys,
        email_codes=services.factors.email_codes,
        phone_codes=services.factors.phone_codes,
        recovery=services.factors.recovery_codes,
        email_sign_in=services.sign_in.emails,
        account=account,
        view=view,
    )
    data = PersonalDataForms(
        export=services.personal_data.export,
        data=services.personal_data.requests,
        erasure=services.accounts.erasure,
        passkeys=services.factors.passkeys,
        browsers=services.accounts.browsers,
        view=view,
        clock=services.clock,
    )
    reauthentication = ReauthenticationPage(
        confirmation=services.sign_in.reauthentication,
        email_codes=services.factors.email_codes,
        passkeys=services.factors.passkeys,
        email_sign_in=services.sign_in.emails,
        methods=services.accounts.enabled_methods,
        devices=services.accounts.device_cookies,
        sign_in_flows=services.sign_in_flows,
        browsers=services.accounts.browsers,
        view=view,
        notices=notices,
    )
    return [
        *account.endpoints(),
        *profile.endpoints(),
        *PhoneForms(
            phones=services.factors.phones,
            account=account,
            view=view,
            forms=PublicForms(
                browsers=services.accounts.browsers, pages=pages, proof_of_work=services.limits.proof_of_work
            ),
        ).endpoints(),
        *factors.endpoints(),
        *provider_endpoints(services, pages, account, view),
        *InvitationsPage(invitations=lazy_access_invitations(services), view=view).endpoints(),
        *SessionForms(sessions=services.accounts.sessions, view=view).endpoints(),
        *ConnectedApplicationForms(
            consents=services.oauth.consents, given_grants=services.oauth.given_grants, view=view
        ).endpoints(),
        *data.endpoints(),
        *reauthentication.endpoints(),
    ]
