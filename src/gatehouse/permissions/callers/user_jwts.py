"""The JWT a person or a service account shows: believed by its signature, then remembered.

What a signature proves stays true, so the work is done once for each token. Whether the token still counts is
asked every time: its key and its end here, the account's `rev` by whoever has the facts.
"""

from typing import Final, TypeAlias

from gatehouse.kernel.digests import sha256
from gatehouse.kernel.weighted_cache import WeightedCache
from gatehouse.tokens.claims import ExchangedClaims, ServiceAccountClaims, UserClaims, typ_of
from gatehouse.tokens.decoding import take_apart
from gatehouse.tokens.errors import InvalidToken
from gatehouse.tokens.verifying import Verifier

CACHE_BYTES: Final = 32 * 2**20  # ten thousand tokens of ordinary length
CLAIMS_WEIGHT: Final = 3  # bytes of claims in memory for each character of a token
BELIEVED: Final = "believed"

Token: TypeAlias = UserClaims | ExchangedClaims | ServiceAccountClaims
CLASSES: Final = {typ_of(kind): kind for kind in (UserClaims, ExchangedClaims, ServiceAccountClaims)}


class UserJwts:
    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._believed: WeightedCache[Token] = WeightedCache(CACHE_BYTES)

    async def read(self, jwt: str, *, expired_by: int = 0) -> Token:
        """Raise InvalidToken; only a user JWT may be past its end, by so many seconds.

        The claims say whose facts to read, and count after `confirm` with these.
        """
        digest = sha256(jwt)
        claims = self._believed.get(BELIEVED, digest)
        if claims is not None:
            await self._verifier.verify_again(claims, expired_by=grace(type(claims), expired_by))
            return claims
        kind = class_of(jwt)
        claims = await self._verifier.verify_before_facts(jwt, kind, expired_by=grace(kind, expired_by))
        self._believed.put(BELIEVED, digest, claims, CLAIMS_WEIGHT * len(jwt))
        return claims

    async def confirm(self, claims: Token, *, keys_version: int) -> None:
        """Raise InvalidToken when the key is not trusted any more in the version that came with the facts."""
        await self._verifier.confirm(claims, keys_version=keys_version)


def grace(kind: type[Token], expired_by: int) -> int:
    """An exchanged JWT dies with its access token, a service account's with its end (R2)."""
    return expired_by if kind is UserClaims else 0


def class_of(jwt: str) -> type[Token]:
    """What it claims to be, and is then verified as in full."""
    typ = take_apart(jwt).payload.get("typ")
    kind = CLASSES.get(typ) if typ is None or isinstance(typ, str) else None
    if kind is None:
        raise InvalidToken("not an accepted token type")
    return kind
