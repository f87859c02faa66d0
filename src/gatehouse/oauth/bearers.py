"""Who is behind an access token: the one place where one is believed."""

from dataclasses import dataclass, replace

from gatehouse.kernel.clock import Clock
from gatehouse.keys.keyring import Keyring
from gatehouse.oauth.access_tokens import AccessToken, AccessTokens
from gatehouse.oauth.model import GrantHolder
from gatehouse.oauth.store import GrantStore
from gatehouse.tokens.errors import InvalidToken


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedAccessToken:
    token: AccessToken
    holder: GrantHolder


class AccessTokenVerifier:
    def __init__(self, *, access_tokens: AccessTokens, store: GrantStore, keyring: Keyring, clock: Clock) -> None:
        self._access_tokens = access_tokens
        self._store = store
        self._keyring = keyring
        self._clock = clock

    async def verify(self, token: str) -> VerifiedAccessToken:
        """Raise InvalidToken for one that is not ours, has ended, or whose grant is over."""
        bearer = await self.find(token)
        if bearer is None:
            raise InvalidToken("the access token is invalid or expired")
        return bearer

    async def find(self, token: str, *, include_expired: bool = False) -> VerifiedAccessToken | None:
        """`whenever`: also by one that ended, with its time or with a distrust, for callers that end the grant."""
        read = self._access_tokens.decode(token)
        now = self._clock.now()
        if read is None or (read.ends_at <= now and not include_expired):
            return None
        holder = await self._store.find_live_grant(read.grant_id, now)
        if holder is None or not (include_expired or await self._is_trusted(read, holder)):
            return None
        return VerifiedAccessToken(token=replace(read, scopes=read.scopes & set(holder.scopes)), holder=holder)

    async def _is_trusted(self, token: AccessToken, holder: GrantHolder) -> bool:
        """Whether no key was distrusted since the token was made: a theft of keys ends what was signed in before."""
        await self._keyring.ensure_version(holder.keys_version)
        return token.distrust_count == self._keyring.distrust_count
