"""The part of the composition root that is about single sign-on: one function for each group of endpoints."""

import secrets
from dataclasses import dataclass
from typing import Final

from gatehouse.app.authorizing import Administrators, denied_reasons, owners_of
from gatehouse.app.callers import key_proofs, proofs
from gatehouse.app.devices import device_endpoints
from gatehouse.app.guessing import guesses
from gatehouse.app.house import House
from gatehouse.app.logout import logout_endpoints
from gatehouse.app.people import People, browsers_of, login_rules
from gatehouse.audit.refusals import Refusals
from gatehouse.keys.sealing import expand
from gatehouse.oauth.access_tokens import AccessTokens
from gatehouse.oauth.bearers import Bearers
from gatehouse.oauth.claim_mapping import MappedClaims
from gatehouse.oauth.client_assertions import ClientAssertions
from gatehouse.oauth.client_authentication import ClientAuthentication
from gatehouse.oauth.client_secrets import ClientSecrets
from gatehouse.oauth.discovery import metadata
from gatehouse.oauth.exchange import AccessTokenForJwt, JwtForIdToken
from gatehouse.oauth.grants.authorization_code import AuthorizationCode
from gatehouse.oauth.grants.device_code import DeviceCode
from gatehouse.oauth.grants.refresh_token import RefreshToken
from gatehouse.oauth.introspection import Introspection
from gatehouse.oauth.issue import Issue
from gatehouse.oauth.origins import Origins
from gatehouse.oauth.ports import ApplicationRules, ClaimMapping
from gatehouse.oauth.refresh_tokens import RefreshTokens
from gatehouse.oauth.revocation import Revocation
from gatehouse.oauth.token_endpoint import GrantType, TokenEndpoint
from gatehouse.oauth.userinfo import UserInfo
from gatehouse.oauth.vocabulary import GrantName
from gatehouse.permissions.callers.key_proofs import KeyProofs
from gatehouse.permissions.held import HeldByUsers
from gatehouse.throttle.volume import Volume, VolumeLimit
from gatehouse.tokens.verifying import Verifier
from gatehouse.web.oauth.authorize import BEGINNING, AuthorizeEndpoint
from gatehouse.web.oauth.client_error import ClientErrorPage
from gatehouse.web.oauth.denied_page import DeniedPage
from gatehouse.web.oauth.discovery import DiscoveryEndpoints
from gatehouse.web.oauth.exchange import ExchangeEndpoints
from gatehouse.web.oauth.introspection import IntrospectionEndpoint
from gatehouse.web.oauth.revocation import RevocationEndpoints
from gatehouse.web.oauth.token import TokenEndpoints
from gatehouse.web.oauth.userinfo import UserInfoEndpoint
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.pages.words import LANGUAGES
from gatehouse.web.routes.table import Endpoint

MEMORY_KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthRooms:
    """Built once: some of them remember."""

    mapping: ClaimMapping
    rules: ApplicationRules
    authentication: ClientAuthentication
    access_tokens: AccessTokens
    refresh_tokens: RefreshTokens
    bearers: Bearers
    issue: Issue
    verifier: Verifier


