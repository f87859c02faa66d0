"""The grant types of the token endpoint."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, sha256
from gatehouse.oauth.client_auth import matches_code_challenge
from gatehouse.oauth.errors import (
    AuthorizationPending,
    DeviceCodeExpired,
    DeviceDenied,
    InvalidGrant,
    InvalidRequest,
    InvalidScope,
    SlowDown,
)
from gatehouse.oauth.model import Api, Client, ClientProfile, DeviceRequest, DeviceState, Grant, plain_scope
from gatehouse.oauth.store import (
    DeviceStore,
    GrantStore,
    RedeemOutcome,
    RotationOutcome,
)
from gatehouse.oauth.token_endpoint import GrantAccess, PresentedGrant, RedeemedGrant, TokenRequest
from gatehouse.oauth.tokens import RefreshTokens
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS, OPENID

# The authorization code grant: a code is redeemed for tokens once (interface §4.2, R3).


MAX_CODE_FAILURES: Final = 5  # attempts with one code; then it is invalid (R3)


class AuthorizationCodeGrant:
    def __init__(self, *, store: GrantStore, access: GrantAccess, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._access = access
        self._recorder = recorder
        self._clock = clock

    async def find_grant(self, token_request: TokenRequest) -> PresentedGrant | None:
        if not token_request.code or not token_request.redirect_uri:
            raise InvalidRequest("code or redirect_uri is missing")
        holder = await self._store.find_grant_by_code(sha256(token_request.code))
        return None if holder is None else PresentedGrant(holder=holder)

    async def record_failure(self, token_request: TokenRequest) -> None:
        await self._store.count_code_failure(sha256(token_request.code), most=MAX_CODE_FAILURES)

    async def redeem(
        self, token_request: TokenRequest, client: Client, found: PresentedGrant | None
    ) -> RedeemedGrant:
        """Redeem the code after all other checks, so that an attempt by another party does not use it up (R3)."""
        if found is None:
            raise InvalidGrant("unknown code")
        holder = found.holder
        if not is_bound_to(token_request, client, holder.grant):
            await self.record_failure(token_request)
            raise InvalidGrant("wrong redirect_uri or verifier for this code")
        api = await self._access.check(token_request, holder)
        now = self._clock.now()
        generation = 1 if OFFLINE_ACCESS in holder.scopes else 0
        taking = await self._store.redeem_code(
            sha256(token_request.code),
            now,
            generation=generation,
            reused=lambda: self._recorder.record(
                AuditEvent.CODE_REUSED,
                replace(token_request.origin, actor=client.subject),
                subject=holder.user.user_id,
                details={"client_id": client.client_id, "grant_id": holder.grant.grant_id},
            ),
        )
        if taking is not RedeemOutcome.REDEEMED:
            raise InvalidGrant(f"the code of grant {holder.grant.grant_id}: {taking.name}")
        return RedeemedGrant(
            holder=holder, scopes=holder.grant.scopes, generation=generation, refreshed_at=now, api=api
        )


def is_bound_to(token_request: TokenRequest, client: Client, grant: Grant) -> bool:
    proved = matches_code_challenge(token_request.code_verifier, grant.code_challenge)
    has_proof = bool(grant.code_challenge) or not client.public  # a public client has no other proof
    return constant_time_equal(token_request.redirect_uri, grant.redirect_uri) and proved and has_proof


# The device grant: a device polls until a person has confirmed it (RFC 8628 §3.4).


class DeviceCodeGrant:
    def __init__(self, *, store: DeviceStore, grants: GrantStore, access: GrantAccess, clock: Clock) -> None:
        self._store = store
        self._grants = grants
        self._access = access
        self._clock = clock

    async def find_grant(self, token_request: TokenRequest) -> PresentedGrant | None:
        """Return nothing: devices name their client, so no owner has to be found."""
        if not token_request.device_code:
            raise InvalidRequest("device_code is missing")
        return None

    async def record_failure(self, token_request: TokenRequest) -> None:
        """A failed proof of the client does not use up the device code."""

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
        api = await self._check_access(token_request, request, now)
        generation = 1 if OFFLINE_ACCESS in request.scopes and OFFLINE_ACCESS in client.scopes else 0
        holder = await self._store.redeem_request(request, now, generation=generation)
        if holder is None:
            raise InvalidGrant("the device code was already used or its grant has ended")
        return RedeemedGrant(
            holder=holder, scopes=holder.grant.scopes, generation=generation, refreshed_at=now, api=api
        )

    async def _check_access(self, token_request: TokenRequest, request: DeviceRequest, now: int) -> Api | None:
        holder = await self._grants.find_live_grant(request.grant_id, now)
        if holder is None:
            raise InvalidGrant("the grant of the device has ended")
        return await self._access.check(token_request, holder)


def refuse_undecided(request: DeviceRequest, now: int, *, is_early: bool) -> None:
    if request.ends_at <= now:
        raise DeviceCodeExpired
    if request.state is DeviceState.DENIED:
        raise DeviceDenied
    if request.state is DeviceState.PENDING:
        raise SlowDown if is_early else AuthorizationPending


# The refresh token grant: returns new tokens and replaces the refresh token each time (interface §2.1, R3).
#
# Its `jti` is the grant and a number. The grant's row has the valid number, so the JWT alone is never enough.


SCOPE_TEXT: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+( +[\x21\x23-\x5b\x5d-\x7e]+)*", re.ASCII)


class RefreshTokenGrant:
    """`grace`: seconds within which a parallel refresh gets the same new token; a client may have its own."""

    def __init__(
        self,
        *,
        store: GrantStore,
        tokens: RefreshTokens,
        access: GrantAccess,
        recorder: Recorder,
        clock: Clock,
        grace: Callable[[], int],
    ) -> None:
        self._store = store
        self._access = access
        self._tokens = tokens
        self._recorder = recorder
        self._clock = clock
        self._grace = grace

    async def find_grant(self, token_request: TokenRequest) -> PresentedGrant | None:
        if not token_request.refresh_token:
            raise InvalidRequest("refresh_token is missing")
        found = await self._tokens.find(token_request.refresh_token)
        if found is None:
            return None
        holder = found.holder
        if (
            holder.client.profile is ClientProfile.NATIVE
            and token_request.credentials.is_unnamed_proof
            and not token_request.redirect_uri
        ):
            raise InvalidRequest("redirect_uri is missing")  # before the proof, which depends on it
        return PresentedGrant(holder=holder, generation=found.generation)

    async def record_failure(self, token_request: TokenRequest) -> None:
        """Do nothing: a failed proof does not use up the token, which is worthless without a proof."""

    async def redeem(
        self, token_request: TokenRequest, client: Client, found: PresentedGrant | None
    ) -> RedeemedGrant:
        if found is None:
            raise InvalidGrant("unknown refresh token, or its grant has ended")
        if OFFLINE_ACCESS not in found.holder.scopes:
            raise InvalidGrant("the client no longer has offline_access")
        grant = found.holder.grant
        refuse_other_redirect(token_request, client, grant)
        scopes = narrow_scopes(token_request.scope, grant)
        api = await self._access.check(token_request, found.holder)
        turned = await self._store.rotate(
            grant.grant_id,
            found.generation,
            self._clock.now(),
            grace=self._grace_for(client),
            reused=lambda: self._recorder.record(
                AuditEvent.REFRESH_REUSED,
                replace(token_request.origin, actor=client.subject),
                subject=grant.user_id,
                details={"client_id": client.client_id, "grant_id": grant.grant_id},
            ),
        )
        if turned.outcome not in (RotationOutcome.ROTATED, RotationOutcome.REPEATED):
            raise InvalidGrant(f"refresh token {found.generation} of grant {grant.grant_id}: {turned.outcome.name}")
        return RedeemedGrant(
            holder=found.holder,
            scopes=scopes,
            generation=turned.generation,
            refreshed_at=turned.refreshed_at,
            api=api,
        )

    def _grace_for(self, client: Client) -> int:
        own = client.token_settings.refresh_grace_seconds
        return self._grace() if own is None else own


def refuse_other_redirect(token_request: TokenRequest, client: Client, grant: Grant) -> None:
    """Refuse another redirect_uri than the grant's.

    Native clients must repeat it, others may (R3, checklist TK-16).
    """
    if not token_request.redirect_uri:
        if client.profile is ClientProfile.NATIVE:
            raise InvalidRequest("redirect_uri is missing")
        return
    if not constant_time_equal(token_request.redirect_uri, grant.redirect_uri):
        raise InvalidGrant("wrong redirect_uri for this grant")


def narrow_scopes(scope: str, grant: Grant) -> tuple[str, ...]:
    """Return fewer scopes for the access token, never more; openid stays (R3), and so does the API (RFC 8707)."""
    if not scope:
        return grant.scopes
    wanted = set(scope.split()) if SCOPE_TEXT.fullmatch(scope) else {scope}
    kept = {OPENID, ""}
    if not wanted <= {plain_scope(one) for one in grant.scopes}:
        raise InvalidScope("scope exceeds the grant")
    return tuple(one for one in grant.scopes if plain_scope(one) in wanted | kept)
