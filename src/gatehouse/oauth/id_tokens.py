"""The id_token of a grant: callers have redeemed what it is issued for (R2, R9, interface §2.1)."""

import hashlib
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct

from gatehouse.keys.encoding import encode_base64url
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.acr import acr_of, amr_of
from gatehouse.oauth.claims import email_for, nickname_for
from gatehouse.oauth.mapped_claims import RESERVED_CLAIMS, MappedClaims, application_sources, fitting_claims
from gatehouse.oauth.model import ClientProfile, GrantHolder
from gatehouse.oauth.user_claims import ID_TOKEN, UserClaims, claims_at
from gatehouse.tokens.claim_sizes import MAX_ID_TOKEN, claims_that_fit, json_length, payload_bytes_left
from gatehouse.tokens.claims import IdClaims, OidcIdClaims
from gatehouse.tokens.signer import Signer

ID_TOKEN_SECONDS: Final = 3_600  # interface §8
# The hash function of the signature: Ed25519 has SHA-512 inside (OpenID Connect Core §3.1.3.6, RFC 8032).
AT_HASH_FUNCTIONS: Final = {
    Algorithm.RS256: hashlib.sha256,
    Algorithm.ES256: hashlib.sha256,
    Algorithm.EDDSA: hashlib.sha512,
}


class IdTokens(Struct, kw_only=True, eq=False):
    signer: Signer
    mapping: MappedClaims
    user_claims: UserClaims
    issuer: str

    async def make(self, holder: GrantHolder, scopes: Collection[str], access_token: str, now: int) -> str:
        """Sign the id_token; `access_token` is "" if none is issued with it (profile oidc only)."""
        if holder.client.profile is ClientProfile.NATIVE:
            return await self._native(holder, scopes, access_token, now)
        return await self._oidc(holder, scopes, access_token, now)

    async def _native(self, holder: GrantHolder, scopes: Collection[str], access_token: str, now: int) -> str:
        grant, user, client = holder.grant, holder.user, holder.client
        alg = client.token_settings.id_token_alg
        claims = IdClaims(
            iss=self.issuer,
            iat=now,
            exp=now + ID_TOKEN_SECONDS,
            sub=user.user_id,
            aud=(self.issuer, client.client_id),
            azp=client.client_id,
            nonce=grant.nonce,
            email=email_for(user, scopes),
            nickname=nickname_for(user, scopes),
            auth_time=grant.auth_time,
            at_hash=at_hash(access_token, alg),
            sid=grant.session_id if client.backchannel_logout_uri else None,
        )
        sign = partial(self.signer.sign, alg=alg, keys_version=holder.keys_version)
        if not client.claims:
            return await sign(claims)
        marked = msgspec.structs.replace(claims, claims_omitted=True)
        mapped = claims_that_fit(await self.mapping.claims(user, client), payload_bytes_left(marked, MAX_ID_TOKEN))
        return await sign(claims if len(mapped) == len(client.claims) else marked, extra_claims=mapped)

    async def _oidc(self, holder: GrantHolder, scopes: Collection[str], access_token: str, now: int) -> str:
        """Sign the id_token of R9, with what the user holds as far as it fits."""
        grant, user, client = holder.grant, holder.user, holder.client
        alg = client.token_settings.id_token_alg
        claims = OidcIdClaims(
            iss=self.issuer,
            iat=now,
            exp=now + ID_TOKEN_SECONDS,
            sub=user.user_id,
            aud=client.client_id,
            nonce=grant.nonce,
            auth_time=grant.auth_time,
            acr=grant.acr or acr_of(grant),
            amr=amr_of(grant),
            at_hash=at_hash(access_token, alg) if access_token else None,
            sid=(grant.session_id or None) if client.backchannel_logout_uri else None,
        )
        names = claims_at(ID_TOKEN, holder, scopes)
        person = await self.user_claims.claims_of(user, names)
        held_claims = await self._held_claims(holder, names, claims, person)
        return await self.signer.sign(
            claims, alg=alg, keys_version=holder.keys_version, extra_claims={**held_claims, **person}
        )

    async def _held_claims(
        self, holder: GrantHolder, names: Collection[str], claims: OidcIdClaims, person: Mapping[str, object]
    ) -> Mapping[str, object]:
        """Return the claims by scope and the mapped ones; a mapped one has its name first."""
        client = holder.client
        mapped = {name: source for name, source in client.claims.items() if name not in RESERVED_CLAIMS}
        sources = {**application_sources(client.application_id, names), **mapped}
        if not sources:
            return {}
        marked = msgspec.structs.replace(claims, claims_omitted=tuple(sources))
        left = payload_bytes_left(marked, MAX_ID_TOKEN) - json_length(person)
        return fitting_claims(
            await self.mapping.load(holder.user.user_id, sources, client_id=client.client_id), sources, left
        )


def at_hash(access_token: str, alg: Algorithm) -> str:
    digest = AT_HASH_FUNCTIONS[alg](access_token.encode()).digest()
    return encode_base64url(digest[: len(digest) // 2]).decode()
