"""The part of the composition root that is about signing out for clients."""

import secrets
from dataclasses import dataclass
from typing import Final

from gatehouse.accounts.sessions import Sessions
from gatehouse.app.services.accounts import AccountServices, build_browsers, login_rules
from gatehouse.app.services.authentication import authentication_services, key_proofs
from gatehouse.app.services.authorization import (
    AdministratorCheck,
    application_owners,
    denied_reasons,
    device_endpoints,
)
from gatehouse.app.services.core import Services, guesses
from gatehouse.audit.recorder import RefusalLog
from gatehouse.keys.sealing import derive_key
from gatehouse.oauth.claims import MappedClaims
from gatehouse.oauth.client_auth import ClientAuthenticator, ClientSecretVerifier
from gatehouse.oauth.discovery import provider_metadata
from gatehouse.oauth.exchange import IdTokenExchange, UserJwtExchange
from gatehouse.oauth.grants import AuthorizationCodeGrant, DeviceCodeGrant, RefreshTokenGrant
from gatehouse.oauth.introspection import Introspection
from gatehouse.oauth.logout import LogoutRequests
from gatehouse.oauth.private_key_jwt import ClientAssertions
from gatehouse.oauth.redirects import ClientOriginCache
from gatehouse.oauth.revocation import Revocation
from gatehouse.oauth.store import ApplicationLoginRules, ClientStore
from gatehouse.oauth.token_endpoint import GrantType, TokenEndpoint
from gatehouse.oauth.tokens import AccessTokens, AccessTokenVerifier, RefreshTokens, TokenIssuer
from gatehouse.oauth.userinfo import UserInfo
from gatehouse.oauth.vocabulary import GrantName
from gatehouse.permissions.authentication.vouching import AccessKeyVerifier
from gatehouse.permissions.holdings import HoldingsReader
from gatehouse.throttle.rate_limiter import RateLimit, RateLimiter
from gatehouse.tokens.verifier import TokenVerifier
from gatehouse.web.api.keys import DiscoveryEndpoints
from gatehouse.web.api.oauth.authorize import AUTHORIZE_LIMIT_KEY, AuthorizeEndpoint, ClientErrorPage
from gatehouse.web.api.oauth.logout import LogoutEndpoints
from gatehouse.web.api.oauth.tokens import (
    ExchangeEndpoints,
    IntrospectionEndpoint,
    RevocationEndpoints,
    TokenHttpEndpoint,
    UserInfoEndpoint,
)
from gatehouse.web.http.browser import BrowserSessions
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.access_denied import AccessDeniedPage
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.translations import LANGUAGES


def logout_endpoints(
    *,
    clients: ClientStore,
    verifier: TokenVerifier,
    sessions: Sessions,
    browsers: BrowserSessions,
    pages: PageRenderer,
) -> list[Endpoint]:
    logouts = LogoutRequests(clients=clients, verifier=verifier)
    return LogoutEndpoints(logouts=logouts, sessions=sessions, browsers=browsers, pages=pages).endpoints()


# The part of the composition root that is about single sign-on: one function for each group of endpoints.


CACHE_KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthServices:
    """Built once: some of them remember."""

    mapping: MappedClaims
    rules: ApplicationLoginRules
    authentication: ClientAuthenticator
    access_tokens: AccessTokens
    refresh_tokens: RefreshTokens
    bearers: AccessTokenVerifier
    issue: TokenIssuer
    verifier: TokenVerifier


def oauth_services(services: Services) -> OAuthServices:
    storage, clock, issuer = services.storage, services.clock, services.settings.server.base_url
    verifier = authentication_services(services).verifier
    mapping = MappedClaims(HoldingsReader(permission_loader=services.permission_loader, clock=clock))
    access_tokens = AccessTokens(derive_key(services.instance_key, "access-tokens"))
    refresh_tokens = RefreshTokens(
        store=storage.grants, signer=services.signer, verifier=verifier, clock=clock, issuer=issuer
    )
    return OAuthServices(
        mapping=mapping,
        rules=login_rules(services),
        authentication=ClientAuthenticator(
            store=storage.clients,
            secrets=client_secrets(services),
            assertions=ClientAssertions(store=storage.grants, clock=clock, issuer=issuer),
            guesses=guesses(services),
            refusals=RefusalLog(
                store=storage.audit, recorder=services.recorder, max_refusals=services.settings.audit.refusals_kept
            ),
        ),
        access_tokens=access_tokens,
        refresh_tokens=refresh_tokens,
        bearers=AccessTokenVerifier(
            access_tokens=access_tokens, store=storage.grants, keyring=services.keyring, clock=clock
        ),
        issue=TokenIssuer(
            access_tokens=access_tokens,
            refresh_tokens=refresh_tokens,
            signer=services.signer,
            keyring=services.keyring,
            mapping=mapping,
            clock=clock,
            issuer=issuer,
        ),
        verifier=verifier,
    )


