"""`stoken`: opens a browser session once, from the address it was issued to (R1)."""

from gatehouse.accounts.bans.model import find_ban
from gatehouse.accounts.errors import ShortTokenDead, UserNotFound
from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.session_model import ShortTokenOwner
from gatehouse.accounts.store import AccountStore, LoginStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256


class ShortTokens:
    def __init__(self, *, store: LoginStore, accounts: AccountStore, clock: Clock) -> None:
        self._store = store
        self._accounts = accounts
        self._clock = clock

    async def find_owner(self, stoken: str, address: str) -> User:
        """Return the token's owner, without using the token. Raises ShortTokenDead."""
        owner = await self._store.find_short_token_owner(sha256(stoken), address, self._clock.now())
        user, _ = await self._live_owner(owner)
        return user

    async def spend(self, stoken: str, address: str) -> tuple[User, SignInMethod]:
        """Use the token once; return its owner and how they signed in, without a second factor.

        Raises ShortTokenDead, and keeps the token when the address differs.
        """
        owner = await self._store.take_short_token(sha256(stoken), address, self._clock.now())
        return await self._live_owner(owner)

    async def _live_owner(self, owner: ShortTokenOwner | None) -> tuple[User, SignInMethod]:
        if owner is None:
            raise ShortTokenDead
        try:
            user = await self._accounts.user(owner.user_id)
        except UserNotFound as gone:
            raise ShortTokenDead from gone
        if user.blocked or user.rev != owner.rev or find_ban(user.bans, self._clock.now()) is not None:
            raise ShortTokenDead("revoked after it was issued")
        return user, SignInMethod.LOGIN if owner.auth is SignInMethod.TWO_STEP else owner.auth


def may_be_silent(auth: SignInMethod, user: User) -> bool:
    """Return whether a provider may have signed the person in without asking, who could confirm it here (ID-12)."""
    return auth is SignInMethod.PROVIDER and (user.password_hash is not None or bool(user.passkeys))
