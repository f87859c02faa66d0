"""The person behind an access token: the only place that accepts one."""

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.kernel.clock import Clock
from gatehouse.keys.keyring import Keyring
from gatehouse.oauth.model import GrantHolder
from gatehouse.oauth.store import GrantStore
from gatehouse.oauth.tokens import AccessToken, AccessTokens
from gatehouse.tokens.claims import InvalidToken


class VerifiedAccessToken(Struct, frozen=True, kw_only=True):
    token: AccessToken
    holder: GrantHolder

    @property
    def delegable_scopes(self) -> tuple[str, ...]:
        """The scopes of the grant that programs can act with by this token."""
        return tuple(scope for place, scope in enumerate(self.holder.grant.scopes) if place in self.token.places)


class AccessTokenVerifier(Struct, kw_only=True, eq=False):
    access_tokens: AccessTokens
    store: GrantStore
    keyring: Keyring
    clock: Clock

    async def verify(self, token: str) -> VerifiedAccessToken:
        """Verify an access token.

        Raises InvalidToken for a foreign or expired token, and for one whose grant is dead.
        """
        bearer = await self.find(token)
        if bearer is None:
            raise InvalidToken("the access token is invalid or expired")
        return bearer

    async def find(self, token: str, *, include_expired: bool = False) -> VerifiedAccessToken | None:
        """`include_expired`: accept tokens that are expired, distrusted or of a banned person too.

        It is for callers that end the grant.
        """
        read = self.access_tokens.decode(token)
        now = self.clock.now()
        if read is None or (read.ends_at <= now and not include_expired):
            return None
        holder = await self.store.find_live_grant(read.grant_id, now)
        if holder is None:
            return None
        if not include_expired and (holder.is_banned(now) or not await self._is_trusted(read, holder)):
            return None
        if not read.scopes.issubset(holder.scopes):
            read = replace(read, scopes=read.scopes & set(holder.scopes))
        return VerifiedAccessToken(token=read, holder=holder)

    async def _is_trusted(self, token: AccessToken, holder: GrantHolder) -> bool:
        """Whether no key was distrusted since the token was issued: distrust ends earlier sign-ins."""
        await self.keyring.ensure_version(holder.keys_version)
        return token.distrust_count == self.keyring.distrust_count