class AccessKeyLookup:
    """Fills oauth/store.py AccessKeys from the permission room."""

    def __init__(self, keys: AccessKeyVerifier) -> None:
        self._keys = keys

    async def application_of(self, access_key: str, *, source: str) -> int:
        return (await self._keys.verify_value(access_key, source=source)).application_id


def client_secrets(services: Services) -> ClientSecretVerifier:
    return ClientSecretVerifier(
        masters=services.masters,
        hashes=services.passwords,
        guesses=guesses(services),
        clock=services.clock,
        cache_key=secrets.token_bytes(CACHE_KEY_BYTES),
    )


def client_origins(services: Services) -> ClientOriginCache:
    return ClientOriginCache(store=services.storage.clients, clock=services.clock)


def oauth_endpoints(services: Services, accounts: AccountServices, *, pages: PageRenderer) -> list[Endpoint]:
    """In the order of interface §4.2, then what R3 adds to it."""
    rooms, browsers = oauth_services(services), build_browsers(services, accounts)
    return [
        *authorize_endpoints(services, accounts, pages=pages),
        *token_endpoints(services, rooms),
        *device_endpoints(
            services,
            authentication=rooms.authentication,
            interactions=accounts.sign_in_flows,
            browsers=browsers,
            denied_page=denied_page(services, accounts, pages),
            pages=pages,
        ),
        *logout_endpoints(
            clients=services.storage.clients,
            verifier=rooms.verifier,
            sessions=accounts.sessions,
            browsers=browsers,
            pages=pages,
        ),
    ]


def authorize_endpoints(services: Services, accounts: AccountServices, *, pages: PageRenderer) -> list[Endpoint]:
    """Discovery and authorize; the pages that authorize leads to are in people.py."""
    rates = services.settings.rates
    document = provider_metadata(services.settings.server.base_url, languages=LANGUAGES)
    authorize = AuthorizeEndpoint(
        authorize=accounts.authorization.authorize,
        sign_in_flows=accounts.sign_in_flows,
        browsers=build_browsers(services, accounts),
        error_page=ClientErrorPage(administrators=AdministratorCheck(services.permission_loader), pages=pages),
        denied_page=denied_page(services, accounts, pages),
        rate_limiter=RateLimiter(
            {AUTHORIZE_LIMIT_KEY: RateLimit(rates.login)} if rates.enabled else {}, clock=services.clock
        ),
    )
    return [*DiscoveryEndpoints(document).endpoints(), *authorize.endpoints()]


def denied_page(services: Services, accounts: AccountServices, pages: PageRenderer) -> AccessDeniedPage:
    return AccessDeniedPage(
        reasons=denied_reasons(services, accounts.games.login_rules), owners=application_owners(services), pages=pages
    )


def token_endpoints(services: Services, oauth: OAuthServices) -> list[Endpoint]:
    """Token, userinfo, revocation, exchange, introspection."""
    clock, issuer = services.clock, services.settings.server.base_url
    tokens = TokenEndpoint(
        authentication=oauth.authentication,
        grants=grant_types(services, oauth),
        rules=oauth.rules,
        token_issuer=oauth.issue,
    )
    revocation = Revocation(
        store=services.storage.grants,
        authentication=oauth.authentication,
        refresh_tokens=oauth.refresh_tokens,
        access_token_verifier=oauth.bearers,
        recorder=services.recorder,
        clock=clock,
    )
    introspection = Introspection(
        logins=services.storage.logins,
        authentication=oauth.authentication,
        access_keys=AccessKeyLookup(key_proofs(services)),
        refresh_tokens=oauth.refresh_tokens,
        access_token_verifier=oauth.bearers,
        clock=clock,
        issuer=issuer,
    )
    exchange = ExchangeEndpoints(
        id_tokens=IdTokenExchange(
            accounts=services.storage.accounts,
            verifier=oauth.verifier,
            signer=services.signer,
            clock=clock,
            issuer=issuer,
        ),
        user_jwts=UserJwtExchange(
            access_token_verifier=oauth.bearers, rules=oauth.rules, signer=services.signer, clock=clock, issuer=issuer
        ),
    )
    return [
        TokenHttpEndpoint(tokens).endpoint(),
        UserInfoEndpoint(UserInfo(access_token_verifier=oauth.bearers, mapping=oauth.mapping)).endpoint(),
        *RevocationEndpoints(revocation).endpoints(),
        *exchange.endpoints(),
        IntrospectionEndpoint(introspection).endpoint(),
    ]


def grant_types(services: Services, oauth: OAuthServices) -> dict[str, GrantType]:
    store, recorder, clock = services.storage.grants, services.recorder, services.clock
    return {
        GrantName.AUTHORIZATION_CODE: AuthorizationCodeGrant(store=store, recorder=recorder, clock=clock),
        GrantName.REFRESH_TOKEN: RefreshTokenGrant(
            store=store,
            tokens=oauth.refresh_tokens,
            recorder=recorder,
            clock=clock,
            grace=services.settings.oauth.refresh_grace_seconds,
        ),
        GrantName.DEVICE_CODE: DeviceCodeGrant(
            store=services.storage.device_requests, rules=oauth.rules, clock=clock
        ),
    }