def oauth_rooms(house: House) -> OAuthRooms:
    storage, clock, issuer = house.storage, house.clock, house.settings.server.base_url
    verifier = proofs(house).verifier
    mapping = MappedClaims(HeldByUsers(reading=house.reading, clock=clock))
    access_tokens = AccessTokens(expand(house.instance_key, "access-tokens"))
    refresh_tokens = RefreshTokens(
        store=storage.grants, signer=house.signer, verifier=verifier, clock=clock, issuer=issuer
    )
    return OAuthRooms(
        mapping=mapping,
        rules=login_rules(house),
        authentication=ClientAuthentication(
            store=storage.oauth,
            secrets=client_secrets(house),
            assertions=ClientAssertions(store=storage.grants, clock=clock, issuer=issuer),
            guesses=guesses(house),
            refusals=Refusals(store=storage.audit, recorder=house.recorder, kept=house.settings.audit.refusals_kept),
        ),
        access_tokens=access_tokens,
        refresh_tokens=refresh_tokens,
        bearers=Bearers(access_tokens=access_tokens, store=storage.grants, keyring=house.keyring, clock=clock),
        issue=Issue(
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


class HeldKeys:
    """Fills oauth/ports.py AccessKeys from the permission room."""

    def __init__(self, keys: KeyProofs) -> None:
        self._keys = keys

    async def application_of(self, access_key: str, *, source: str) -> int:
        return (await self._keys.by_value(access_key, source=source)).application_id


def client_secrets(house: House) -> ClientSecrets:
    return ClientSecrets(
        masters=house.masters,
        hashes=house.passwords,
        guesses=guesses(house),
        clock=house.clock,
        memory_key=secrets.token_bytes(MEMORY_KEY_BYTES),
    )


def origins(house: House) -> Origins:
    return Origins(store=house.storage.oauth, clock=house.clock)


def oauth_endpoints(house: House, them: People, *, pages: Pages) -> list[Endpoint]:
    """In the order of interface §4.2, then what R3 adds to it."""
    rooms, browsers = oauth_rooms(house), browsers_of(house, them)
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


def authorize_endpoints(house: House, them: People, *, pages: Pages) -> list[Endpoint]:
    """Discovery and authorize; the pages that authorize leads to are in people.py."""
    rates = house.settings.rates
    document = metadata(house.settings.server.base_url, languages=LANGUAGES)
    authorize = AuthorizeEndpoint(
        authorize=them.authorizing.authorize,
        interactions=them.interactions,
        browsers=browsers_of(house, them),
        error_page=ClientErrorPage(administrators=Administrators(house.reading), pages=pages),
        denied_page=denied_page(house, them, pages),
        volume=Volume({BEGINNING: VolumeLimit(rates.login)} if rates.enabled else {}, clock=house.clock),
    )
    return [*DiscoveryEndpoints(document).endpoints(), *authorize.endpoints()]


def denied_page(house: House, them: People, pages: Pages) -> DeniedPage:
    return DeniedPage(reasons=denied_reasons(house, them.game.rules), owners=owners_of(house), pages=pages)


def token_endpoints(house: House, rooms: OAuthRooms) -> list[Endpoint]:
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
        access_keys=HeldKeys(key_proofs(house)),
        refresh_tokens=rooms.refresh_tokens,
        bearers=rooms.bearers,
        clock=clock,
        issuer=issuer,
    )
    exchange = ExchangeEndpoints(
        id_tokens=JwtForIdToken(
            accounts=house.storage.accounts, verifier=rooms.verifier, signer=house.signer, clock=clock, issuer=issuer
        ),
        user_jwts=AccessTokenForJwt(
            bearers=rooms.bearers, rules=rooms.rules, signer=house.signer, clock=clock, issuer=issuer
        ),
    )
    return [
        TokenEndpoints(tokens).endpoint(),
        UserInfoEndpoint(UserInfo(bearers=rooms.bearers, mapping=rooms.mapping)).endpoint(),
        *RevocationEndpoints(revocation).endpoints(),
        *exchange.endpoints(),
        IntrospectionEndpoint(introspection).endpoint(),
    ]


def grant_types(house: House, rooms: OAuthRooms) -> dict[str, GrantType]:
    store, recorder, clock = house.storage.grants, house.recorder, house.clock
    return {
        GrantName.AUTHORIZATION_CODE: AuthorizationCode(store=store, recorder=recorder, clock=clock),
        GrantName.REFRESH_TOKEN: RefreshToken(
            store=store,
            tokens=rooms.refresh_tokens,
            recorder=recorder,
            clock=clock,
            grace=house.settings.oauth.refresh_grace_seconds,
        ),
        GrantName.DEVICE_CODE: DeviceCode(store=house.storage.device_requests, rules=rooms.rules, clock=clock),
    }
