"""The part of the composition root that is about people: how they prove who they are, and their pages."""

from dataclasses import dataclass
from typing import Final

from gatehouse.accounts.devices import DeviceCookies
from gatehouse.accounts.login_data import LoginResult, LoginSettings
from gatehouse.accounts.second_factors.email_code import EmailCodes
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.second_factors.recovery import RecoveryCodes
from gatehouse.accounts.second_factors.relying_party import RelyingParty
from gatehouse.accounts.second_factors.telling import AccountNotifier
from gatehouse.accounts.second_factors.totp import Totp
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.sessions import SessionLifetimes, Sessions
from gatehouse.accounts.short_tokens import ShortTokens
from gatehouse.accounts.sign_in import PasswordSignIn
from gatehouse.app import guessing
from gatehouse.app.authorizing import (
    AuthorizationServices,
    application_owners,
    authorization_services,
    denied_reasons,
)
from gatehouse.app.callers import authentication_services
from gatehouse.app.devices import device_purpose
from gatehouse.app.gamesessions import GameServices, game_pages, game_services
from gatehouse.app.house import Services
from gatehouse.app.joining import registration_pages
from gatehouse.app.mailing import mail_composer
from gatehouse.app.own_account import account_pages
from gatehouse.gamesessions.occasion import KIND as GAME
from gatehouse.interaction.account import ACCOUNT_KIND as ACCOUNT
from gatehouse.interaction.account import AccountSignInPurpose
from gatehouse.interaction.dispatcher import SignInFlows
from gatehouse.keys.sealing import derive_key
from gatehouse.mail.composer import Composer
from gatehouse.oauth.device_occasion import KIND as DEVICE
from gatehouse.oauth.device_occasion import DeviceSignInPurpose
from gatehouse.oauth.occasion import KIND as AUTHORIZE
from gatehouse.permissions.callers.desk import Authenticator
from gatehouse.permissions.login import LoginRules
from gatehouse.settings.grammar import parse_origin
from gatehouse.throttle.guesses import AttemptLimiter
from gatehouse.web.browser import BrowserSessions
from gatehouse.web.login import LoginEndpoint
from gatehouse.web.pages.choose_account import ChooseAccountPage
from gatehouse.web.pages.confirm_sign_in import ConfirmSignInPage
from gatehouse.web.pages.consent import ConsentPage
from gatehouse.web.pages.entrance import SignInCompletion
from gatehouse.web.pages.home import HomePage
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.second_factor import SecondFactorPages
from gatehouse.web.pages.short_token import ShortTokenPage
from gatehouse.web.pages.sign_in import SignInPages
from gatehouse.web.pages.way import SignInFlowPages
from gatehouse.web.places import open_geoip
from gatehouse.web.routes.table import Endpoint

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
    guesses = guessing.guesses(services)
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
        devices=guessing.devices(services),
        sessions=Sessions(
            store=storage.sessions, recorder=services.recorder, clock=clock, lifetimes=session_life(services)
        ),
        sign_in=guessing.sign_in(services),
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
