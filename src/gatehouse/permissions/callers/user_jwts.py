"""The JWT a person or a service account shows: believed by its signature, then remembered.

What a signature proves stays true, so the work is done once for each token. Whether the token still counts is
asked every time: its key and its end here, the account's `rev` by whoever has the facts.
"""

from typing import Final, TypeAlias

from gatehouse.kernel.digests import sha256
from gatehouse.kernel.weighted_cache import WeightedCache
from gatehouse.tokens.claims import ExchangedUserClaims, ServiceAccountClaims, UserJwtClaims, typ_of
from gatehouse.tokens.decoding import parse_jws
from gatehouse.tokens.errors import InvalidToken
from gatehouse.tokens.verifying import TokenVerifier

CLAIMS_CACHE_BYTES: Final = 32 * 2**20  # ten thousand tokens of ordinary length
CLAIMS_WEIGHT: Final = 3  # bytes of claims in memory for each character of a token
CLAIMS_CACHE_GROUP: Final = "believed"

CallerClaims: TypeAlias = UserJwtClaims | ExchangedUserClaims | ServiceAccountClaims
CLAIMS_BY_TYP: Final = {typ_of(kind): kind for kind in (UserJwtClaims, ExchangedUserClaims, ServiceAccountClaims)}


class CallerJwtVerifier:
    def __init__(self, verifier: TokenVerifier) -> None:
        self._verifier = verifier
        self._cache: WeightedCache[CallerClaims] = WeightedCache(CLAIMS_CACHE_BYTES)

    async def verify(self, jwt: str, *, expiry_grace: int = 0) -> CallerClaims:
        """Raise InvalidToken; only a user JWT may be past its end, by so many seconds.

        The claims say whose facts to read, and count after `confirm` with these.
        """
        digest = sha256(jwt)
        claims = self._cache.get(CLAIMS_CACHE_GROUP, digest)
        if claims is not None:
            await self._verifier.recheck_with_cached_keys(claims, expiry_grace=grace_for(type(claims), expiry_grace))
            return claims
        kind = claims_class_of(jwt)
        claims = await self._verifier.verify_with_cached_keys(jwt, kind, expiry_grace=grace_for(kind, expiry_grace))
        self._cache.put(CLAIMS_CACHE_GROUP, digest, claims, CLAIMS_WEIGHT * len(jwt))
        return claims

    async def recheck_key(self, claims: CallerClaims, *, keys_version: int) -> None:
        """Raise InvalidToken when the key is not trusted any more in the version that came with the facts."""
        await self._verifier.recheck_key(claims, keys_version=keys_version)


def grace_for(kind: type[CallerClaims], expiry_grace: int) -> int:
    """An exchanged JWT dies with its access token, a service account's with its end (R2)."""
    return expiry_grace if kind is UserJwtClaims else 0


def claims_class_of(jwt: str) -> type[CallerClaims]:
    """What it claims to be, and is then verified as in full."""
    typ = parse_jws(jwt).payload.get("typ")
    kind = CLAIMS_BY_TYP.get(typ) if typ is None or isinstance(typ, str) else None
    if kind is None:
        raise InvalidToken("not an accepted token type")
    return kind
