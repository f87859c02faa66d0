"""The part of the composition root that is about people: how they prove who they are, and their pages."""

from dataclasses import dataclass
from typing import Final

from gatehouse.accounts.devices import Devices
from gatehouse.accounts.login_data import LoginDesk, LoginTerms
from gatehouse.accounts.second_factors.email_code import EmailCodes
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.second_factors.recovery import RecoveryCodes
from gatehouse.accounts.second_factors.relying_party import RelyingParty
from gatehouse.accounts.second_factors.telling import Telling
from gatehouse.accounts.second_factors.totp import Totp
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.sessions import SessionLife, Sessions
from gatehouse.accounts.short_tokens import ShortTokens
from gatehouse.accounts.sign_in import SignIn
from gatehouse.app import guessing
from gatehouse.app.authorizing import Authorizing, authorizing_room, denied_reasons, owners_of
from gatehouse.app.callers import proofs
from gatehouse.app.devices import device_occasion
from gatehouse.app.gamesessions import GameRoom, game_pages, game_room
from gatehouse.app.house import House
from gatehouse.app.joining import joining_pages
from gatehouse.app.mailing import composer
from gatehouse.app.own_account import account_pages
from gatehouse.gamesessions.occasion import KIND as GAME
from gatehouse.interaction.account import KIND as ACCOUNT
from gatehouse.interaction.account import AccountOccasion
from gatehouse.interaction.dispatcher import Interactions
from gatehouse.keys.sealing import expand
from gatehouse.mail.composer import Composer
from gatehouse.oauth.device_occasion import KIND as DEVICE
from gatehouse.oauth.device_occasion import DeviceOccasion
from gatehouse.oauth.occasion import KIND as AUTHORIZE
from gatehouse.permissions.callers.desk import Desk
from gatehouse.permissions.login import LoginRules
from gatehouse.settings.grammar import parse_origin
from gatehouse.throttle.guesses import Guesses
from gatehouse.web.browser import Browsers
from gatehouse.web.login import LoginEndpoint
from gatehouse.web.pages.choose_account import ChooseAccountPage
from gatehouse.web.pages.confirm_sign_in import ConfirmSignInPage
from gatehouse.web.pages.consent import ConsentPage
from gatehouse.web.pages.entrance import Entrance
from gatehouse.web.pages.home import HomePage
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.pages.second_factor import SecondFactorPages
from gatehouse.web.pages.short_token import ShortTokenPage
from gatehouse.web.pages.sign_in import SignInPages
from gatehouse.web.pages.way import Way
from gatehouse.web.places import places
from gatehouse.web.routes.table import Endpoint

HOUR: Final = 3_600
DAY: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    composer: Composer
    guesses: Guesses
    devices: Devices
    sessions: Sessions
    sign_in: SignIn
    totp: Totp
    email_codes: EmailCodes
    recovery: RecoveryCodes
    passkeys: Passkeys
    factors: SecondFactors
    interactions: Interactions
    authorizing: Authorizing
    device_occasion: DeviceOccasion
    game: GameRoom
    telling: Telling
    desk: LoginDesk


def people(house: House) -> People:
    """Build everything about accounts on the house's rooms."""
    clock, storage, name = house.clock, house.storage, house.settings.branding.name
    letters = composer(house.settings, masters=house.masters, clock=clock)
    telling = Telling(recorder=house.recorder, composer=letters)
    guesses = guessing.guesses(house)
    factor_key = expand(house.instance_key, "factors")
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
    authorizing = authorizing_room(house, rules)
    device = device_occasion(house, rules=rules, consents=authorizing.consents)
    desk = login_desk(house, rules)
    game = game_room(house, desk=desk, rules=rules)
    origin = parse_origin(house.settings.server.base_url, "http", "https")
    return People(
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
        interactions=Interactions(
            store=storage.interactions,
            occasions={
                ACCOUNT: AccountOccasion(),
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


def login_desk(house: House, rules: LoginRules) -> LoginDesk:
    return LoginDesk(
        store=house.storage.logins,
        rules=rules,
        countries=places(house.settings.accounts.geoip_file),
        tokens=house.user_tokens,
        recorder=house.recorder,
        clock=house.clock,
        terms=LoginTerms(
            vendor_nick_field=house.settings.accounts.vendor_nick_field,
            jwt_without_factor=house.settings.tokens.jwt_without_factor,
        ),
    )


def login_rules(house: House) -> LoginRules:
    """What every way of signing in asks about applications."""
    return LoginRules(
        store=house.storage.permissions,
        reading=house.reading,
        service_jwts=proofs(house).service_jwts,
        clock=house.clock,
    )


def login_endpoint(house: House, them: People) -> Endpoint:
    return LoginEndpoint(
        sign_in=them.sign_in,
        accounts=house.storage.accounts,
        factors=them.factors,
        email_codes=them.email_codes,
        interactions=them.interactions,
        desk=them.desk,
        masters=house.masters,
    ).endpoint()


def session_life(house: House) -> SessionLife:
    wanted = house.settings.sessions
    return SessionLife(
        idle=wanted.idle_hours * HOUR, absolute=wanted.absolute_days * DAY, fresh=wanted.fresh_minutes * 60
    )


def browsers_of(house: House, them: People) -> Browsers:
    return Browsers(
        sessions=them.sessions,
        csrf_key=expand(house.instance_key, "csrf"),
        base_url=house.settings.server.base_url,
    )


def people_pages(house: House, them: People, *, pages: Pages, desk: Desk) -> list[Endpoint]:
    """The pages of design order: the way in, then the account."""
    browsers = browsers_of(house, them)
    way = Way(interactions=them.interactions, browsers=browsers, pages=pages)
    entrance = Entrance(
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
    owners = owners_of(house)
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
        places=places(house.settings.accounts.geoip_file),
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
        *joining_pages(house, browsers=browsers, pages=pages),
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
