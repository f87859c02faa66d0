"""JWTs of callers: verify those of people, service accounts and applications."""

from typing import Final, TypeAlias

from gatehouse.kernel.cache import WeightedCache
from gatehouse.kernel.digests import sha256
from gatehouse.tokens.claims import (
    ExchangedUserClaims,
    GeneratedServiceClaims,
    InvalidToken,
    ServiceAccountClaims,
    StaticServiceClaims,
    UserJwtClaims,
    typ_of,
)
from gatehouse.tokens.verifier import TokenVerifier, routing_members_of, split_jws

CLAIMS_CACHE_BYTES: Final = 32 * 2**20  # ten thousand tokens of ordinary length
CLAIMS_WEIGHT: Final = 3  # bytes of claims in memory for each character of a token
CLAIMS_CACHE_GROUP: Final = "claims"

CallerClaims: TypeAlias = UserJwtClaims | ExchangedUserClaims | ServiceAccountClaims
CLAIMS_BY_TYP: Final = {typ_of(kind): kind for kind in (UserJwtClaims, ExchangedUserClaims, ServiceAccountClaims)}


class CallerJwtVerifier:
    """Owns two caches of claims by JWT digest; an entry is never invalid, because a signature stays valid.

    Whether the token is still valid is checked for every request: its key and lifetime here, the account's `rev` or
    the stored service token with the facts. A verification returns the claims with the version of the keys that they
    were checked in: they are valid only after `recheck_key` with the version that came with the facts.
    """

    def __init__(self, verifier: TokenVerifier) -> None:
        self._verifier = verifier
        self._callers: WeightedCache[CallerClaims] = WeightedCache(CLAIMS_CACHE_BYTES)
        self._services: WeightedCache[StaticServiceClaims] = WeightedCache(CLAIMS_CACHE_BYTES // 8)

    @property
    def cache_weight(self) -> int:
        """Estimated bytes of the cached claims."""
        return self._callers.weight + self._services.weight

    async def verify(self, jwt: str, *, expiry_grace: int = 0) -> tuple[CallerClaims, int]:
        """Verify a JWT; only a user JWT may be expired, by at most the grace seconds. Raises InvalidToken."""
        digest = sha256(jwt)
        claims = self._callers.get(CLAIMS_CACHE_GROUP, digest)
        if claims is not None:
            await self._verifier.recheck_with_cached_keys(claims, expiry_grace=grace_for(type(claims), expiry_grace))
        else:
            kind = claims_class_of(jwt)
            grace = grace_for(kind, expiry_grace)
            claims = await self._verifier.verify_with_cached_keys(jwt, kind, expiry_grace=grace)
            self._callers.put(CLAIMS_CACHE_GROUP, digest, claims, CLAIMS_WEIGHT * len(jwt))
        return claims, self._verifier.keys_version

    async def verify_service_jwt(self, jwt: str) -> tuple[StaticServiceClaims | GeneratedServiceClaims, int]:
        """Verify a service JWT of either kind; only what this service signed is cached. Raises InvalidToken."""
        digest = sha256(jwt)
        cached = self._services.get(CLAIMS_CACHE_GROUP, digest)
        if cached is not None:
            await self._verifier.recheck_with_cached_keys(cached)
            return cached, self._verifier.keys_version
        claims = await self._verifier.verify_service_jwt(jwt)
        if isinstance(claims, StaticServiceClaims):
            self._services.put(CLAIMS_CACHE_GROUP, digest, claims, CLAIMS_WEIGHT * len(jwt))
        return claims, self._verifier.keys_version

    async def recheck_key(
        self, claims: CallerClaims | StaticServiceClaims, *, checked_in: int, keys_version: int
    ) -> None:
        """Raise InvalidToken when the key is not trusted any more in the version that came with the facts.

        In the version that the claims were checked in, it is.
        """
        if keys_version != checked_in:
            await self._verifier.recheck_key(claims, keys_version=keys_version)


def grace_for(kind: type[CallerClaims], expiry_grace: int) -> int:
    """Return the grace seconds: none for an exchanged JWT and for that of a service account (R2)."""
    return expiry_grace if kind is UserJwtClaims else 0


def claims_class_of(jwt: str) -> type[CallerClaims]:
    """Return the class of claims by the token's type; the token is then fully verified as that class."""
    typ = routing_members_of(split_jws(jwt).payload).typ
    kind = CLAIMS_BY_TYP.get(typ) if typ is None or isinstance(typ, str) else None
    if kind is None:
        raise InvalidToken("not an accepted token type")
    return kind
