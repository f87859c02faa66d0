"""The part of the composition root that is about a person's own account."""

from dataclasses import dataclass
from importlib import import_module
from typing import Final

from gatehouse.accounts.email_links import EmailLinks
from gatehouse.accounts.login_result import LoginResult, LoginSettings
from gatehouse.accounts.own_account.email_change import EmailChanges, EmailVerification
from gatehouse.accounts.own_account.export import DataExport
from gatehouse.accounts.own_account.profile import AccountProfile, Erasure, PasswordChange
from gatehouse.accounts.own_account.reauthentication import Reauthentication
from gatehouse.accounts.recovery import PasswordRecovery
from gatehouse.accounts.registration import Invitations, RegistrationPolicy, SelfRegistration
from gatehouse.accounts.second_factors.codes import EmailCodes, RecoveryCodes, Totp
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.accounts.second_factors.passkeys import Passkeys, RelyingParty
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.sessions import SessionLifetimes, Sessions, ShortTokens
from gatehouse.accounts.sign_in import DeviceCookies, PasswordSignIn
from gatehouse.admin.own_permissions import OwnPermissionsLoader
from gatehouse.app.services import core
from gatehouse.app.services.authentication import authentication_services
from gatehouse.app.services.authorization import (
    AuthorizationServices,
    application_owners,
    authorization_services,
    denied_reasons,
    device_purpose,
)
from gatehouse.app.services.core import Services, mail_composer, sign_in
from gatehouse.app.services.games import GameServices, game_pages, game_services
from gatehouse.gamesessions.purpose import KIND as GAME
from gatehouse.kernel.addresses import Address
from gatehouse.keys.sealing import derive_key
from gatehouse.mail.composer import Composer
from gatehouse.oauth.authorize.purpose import KIND as AUTHORIZE
from gatehouse.oauth.authorize.service import Consents
from gatehouse.oauth.device import KIND as DEVICE
from gatehouse.oauth.device import DeviceSignInPurpose
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.login_rules import LoginRules
from gatehouse.settings.grammar import parse_origin
from gatehouse.sign_in_flow.flows import ACCOUNT_KIND as ACCOUNT
from gatehouse.sign_in_flow.flows import AccountSignInPurpose, SignInFlows
from gatehouse.storage.admin.own_permissions import OwnPermissionsStorage
from gatehouse.throttle.limits import AttemptLimiter, Quota
from gatehouse.web.api.login import LoginEndpoint
from gatehouse.web.http.browser import BrowserSessions
from gatehouse.web.http.geoip import open_geoip
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.account import AccountPage, ConnectedApplicationForms, PersonalDataForms, SessionForms
from gatehouse.web.pages.account_factors import FactorForms
from gatehouse.web.pages.account_profile import ProfileForms
from gatehouse.web.pages.account_request import AccountView, NoticeCookie
from gatehouse.web.pages.confirm_sign_in import ConfirmSignInPage
from gatehouse.web.pages.consent import ConsentPage
from gatehouse.web.pages.forms import PublicForms
from gatehouse.web.pages.home import HomePage, ShortTokenPage
from gatehouse.web.pages.reauthentication import ReauthenticationPage
from gatehouse.web.pages.recovery import ForgotPage, ResetPage
from gatehouse.web.pages.registration import InvitePage, RegisterPage, VerifyEmailPage
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.second_factor import SecondFactorPages
from gatehouse.web.pages.sign_in import ChooseAccountPage, SignInPages
from gatehouse.web.pages.sign_in_flow import SignInCompletion, SignInFlowPages

CONSOLE_ACCESS_MODULE: Final = "gatehouse.app.services.visibility"  # comes with the first account page that is shown


class ConsoleAccessCheck:
    """Fills web/pages/account.py MayAdminister."""

    def __init__(self, services: Services, authenticator: Authenticator) -> None:
        self._services = services
        self._authenticator = authenticator

    async def may_administer(self, user_id: str, address: Address | None) -> bool:
        found: bool = (
            await import_module(CONSOLE_ACCESS_MODULE)
            .doorway(self._services, self._authenticator)
            .may_open(user_id, address)
        )
        return found


def new_address(services: Services) -> EmailChanges:
    letters = mail_composer(services.settings, masters=services.masters, clock=services.clock)
    return EmailChanges(
        store=services.storage.profile,
        links=EmailLinks(
            store=services.storage.registration,
            composer=letters,
            recorder=services.recorder,
            quota=Quota(store=services.storage.throttle, clock=services.clock),
            clock=services.clock,
        ),
        composer=letters,
        recorder=services.recorder,
        clock=services.clock,
        domains=services.settings.accounts.allowed_domains,
    )


