"""A device asks whether somebody has confirmed it (RFC 8628 §3.4)."""

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.oauth.errors import (
    AuthorizationPending,
    DeviceCodeExpired,
    DeviceDenied,
    InvalidGrant,
    InvalidRequest,
    SlowDown,
)
from gatehouse.oauth.login_gate import may_log_in_to_client
from gatehouse.oauth.model import Client, DeviceRequest, DeviceState
from gatehouse.oauth.ports import ApplicationLoginRules
from gatehouse.oauth.store import DeviceStore
from gatehouse.oauth.token_endpoint import PresentedGrant, RedeemedGrant, TokenRequest
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS


class DeviceCodeGrant:
    def __init__(self, *, store: DeviceStore, rules: ApplicationLoginRules, clock: Clock) -> None:
        self._store = store
        self._rules = rules
        self._clock = clock

    async def find_grant(self, token_request: TokenRequest) -> PresentedGrant | None:
        """Nobody's yet: devices name their client."""
        if not token_request.device_code:
            raise InvalidRequest("device_code is missing")
        return None

    async def record_failure(self, token_request: TokenRequest) -> None:
        """Nothing is spent by someone who cannot prove to be the client."""

    async def redeem(
        self,
        token_request: TokenRequest,
        client: Client,
        found: PresentedGrant | None,  # noqa: ARG002 - as every grant type takes it
    ) -> RedeemedGrant:
        now = self._clock.now()
        digest = sha256(token_request.device_code)
        request, is_early = await self._store.record_poll(digest, now)
        if request is None or request.client_id != client.client_id:
            raise InvalidGrant("unknown device code, or it belongs to another client")
        refuse_undecided(request, now, is_early=is_early)
        generation = 1 if OFFLINE_ACCESS in request.scopes and OFFLINE_ACCESS in client.scopes else 0
        holder = await self._store.redeem_request(request, now, generation=generation)
        if holder is None:
            raise InvalidGrant("the device code was already used or its grant has ended")
        if not await may_log_in_to_client(self._rules, holder.user, client):
            raise InvalidGrant(f"application {client.application_id} does not allow {holder.user.user_id} to sign in")
        return RedeemedGrant(holder=holder, scopes=holder.grant.scopes, generation=generation, refreshed_at=now)


def refuse_undecided(request: DeviceRequest, now: int, *, is_early: bool) -> None:
    if request.ends_at <= now:
        raise DeviceCodeExpired
    if request.state is DeviceState.DENIED:
        raise DeviceDenied
    if request.state is DeviceState.PENDING:
        raise SlowDown if is_early else AuthorizationPending
