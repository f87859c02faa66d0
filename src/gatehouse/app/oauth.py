"""The part of the composition root that is about single sign-on: one function for each group of endpoints."""

import secrets
from dataclasses import dataclass
from typing import Final

from gatehouse.app.authorizing import AdministratorCheck, application_owners, denied_reasons
from gatehouse.app.callers import authentication_services, key_proofs
from gatehouse.app.devices import device_endpoints
from gatehouse.app.guessing import guesses
from gatehouse.app.house import Services
from gatehouse.app.logout import logout_endpoints
from gatehouse.app.people import AccountServices, build_browsers, login_rules
from gatehouse.audit.refusals import RefusalLog
from gatehouse.keys.sealing import derive_key
from gatehouse.oauth.access_tokens import AccessTokens
from gatehouse.oauth.bearers import AccessTokenVerifier
from gatehouse.oauth.claim_mapping import MappedClaims
from gatehouse.oauth.client_assertions import ClientAssertions
from gatehouse.oauth.client_authentication import ClientAuthenticator
from gatehouse.oauth.client_secrets import ClientSecretVerifier
from gatehouse.oauth.discovery import provider_metadata
from gatehouse.oauth.exchange import IdTokenExchange, UserJwtExchange
from gatehouse.oauth.grants.authorization_code import AuthorizationCodeGrant
from gatehouse.oauth.grants.device_code import DeviceCodeGrant
from gatehouse.oauth.grants.refresh_token import RefreshTokenGrant
from gatehouse.oauth.introspection import Introspection
from gatehouse.oauth.issue import TokenIssuer
from gatehouse.oauth.origins import ClientOriginCache
from gatehouse.oauth.ports import ApplicationLoginRules, ClaimMapping
from gatehouse.oauth.refresh_tokens import RefreshTokens
from gatehouse.oauth.revocation import Revocation
from gatehouse.oauth.token_endpoint import GrantType, TokenEndpoint
from gatehouse.oauth.userinfo import UserInfo
from gatehouse.oauth.vocabulary import GrantName
from gatehouse.permissions.callers.key_proofs import AccessKeyVerifier
from gatehouse.permissions.held import HoldingsReader
from gatehouse.throttle.volume import RateLimit, RateLimiter
from gatehouse.tokens.verifying import TokenVerifier
from gatehouse.web.oauth.authorize import AUTHORIZE_LIMIT_KEY, AuthorizeEndpoint
from gatehouse.web.oauth.client_error import ClientErrorPage
from gatehouse.web.oauth.denied_page import AccessDeniedPage
from gatehouse.web.oauth.discovery import DiscoveryEndpoints
from gatehouse.web.oauth.exchange import ExchangeEndpoints
from gatehouse.web.oauth.introspection import IntrospectionEndpoint
from gatehouse.web.oauth.revocation import RevocationEndpoints
from gatehouse.web.oauth.token import TokenHttpEndpoint
from gatehouse.web.oauth.userinfo import UserInfoEndpoint
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.words import LANGUAGES
from gatehouse.web.routes.table import Endpoint

CACHE_KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthServices:
    """Built once: some of them remember."""

    mapping: ClaimMapping
    rules: ApplicationLoginRules
    authentication: ClientAuthenticator
    access_tokens: AccessTokens
    refresh_tokens: RefreshTokens
    bearers: AccessTokenVerifier
    issue: TokenIssuer
    verifier: TokenVerifier


def oauth_services(house: Services) -> OAuthServices:
    storage, clock, issuer = house.storage, house.clock, house.settings.server.base_url
    verifier = authentication_services(house).verifier
    mapping = MappedClaims(HoldingsReader(reading=house.reading, clock=clock))
    access_tokens = AccessTokens(derive_key(house.instance_key, "access-tokens"))
    refresh_tokens = RefreshTokens(
        store=storage.grants, signer=house.signer, verifier=verifier, clock=clock, issuer=issuer
    )
    return OAuthServices(
        mapping=mapping,
        rules=login_rules(house),
        authentication=ClientAuthenticator(
            store=storage.oauth,
            secrets=client_secrets(house),
            assertions=ClientAssertions(store=storage.grants, clock=clock, issuer=issuer),
            guesses=guesses(house),
            refusals=RefusalLog(
                store=storage.audit, recorder=house.recorder, kept=house.settings.audit.refusals_kept
            ),
        ),
        access_tokens=access_tokens,
        refresh_tokens=refresh_tokens,
        bearers=AccessTokenVerifier(
            access_tokens=access_tokens, store=storage.grants, keyring=house.keyring, clock=clock
        ),
        issue=TokenIssuer(
            access_tokens=access_tokens,
            refresh_tokens=refresh_tokens,
            signer=house.signer,
            keyring=house.keyring,
            mapping=mapping,
            clock=clock,
            issuer=issuer,
        ),
        verifier=verifier,
    )


