"""Token exchange: a user JWT for an id_token, an access token for a user JWT (interface §4.2, R2)."""

import secrets
from typing import Final

from msgspec import Struct

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import AccountKind, User
from gatehouse.accounts.store import AccountStore, ApplicationAccess
from gatehouse.kernel.addresses import Address, any_network_contains, parse_network
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.access_token_verifier import AccessTokenVerifier, VerifiedAccessToken
from gatehouse.oauth.errors import AccessDenied, UnauthorizedClient
from gatehouse.oauth.given_grants import GrantUses
from gatehouse.oauth.id_tokens import ID_TOKEN_SECONDS
from gatehouse.oauth.store import GrantStore, may_log_in_to_client
from gatehouse.oauth.vocabulary import PROFILE, TRUST
from gatehouse.tokens.claim_sizes import tag_claims
from gatehouse.tokens.claims import (
    ExchangedIdClaims,
    ExchangedUserClaims,
    InvalidToken,
    UserJwtClaims,
    location_digest,
)
from gatehouse.tokens.signer import Signer
from gatehouse.tokens.verifier import TokenVerifier

SALT_BYTES: Final = 16


class ExchangedIdToken(Struct, frozen=True, kw_only=True):
    id_token: str
    expires_in: int


class IdTokenExchange(Struct, kw_only=True, eq=False):
    """`exchange`: returns an id_token for the service itself for a user JWT."""

    accounts: AccountStore
    rules: ApplicationAccess
    verifier: TokenVerifier
    signer: Signer
    clock: Clock
    issuer: str

    async def exchange(self, jwt: str, address: Address | None) -> ExchangedIdToken:
        """Exchange the JWT. Raises InvalidToken, and AccessDenied for an address that the JWT does not allow."""
        claims = await self.verifier.verify_with_cached_keys(jwt, UserJwtClaims)
        if claims.aud is not None:
            raise InvalidToken("a JWT for a single application cannot be exchanged (R2)")
        user = await self._owner(claims)
        keys_version = await self.verifier.refresh_and_recheck_key(claims)
        refuse_other_addresses(claims, address)
        now = self.clock.now()
        ends_at = min(now + ID_TOKEN_SECONDS, claims.exp)
        # Email and nickname are left out: they need scopes, and none is requested here (interface §2.1).
        id_claims = ExchangedIdClaims(iss=self.issuer, iat=now, exp=ends_at, sub=user.user_id, aud=(self.issuer,))
        id_token = await self.signer.sign(id_claims, keys_version=keys_version)
        return ExchangedIdToken(id_token=id_token, expires_in=ends_at - now)

    async def _owner(self, claims: UserJwtClaims) -> User:
        try:
            user = await self.accounts.user(claims.uid)
        except UserNotFound:
            raise InvalidToken(f"user {claims.uid} does not exist") from None
        if user.blocked or user.rev != claims.rev or user.kind is not AccountKind.PERSON:
            raise InvalidToken(f"user {claims.uid} is blocked or the JWT was revoked")
        if not await self.rules.may_log_in(user, ()):
            raise AccessDenied(f"user {claims.uid} is banned, or a guest for certain applications only")
        return user


class UserJwtExchange(Struct, kw_only=True, eq=False):
    """`exchangeToken`: returns a user JWT with the claims that the access token allows; it ends with its grant."""

    access_token_verifier: AccessTokenVerifier
    rules: ApplicationAccess
    uses: GrantUses
    signer: Signer
    clock: Clock
    issuer: str

    async def exchange(self, access_token: str) -> str:
        """Exchange the access token. Raises InvalidToken, UnauthorizedClient, AccessDenied."""
        return await self.exchange_verified(await self.access_token_verifier.verify(access_token))

    async def exchange_verified(self, bearer: VerifiedAccessToken) -> str:
        client, user = bearer.holder.client, bearer.holder.user
        if not client.may_exchange:
            raise UnauthorizedClient(f"{client.client_id} is not allowed to exchange access tokens")
        if not await may_log_in_to_client(self.rules, user, client, None):  # an API's token is none of these
            raise AccessDenied(f"application {client.application_id} does not allow {user.user_id} to sign in")
        await self.uses.mark(bearer.holder.grant)
        return await self.signer.sign(self._claims(bearer), keys_version=bearer.holder.keys_version)

    def _claims(self, bearer: VerifiedAccessToken) -> ExchangedUserClaims:
        client, user, scopes = bearer.holder.client, bearer.holder.user, bearer.token.scopes
        slt = secrets.token_urlsafe(SALT_BYTES)
        return ExchangedUserClaims(
            iss=self.issuer,
            iat=self.clock.now(),
            exp=bearer.token.ends_at,
            uid=user.user_id,
            sub=user.user_id,
            nick=user.nick if client.first_party or PROFILE in scopes else "",
            auth="openid",
            slt=slt,
            loc=location_digest(user.country, slt),
            **tag_claims(user.tag_text if client.first_party or TRUST in scopes else ""),
            cntry=user.country,
            lng=user.lang,
            rev=user.rev,
            azp=client.client_id,
            gid=bearer.holder.grant.grant_id,
        )


class GrantLiveness(Struct, kw_only=True, eq=False):
    """Tells permissions whether the grant of an exchanged JWT is live: the JWT ends with it (R2)."""

    store: GrantStore
    clock: Clock

    async def is_live(self, grant_id: str) -> bool:
        now = self.clock.now()
        holder = await self.store.find_live_grant(grant_id, now)
        return holder is not None and not holder.is_banned(now)


def refuse_other_addresses(claims: UserJwtClaims, address: Address | None) -> None:
    """Refuse an address that `fip` does not allow (R2)."""
    networks = tuple(parse_network(text) for text in claims.fip or ())
    if networks and (address is None or not any_network_contains(networks, address)):
        raise AccessDenied("the client IP address is not in fip")
