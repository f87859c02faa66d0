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
    recovery: RecoveryCodes
    passkeys: Passkeys
    factors: SecondFactors
    interactions: SignInFlows
    authorizing: AuthorizationServices
    device_occasion: DeviceSignInPurpose
    game: GameServices
    telling: AccountNotifier
    desk: LoginResult


def account_services(house: Services) -> AccountServices:
    """Build everything about accounts on the house's rooms."""
    clock, storage, name = house.clock, house.storage, house.settings.branding.name
    letters = mail_composer(house.settings, masters=house.masters, clock=clock)
    telling = AccountNotifier(recorder=house.recorder, composer=letters)
    guesses = guessing.guesses(house)
    factor_key = derive_key(house.instance_key, "factors")
    recovery = RecoveryCodes(store=storage.second_factors, key=factor_key, telling=telling, clock=clock)
    totp = Totp(
        store=storage.second_factors,
        masters=house.masters,
        recovery=recovery,
        telling=telling,
        clock=clock,
        issuer=name,
    )
    email_codes = EmailCodes(
        store=storage.second_factors,
        key=factor_key,
        recovery=recovery,
        guesses=guesses,
        telling=telling,
        clock=clock,
    )
    rules = login_rules(house)
    authorizing = authorization_services(house, rules)
    device = device_purpose(house, rules=rules, consents=authorizing.consents)
    desk = login_result(house, rules)
    game = game_services(house, desk=desk, rules=rules)
    origin = parse_origin(house.settings.server.base_url, "http", "https")
    return AccountServices(
        composer=letters,
        guesses=guesses,
        devices=guessing.devices(house),
        sessions=Sessions(store=storage.sessions, recorder=house.recorder, clock=clock, life=session_life(house)),
        sign_in=guessing.sign_in(house),
        totp=totp,
        email_codes=email_codes,
        recovery=recovery,
        passkeys=Passkeys(
            store=storage.passkeys,
            party=RelyingParty(name=name, origin=house.settings.server.base_url, host=origin.host),
            recovery=recovery,
            telling=telling,
            clock=clock,
        ),
        factors=SecondFactors(
            store=storage.second_factors,
            totp=totp,
            email_codes=email_codes,
            recovery=recovery,
            guesses=guesses,
            telling=telling,
            clock=clock,
        ),
        interactions=SignInFlows(
            store=storage.interactions,
            occasions={
                ACCOUNT: AccountSignInPurpose(),
                AUTHORIZE: authorizing.occasion,
                DEVICE: device,
                GAME: game.occasion,
            },
            clock=clock,
        ),
        authorizing=authorizing,
        device_occasion=device,
        game=game,
        telling=telling,
        desk=desk,
    )


def login_result(house: Services, rules: LoginRules) -> LoginResult:
    return LoginResult(
        store=house.storage.logins,
        rules=rules,
        countries=open_geoip(house.settings.accounts.geoip_file),
        tokens=house.user_tokens,
        recorder=house.recorder,
        clock=house.clock,
        terms=LoginSettings(
            vendor_nick_field=house.settings.accounts.vendor_nick_field,
            jwt_without_factor=house.settings.tokens.jwt_without_factor,
        ),
    )


def login_rules(house: Services) -> LoginRules:
    """What every way of signing in asks about applications."""
    return LoginRules(
        store=house.storage.permissions,
        reading=house.reading,
        service_jwts=authentication_services(house).service_jwts,
        clock=house.clock,
    )


def login_endpoint(house: Services, them: AccountServices) -> Endpoint:
    return LoginEndpoint(
        sign_in=them.sign_in,
        accounts=house.storage.accounts,
        factors=them.factors,
        email_codes=them.email_codes,
        interactions=them.interactions,
        desk=them.desk,
        masters=house.masters,
    ).endpoint()


def session_life(house: Services) -> SessionLifetimes:
    wanted = house.settings.sessions
    return SessionLifetimes(
        idle=wanted.idle_hours * HOUR, absolute=wanted.absolute_days * DAY, fresh=wanted.fresh_minutes * 60
    )


def build_browsers(house: Services, them: AccountServices) -> BrowserSessions:
    return BrowserSessions(
        sessions=them.sessions,
        csrf_key=derive_key(house.instance_key, "csrf"),
        base_url=house.settings.server.base_url,
    )


def user_pages(house: Services, them: AccountServices, *, pages: PageRenderer, desk: Authenticator) -> list[Endpoint]:
    """The pages of design order: the way in, then the account."""
    browsers = build_browsers(house, them)
    way = SignInFlowPages(interactions=them.interactions, browsers=browsers, pages=pages)
    entrance = SignInCompletion(
        sessions=them.sessions,
        devices=them.devices,
        interactions=them.interactions,
        browsers=browsers,
        composer=them.composer,
        clock=house.clock,
    )
    sign_in = SignInPages(
        sign_in=them.sign_in,
        accounts=house.storage.accounts,
        passkeys=them.passkeys,
        sessions=them.sessions,
        entrance=entrance,
        browsers=browsers,
        pages=pages,
        way=way,
        register_enabled=house.settings.accounts.registration,
        base_url=house.settings.server.base_url,
    )
    short_token = ShortTokenPage(
        tokens=ShortTokens(store=house.storage.logins, accounts=house.storage.accounts, clock=house.clock),
        sessions=them.sessions,
        browsers=browsers,
        pages=pages,
    )
    second_factor = SecondFactorPages(
        accounts=house.storage.accounts,
        factors=them.factors,
        email_codes=them.email_codes,
        passkeys=them.passkeys,
        interactions=them.interactions,
        entrance=entrance,
        browsers=browsers,
        way=way,
        mail_is_logged=house.mail_is_shown,
    )
    owners = application_owners(house)
    consent = ConsentPage(
        consents=them.authorizing.consents,
        owners=owners,
        occasion=them.authorizing.occasion,
        clients=house.storage.oauth,
        interactions=them.interactions,
        browsers=browsers,
        way=way,
    )
    confirm = ConfirmSignInPage(
        occasions={DEVICE: them.device_occasion, GAME: them.game.occasion},
        interactions=them.interactions,
        browsers=browsers,
        pages=pages,
        places=open_geoip(house.settings.accounts.geoip_file),
        clock=house.clock,
        base_url=house.settings.server.base_url,
    )
    game = game_pages(
        house,
        them.game,
        owners=owners,
        reasons=denied_reasons(house, them.game.rules),
        interactions=them.interactions,
        browsers=browsers,
        pages=pages,
    )
    return [
        HomePage(browsers=browsers, sign_in=sign_in, short_token=short_token, game=game).endpoint(),
        short_token.endpoint(),
        *sign_in.endpoints(),
        *second_factor.endpoints(),
        *ChooseAccountPage(entrance=entrance, browsers=browsers, way=way).endpoints(),
        *consent.endpoints(),
        *confirm.endpoints(),
        *game.endpoints(),
        *registration_pages(house, browsers=browsers, pages=pages),
        *account_pages(
            house,
            sessions=them.sessions,
            sign_in=them.sign_in,
            devices=them.devices,
            totp=them.totp,
            email_codes=them.email_codes,
            recovery=them.recovery,
            passkeys=them.passkeys,
            factors=them.factors,
            telling=them.telling,
            consents=them.authorizing.consents,
            browsers=browsers,
            pages=pages,
            desk=desk,
        ),
    ]
