"""The device grant: a device polls until a person has confirmed it (RFC 8628 §3.4)."""

from msgspec import Struct

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.oauth.api_model import Api
from gatehouse.oauth.client_auth import ClientCredentials
from gatehouse.oauth.errors import (
    AuthorizationPending,
    DeviceCodeExpired,
    DeviceDenied,
    InvalidGrant,
    InvalidRequest,
    SlowDown,
)
from gatehouse.oauth.model import DeviceRequest, DeviceState
from gatehouse.oauth.store import DeviceStore, GrantStore
from gatehouse.oauth.token_endpoint import GrantAccess, TokenRequest
from gatehouse.oauth.token_issuer import TokenIssuer, TokenResponse
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS


class DeviceCodeGrant(Struct, kw_only=True, eq=False):
    store: DeviceStore
    grants: GrantStore
    access: GrantAccess
    token_issuer: TokenIssuer
    clock: Clock

    async def issue(self, token_request: TokenRequest, credentials: ClientCredentials) -> TokenResponse:
        """Issue tokens once the person has confirmed; a failed proof of the client does not use up the code."""
        if not token_request.device_code:
            raise InvalidRequest("device_code is missing")
        client = await self.access.authenticate(token_request, credentials, None)  # devices name their client
        now = self.clock.now()
        digest = sha256(token_request.device_code)
        request, is_early = await self.store.record_poll(digest, now)
        if request is None or request.client_id != client.client_id:
            raise InvalidGrant("unknown device code, or it belongs to another client")
        refuse_undecided(request, now, is_early=is_early)
        api = await self._check_access(token_request, request, now)
        generation = 1 if OFFLINE_ACCESS in request.scopes and OFFLINE_ACCESS in client.scopes else 0
        holder = await self.store.redeem_request(request, now, generation=generation)
        if holder is None:
            raise InvalidGrant("the device code was already used or its grant has ended")
        return await self.token_issuer.issue(
            holder, scopes=holder.grant.scopes, generation=generation, refreshed_at=now, api=api
        )

    async def _check_access(self, token_request: TokenRequest, request: DeviceRequest, now: int) -> Api | None:
        holder = await self.grants.find_live_grant(request.grant_id, now)
        if holder is None:
            raise InvalidGrant("the grant of the device has ended")
        return await self.access.check(token_request, holder)


def refuse_undecided(request: DeviceRequest, now: int, *, is_early: bool) -> None:
    if request.ends_at <= now:
        raise DeviceCodeExpired
    if request.state is DeviceState.DENIED:
        raise DeviceDenied
    if request.state is DeviceState.PENDING:
        raise SlowDown if is_early else AuthorizationPending
