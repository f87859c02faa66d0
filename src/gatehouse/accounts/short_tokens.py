"""`stoken`: opens a browser session once, from the address it was given to (R1)."""

from gatehouse.accounts.errors import ShortTokenDead, UserNotFound
from gatehouse.accounts.model import User
from gatehouse.accounts.store import AccountStore, ShortTokenStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256


class ShortTokens:
    def __init__(self, *, store: ShortTokenStore, accounts: AccountStore, clock: Clock) -> None:
        self._store = store
        self._accounts = accounts
        self._clock = clock

    async def find_owner(self, stoken: str, address: str) -> User:
        """Whose it is, while it can be spent from here; spends nothing. Raises ShortTokenDead."""
        return await self._live_owner(
            await self._store.find_short_token_owner(sha256(stoken), address, self._clock.now())
        )

    async def spend(self, stoken: str, address: str) -> User:
        """Take it, once. Raises ShortTokenDead, and from another address takes nothing."""
        return await self._live_owner(await self._store.take_short_token(sha256(stoken), address, self._clock.now()))

    async def _live_owner(self, found: tuple[str, int] | None) -> User:
        if found is None:
            raise ShortTokenDead
        user_id, rev = found
        try:
            user = await self._accounts.user(user_id)
        except UserNotFound as gone:
            raise ShortTokenDead from gone
        if user.blocked or user.rev != rev:
            raise ShortTokenDead("revoked after it was issued")
        return user
