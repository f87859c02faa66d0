"""Who is behind an access token: the one place where one is believed."""

from dataclasses import dataclass, replace

from gatehouse.kernel.clock import Clock
from gatehouse.keys.keyring import Keyring
from gatehouse.oauth.access_tokens import AccessToken, AccessTokens
from gatehouse.oauth.model import Holder
from gatehouse.oauth.store import GrantStore
from gatehouse.tokens.errors import InvalidToken


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    token: AccessToken
    holder: Holder


class Bearers:
    def __init__(self, *, access_tokens: AccessTokens, store: GrantStore, keyring: Keyring, clock: Clock) -> None:
        self._access_tokens = access_tokens
        self._store = store
        self._keyring = keyring
        self._clock = clock

    async def identify(self, token: str) -> Bearer:
        """Raise InvalidToken for one that is not ours, has ended, or whose grant is over."""
        bearer = await self.find(token)
        if bearer is None:
            raise InvalidToken("the access token is invalid or expired")
        return bearer

    async def find(self, token: str, *, whenever: bool = False) -> Bearer | None:
        """`whenever`: also by one that ended, with its time or with a distrust, for callers that end the grant."""
        read = self._access_tokens.read(token)
        now = self._clock.now()
        if read is None or (read.ends_at <= now and not whenever):
            return None
        holder = await self._store.by_id(read.grant_id, now)
        if holder is None or not (whenever or await self._is_trusted(read, holder)):
            return None
        return Bearer(token=replace(read, scopes=read.scopes & set(holder.scopes)), holder=holder)

    async def _is_trusted(self, token: AccessToken, holder: Holder) -> bool:
        """Whether no key was distrusted since the token was made: a theft of keys ends what was signed in before."""
        await self._keyring.catch_up(holder.keys_version)
        return token.distrusted == self._keyring.distrusted