def erasure(services: Services) -> Erasure:
    return Erasure(store=services.storage.profile, recorder=services.recorder, clock=services.clock)


def export(services: Services) -> DataExport:
    return DataExport(
        store=services.storage.profile,
        applications=services.data_requests,
        recorder=services.recorder,
        clock=services.clock,
        service=services.settings.server.base_url,
    )


def account_pages(
    services: Services,
    *,
    sessions: Sessions,
    sign_in: PasswordSignIn,
    devices: DeviceCookies,
    totp: Totp,
    email_codes: EmailCodes,
    recovery: RecoveryCodes,
    passkeys: Passkeys,
    factors: SecondFactors,
    telling: AccountNotifier,
    consents: Consents,
    browsers: BrowserSessions,
    pages: PageRenderer,
    authenticator: Authenticator,
) -> list[Endpoint]:
    store, clock, recorder = services.storage.profile, services.clock, services.recorder
    base_url = services.settings.server.base_url
    notices = NoticeCookie(https=base_url.startswith("https:"))
    owners = AccountView(browsers=browsers, sessions=sessions, pages=pages, notices=notices)
    profile = AccountProfile(store=store, recorder=recorder, clock=clock)
    account = AccountPage(
        profile=profile,
        data=services.data_requests,
        consents=consents,
        permissions=OwnPermissionsLoader(
            store=OwnPermissionsStorage(services.storage.runner),
            authenticator=authenticator,
            permission_loader=services.permission_loader,
            clock=clock,
        ),
        view=owners,
        pages=pages,
        notices=notices,
        places=open_geoip(services.settings.accounts.geoip_file),
        may_administer=ConsoleAccessCheck(services, authenticator).may_administer,
        clock=clock,
        mail_is_logged=services.mail_is_logged,
    )
    new_password = PasswordChange(
        store=store,
        sign_in=sign_in,
        passwords=services.passwords,
        rules=services.password_rules,
        notifier=telling,
        clock=clock,
    )
    confirmation = Reauthentication(
        store=store, sign_in=sign_in, factors=factors, passkeys=passkeys, recorder=recorder, clock=clock
    )
    return [
        *account.endpoints(),
        *ProfileForms(
            profile=profile,
            new_address=new_address(services),
            new_password=new_password,
            account=account,
            view=owners,
            pages=pages,
        ).endpoints(),
        *FactorForms(
            totp=totp, passkeys=passkeys, email_codes=email_codes, recovery=recovery, account=account, view=owners
        ).endpoints(),
        *SessionForms(sessions=sessions, view=owners).endpoints(),
        *ConnectedApplicationForms(consents=consents, view=owners).endpoints(),
        *PersonalDataForms(
            export=export(services),
            data=services.data_requests,
            erasure=erasure(services),
            browsers=browsers,
            view=owners,
        ).endpoints(),
        *ReauthenticationPage(
            confirmation=confirmation,
            email_codes=email_codes,
            passkeys=passkeys,
            devices=devices,
            browsers=browsers,
            view=owners,
            notices=notices,
        ).endpoints(),
    ]


# The part of the composition root that is about getting in for the first time, or again.


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationServices:
    registration: SelfRegistration
    invitations: Invitations
    recovery: PasswordRecovery


def registration_services(services: Services) -> RegistrationServices:
    store, clock, recorder = services.storage.registration, services.clock, services.recorder
    passwords, rules = services.passwords, services.password_rules
    letters = mail_composer(services.settings, masters=services.masters, clock=clock)
    links = EmailLinks(
        store=store,
        composer=letters,
        recorder=recorder,
        quota=Quota(store=services.storage.throttle, clock=clock),
        clock=clock,
    )
    accounts = services.settings.accounts
    return RegistrationServices(
        registration=SelfRegistration(
            store=store,
            links=links,
            passwords=passwords,
            rules=rules,
            composer=letters,
            recorder=recorder,
            clock=clock,
            policy=RegistrationPolicy(is_open=accounts.registration, domains=accounts.allowed_domains),
        ),
        invitations=Invitations(
            store=store,
            links=links,
            administration=services.administration,
            passwords=passwords,
            rules=rules,
            recorder=recorder,
            clock=clock,
        ),
        recovery=PasswordRecovery(
            store=store,
            links=links,
            passwords=passwords,
            rules=rules,
            sign_in=sign_in(services),
            composer=letters,
            recorder=recorder,
            clock=clock,
        ),
    )