class AccessKeyLookup:
    """Fills oauth/ports.py AccessKeys from the permission room."""

    def __init__(self, keys: AccessKeyVerifier) -> None:
        self._keys = keys

    async def application_of(self, access_key: str, *, source: str) -> int:
        return (await self._keys.by_value(access_key, source=source)).application_id


def client_secrets(house: Services) -> ClientSecretVerifier:
    return ClientSecretVerifier(
        masters=house.masters,
        hashes=house.passwords,
        guesses=guesses(house),
        clock=house.clock,
        memory_key=secrets.token_bytes(CACHE_KEY_BYTES),
    )


def client_origins(house: Services) -> ClientOriginCache:
    return ClientOriginCache(store=house.storage.oauth, clock=house.clock)


def oauth_endpoints(house: Services, them: AccountServices, *, pages: PageRenderer) -> list[Endpoint]:
    """In the order of interface §4.2, then what R3 adds to it."""
    rooms, browsers = oauth_services(house), build_browsers(house, them)
    return [
        *authorize_endpoints(house, them, pages=pages),
        *token_endpoints(house, rooms),
        *device_endpoints(
            house,
            authentication=rooms.authentication,
            interactions=them.interactions,
            browsers=browsers,
            denied_page=denied_page(house, them, pages),
            pages=pages,
        ),
        *logout_endpoints(
            clients=house.storage.oauth,
            verifier=rooms.verifier,
            sessions=them.sessions,
            browsers=browsers,
            pages=pages,
        ),
    ]


def authorize_endpoints(house: Services, them: AccountServices, *, pages: PageRenderer) -> list[Endpoint]:
    """Discovery and authorize; the pages that authorize leads to are in people.py."""
    rates = house.settings.rates
    document = provider_metadata(house.settings.server.base_url, languages=LANGUAGES)
    authorize = AuthorizeEndpoint(
        authorize=them.authorizing.authorize,
        interactions=them.interactions,
        browsers=build_browsers(house, them),
        error_page=ClientErrorPage(administrators=AdministratorCheck(house.reading), pages=pages),
        denied_page=denied_page(house, them, pages),
        volume=RateLimiter({AUTHORIZE_LIMIT_KEY: RateLimit(rates.login)} if rates.enabled else {}, clock=house.clock),
    )
    return [*DiscoveryEndpoints(document).endpoints(), *authorize.endpoints()]


def denied_page(house: Services, them: AccountServices, pages: PageRenderer) -> AccessDeniedPage:
    return AccessDeniedPage(
        reasons=denied_reasons(house, them.game.rules), owners=application_owners(house), pages=pages
    )


def token_endpoints(house: Services, rooms: OAuthServices) -> list[Endpoint]:
    """Token, userinfo, revocation, exchange, introspection."""
    clock, issuer = house.clock, house.settings.server.base_url
    tokens = TokenEndpoint(
        authentication=rooms.authentication, grants=grant_types(house, rooms), rules=rooms.rules, issue=rooms.issue
    )
    revocation = Revocation(
        store=house.storage.grants,
        authentication=rooms.authentication,
        refresh_tokens=rooms.refresh_tokens,
        bearers=rooms.bearers,
        recorder=house.recorder,
        clock=clock,
    )
    introspection = Introspection(
        logins=house.storage.logins,
        authentication=rooms.authentication,
        access_keys=AccessKeyLookup(key_proofs(house)),
        refresh_tokens=rooms.refresh_tokens,
        bearers=rooms.bearers,
        clock=clock,
        issuer=issuer,
    )
    exchange = ExchangeEndpoints(
        id_tokens=IdTokenExchange(
            accounts=house.storage.accounts, verifier=rooms.verifier, signer=house.signer, clock=clock, issuer=issuer
        ),
        user_jwts=UserJwtExchange(
            bearers=rooms.bearers, rules=rooms.rules, signer=house.signer, clock=clock, issuer=issuer
        ),
    )
    return [
        TokenHttpEndpoint(tokens).endpoint(),
        UserInfoEndpoint(UserInfo(bearers=rooms.bearers, mapping=rooms.mapping)).endpoint(),
        *RevocationEndpoints(revocation).endpoints(),
        *exchange.endpoints(),
        IntrospectionEndpoint(introspection).endpoint(),
    ]


def grant_types(house: Services, rooms: OAuthServices) -> dict[str, GrantType]:
    store, recorder, clock = house.storage.grants, house.recorder, house.clock
    return {
        GrantName.AUTHORIZATION_CODE: AuthorizationCodeGrant(store=store, recorder=recorder, clock=clock),
        GrantName.REFRESH_TOKEN: RefreshTokenGrant(
            store=store,
            tokens=rooms.refresh_tokens,
            recorder=recorder,
            clock=clock,
            grace=house.settings.oauth.refresh_grace_seconds,
        ),
        GrantName.DEVICE_CODE: DeviceCodeGrant(store=house.storage.device_requests, rules=rooms.rules, clock=clock),
    }
