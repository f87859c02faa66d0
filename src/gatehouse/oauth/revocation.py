"""Ending a grant by one of its tokens: interface §4.2's own revoke, and RFC 7009."""

from dataclasses import replace

from gatehouse.audit.events import Event
from gatehouse.audit.model import Origin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.bearers import Bearers
from gatehouse.oauth.client_authentication import ClientAuthentication, Credentials
from gatehouse.oauth.errors import InvalidGrant, InvalidRefreshToken, InvalidRequest
from gatehouse.oauth.model import Client, Holder
from gatehouse.oauth.refresh_tokens import RefreshTokens
from gatehouse.oauth.store import GrantStore


class Revocation:
    def __init__(
        self,
        *,
        store: GrantStore,
        authentication: ClientAuthentication,
        refresh_tokens: RefreshTokens,
        bearers: Bearers,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._store = store
        self._authentication = authentication
        self._refresh_tokens = refresh_tokens
        self._bearers = bearers
        self._recorder = recorder
        self._clock = clock

    async def revoke_refresh_token(self, shown: Credentials, token: str, origin: Origin) -> None:
        """Interface §4.2: nothing but the good refresh token of this very client is taken.

        Raises InvalidClient, InvalidRequest, InvalidRefreshToken.
        """
        if not token:
            raise InvalidRequest("no refresh_token")
        client = await self._authentication.by_secret(shown)
        holder = await self._refreshed(token)
        if holder is None or holder.client.client_id != client.client_id:
            raise InvalidRefreshToken("not a good refresh token of this client")
        if not await self._revoke(holder, client, origin):
            raise InvalidRefreshToken("revoked meanwhile")

    async def revoke(self, shown: Credentials, token: str, origin: Origin) -> None:
        """RFC 7009: any token of the client; one that is no longer good is no error.

        Revoking an access token ends its grant: access tokens are not stored one by one. Raises InvalidClient,
        InvalidRequest, and InvalidGrant for a token of another client.
        """
        if not token:
            raise InvalidRequest("no token")
        client = await self._authentication.by_secret(shown)
        holder = await self._holder(token)
        if holder is None:
            return
        if holder.client.client_id != client.client_id:
            raise InvalidGrant(f"a token of {holder.client.client_id}")
        await self._revoke(holder, client, origin)

    async def _holder(self, token: str) -> Holder | None:
        bearer = await self._bearers.find(token)
        return await self._refreshed(token) if bearer is None else bearer.holder

    async def _refreshed(self, token: str) -> Holder | None:
        """Whose refresh token this is, if it is the good one of a living grant."""
        shown = await self._refresh_tokens.read(token)
        holder = None if shown is None else await self._store.by_id(shown.grant_id, self._clock.now())
        if shown is None or holder is None or holder.grant.generation != shown.generation:
            return None
        return holder

    async def _revoke(self, holder: Holder, client: Client, origin: Origin) -> bool:
        record = self._recorder.record(
            Event.GRANT_REVOKED,
            replace(origin, actor=client.client_id),
            subject=holder.user.user_id,
            details={"client_id": client.client_id, "grant_id": holder.grant.grant_id},
        )
        return await self._store.revoke(holder.grant.grant_id, self._clock.now(), record)