def registration_pages(services: Services, *, browsers: BrowserSessions, pages: PageRenderer) -> list[Endpoint]:
    rooms = registration_services(services)
    desk = PublicForms(browsers=browsers, pages=pages)
    is_logged = services.mail_is_logged
    proofs = EmailVerification(registration=rooms.registration, email_changes=new_address(services))
    return [
        *RegisterPage(registration=rooms.registration, forms=desk, mail_is_logged=is_logged).endpoints(),
        *VerifyEmailPage(
            registration=rooms.registration, proofs=proofs, forms=desk, mail_is_logged=is_logged
        ).endpoints(),
        *InvitePage(invitations=rooms.invitations, forms=desk).endpoints(),
        *ForgotPage(recovery=rooms.recovery, forms=desk, mail_is_logged=is_logged).endpoints(),
        *ResetPage(recovery=rooms.recovery, forms=desk).endpoints(),
    ]


# The part of the composition root that is about people: how they prove who they are, and their pages.


HOUR: Final = 3_600
DAY: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountServices:
    composer: Composer
    guesses: AttemptLimiter
    devices: DeviceCookies
    sessions: Sessions
    sign_in: PasswordSignIn
    totp: Totp
    email_codes: EmailCodes
    recovery_codes: RecoveryCodes
    passkeys: Passkeys
    second_factors: SecondFactors
    sign_in_flows: SignInFlows
    authorization: AuthorizationServices
    device_purpose: DeviceSignInPurpose
    games: GameServices
    factor_notices: AccountNotifier
    login_result: LoginResult


def account_services(services: Services) -> AccountServices:
    """Build everything about accounts on the house's rooms."""
    clock, storage, name = services.clock, services.storage, services.settings.branding.name
    letters = mail_composer(services.settings, masters=services.masters, clock=clock)
    telling = AccountNotifier(recorder=services.recorder, composer=letters)
    guesses = core.guesses(services)
    factor_key = derive_key(services.instance_key, "factors")
    recovery = RecoveryCodes(store=storage.second_factors, key=factor_key, notifier=telling, clock=clock)
    totp = Totp(
        store=storage.second_factors,
        masters=services.masters,
        recovery=recovery,
        notifier=telling,
        clock=clock,
        issuer=name,
    )
    email_codes = EmailCodes(
        store=storage.second_factors,
        key=factor_key,
        recovery=recovery,
        limiter=guesses,
        notifier=telling,
        clock=clock,
    )
    rules = login_rules(services)
    authorizing = authorization_services(services, rules)
    device = device_purpose(services, rules=rules, consents=authorizing.consents)
    desk = login_result(services, rules)
    game = game_services(services, login_result=desk, rules=rules)
    origin = parse_origin(services.settings.server.base_url, "http", "https")
    return AccountServices(
        composer=letters,
        guesses=guesses,
        devices=core.devices(services),
        sessions=Sessions(
            store=storage.sessions, recorder=services.recorder, clock=clock, lifetimes=session_life(services)
        ),
        sign_in=core.sign_in(services),
        totp=totp,
        email_codes=email_codes,
        recovery_codes=recovery,
        passkeys=Passkeys(
            store=storage.passkeys,
            party=RelyingParty(name=name, origin=services.settings.server.base_url, host=origin.host),
            recovery=recovery,
            notifier=telling,
            clock=clock,
        ),
        second_factors=SecondFactors(
            store=storage.second_factors,
            totp=totp,
            email_codes=email_codes,
            recovery=recovery,
            limiter=guesses,
            notifier=telling,
            clock=clock,
        ),
        sign_in_flows=SignInFlows(
            store=storage.sign_in_flows,
            purposes={
                ACCOUNT: AccountSignInPurpose(),
                AUTHORIZE: authorizing.purpose,
                DEVICE: device,
                GAME: game.purpose,
            },
            clock=clock,
        ),
        authorization=authorizing,
        device_purpose=device,
        games=game,
        factor_notices=telling,
        login_result=desk,
    )


def login_result(services: Services, rules: LoginRules) -> LoginResult:
    return LoginResult(
        store=services.storage.logins,
        rules=rules,
        countries=open_geoip(services.settings.accounts.geoip_file),
        tokens=services.user_tokens,
        recorder=services.recorder,
        clock=services.clock,
        settings=LoginSettings(
            vendor_nick_field=services.settings.accounts.vendor_nick_field,
            jwt_without_factor=services.settings.tokens.jwt_without_factor,
        ),
    )


def login_rules(services: Services) -> LoginRules:
    """What every way of signing in asks about applications."""
    return LoginRules(
        store=services.storage.permissions,
        permission_loader=services.permission_loader,
        service_jwts=authentication_services(services).service_jwts,
        clock=services.clock,
    )


def login_endpoint(services: Services, accounts: AccountServices) -> Endpoint:
    return LoginEndpoint(
        sign_in=accounts.sign_in,
        accounts=services.storage.accounts,
        factors=accounts.second_factors,
        email_codes=accounts.email_codes,
        sign_in_flows=accounts.sign_in_flows,
        login_result=accounts.login_result,
        masters=services.masters,
    ).endpoint()


def session_life(services: Services) -> SessionLifetimes:
    wanted = services.settings.sessions
    return SessionLifetimes(
        idle=wanted.idle_hours * HOUR, absolute=wanted.absolute_days * DAY, fresh=wanted.fresh_minutes * 60
    )


def build_browsers(services: Services, accounts: AccountServices) -> BrowserSessions:
    return BrowserSessions(
        sessions=accounts.sessions,
        csrf_key=derive_key(services.instance_key, "csrf"),
        base_url=services.settings.server.base_url,
    )


def user_pages(
    services: Services, accounts: AccountServices, *, pages: PageRenderer, authenticator: Authenticator
) -> list[Endpoint]:
    """The pages of design order: the way in, then the account."""
    browsers = build_browsers(services, accounts)
    way = SignInFlowPages(sign_in_flows=accounts.sign_in_flows, browsers=browsers, pages=pages)
    entrance = SignInCompletion(
        sessions=accounts.sessions,
        devices=accounts.devices,
        sign_in_flows=accounts.sign_in_flows,
        browsers=browsers,
        composer=accounts.composer,
        clock=services.clock,
    )
    sign_in = SignInPages(
        sign_in=accounts.sign_in,
        accounts=services.storage.accounts,
        passkeys=accounts.passkeys,
        sessions=accounts.sessions,
        completion=entrance,
        browsers=browsers,
        pages=pages,
        flow_pages=way,
        register_enabled=services.settings.accounts.registration,
        base_url=services.settings.server.base_url,
    )
    short_token = ShortTokenPage(
        tokens=ShortTokens(store=services.storage.logins, accounts=services.storage.accounts, clock=services.clock),
        sessions=accounts.sessions,
        browsers=browsers,
        pages=pages,
    )
    second_factor = SecondFactorPages(
        accounts=services.storage.accounts,
        factors=accounts.second_factors,
        email_codes=accounts.email_codes,
        passkeys=accounts.passkeys,
        sign_in_flows=accounts.sign_in_flows,
        completion=entrance,
        browsers=browsers,
        flow_pages=way,
        mail_is_logged=services.mail_is_logged,
    )
    owners = application_owners(services)
    consent = ConsentPage(
        consents=accounts.authorization.consents,
        owners=owners,
        purpose=accounts.authorization.purpose,
        clients=services.storage.clients,
        sign_in_flows=accounts.sign_in_flows,
        browsers=browsers,
        flow_pages=way,
    )
    confirm = ConfirmSignInPage(
        purposes={DEVICE: accounts.device_purpose, GAME: accounts.games.purpose},
        sign_in_flows=accounts.sign_in_flows,
        browsers=browsers,
        pages=pages,
        places=open_geoip(services.settings.accounts.geoip_file),
        clock=services.clock,
        base_url=services.settings.server.base_url,
    )
    game = game_pages(
        services,
        accounts.games,
        owners=owners,
        reasons=denied_reasons(services, accounts.games.login_rules),
        interactions=accounts.sign_in_flows,
        browsers=browsers,
        pages=pages,
    )
    return [
        HomePage(browsers=browsers, sign_in=sign_in, short_token=short_token, game=game).endpoint(),
        short_token.endpoint(),
        *sign_in.endpoints(),
        *second_factor.endpoints(),
        *ChooseAccountPage(completion=entrance, browsers=browsers, flow_pages=way).endpoints(),
        *consent.endpoints(),
        *confirm.endpoints(),
        *game.endpoints(),
        *registration_pages(services, browsers=browsers, pages=pages),
        *account_pages(
            services,
            sessions=accounts.sessions,
            sign_in=accounts.sign_in,
            devices=accounts.devices,
            totp=accounts.totp,
            email_codes=accounts.email_codes,
            recovery=accounts.recovery_codes,
            passkeys=accounts.passkeys,
            factors=accounts.second_factors,
            telling=accounts.factor_notices,
            consents=accounts.authorization.consents,
            browsers=browsers,
            pages=pages,
            authenticator=authenticator,
        ),
    ]
