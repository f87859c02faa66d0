"""A refresh token for new tokens; it is replaced each time (interface §2.1, R3).

Its `jti` is the grant and a number. The grant's row says which number is good, so the JWT alone never suffices.
"""

import re
from dataclasses import replace
from typing import Final

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal
from gatehouse.oauth.errors import InvalidGrant, InvalidRequest, InvalidScope
from gatehouse.oauth.model import Client, ClientProfile, Grant
from gatehouse.oauth.refresh_tokens import RefreshTokens
from gatehouse.oauth.store import GrantStore, RotationOutcome
from gatehouse.oauth.token_endpoint import PresentedGrant, RedeemedGrant, TokenRequest
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS, OPENID

SCOPE_TEXT: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+( +[\x21\x23-\x5b\x5d-\x7e]+)*", re.ASCII)


class RefreshTokenGrant:
    """`grace`: seconds within which a parallel refresh gets the same new token; a client may have its own."""

    def __init__(
        self, *, store: GrantStore, tokens: RefreshTokens, recorder: Recorder, clock: Clock, grace: int
    ) -> None:
        self._store = store
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
            raise InvalidRequest("redirect_uri is missing")  # before the proof, which cannot be right without it
        return PresentedGrant(holder=holder, generation=found.generation)

    async def record_failure(self, token_request: TokenRequest) -> None:
        """Nothing is spent: whoever has no proof cannot use the token however often he tries."""

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
        turned = await self._store.rotate(
            grant.grant_id,
            found.generation,
            self._clock.now(),
            grace=self._grace_for(client),
            reused=lambda: self._recorder.record(
                AuditEvent.REFRESH_REUSED,
                replace(token_request.origin, actor=client.client_id),
                subject=grant.user_id,
                details={"client_id": client.client_id, "grant_id": grant.grant_id},
            ),
        )
        if turned.outcome not in (RotationOutcome.ROTATED, RotationOutcome.REPEATED):
            raise InvalidGrant(f"refresh token {found.generation} of grant {grant.grant_id}: {turned.outcome.name}")
        return RedeemedGrant(
            holder=found.holder, scopes=scopes, generation=turned.generation, refreshed_at=turned.refreshed_at
        )

    def _grace_for(self, client: Client) -> int:
        own = client.token_settings.refresh_grace_seconds
        return self._grace if own is None else own


def refuse_other_redirect(token_request: TokenRequest, client: Client, grant: Grant) -> None:
    """Native clients repeat the grant's; others may, and then it has to be the same (R3, checklist TK-16)."""
    if not token_request.redirect_uri:
        if client.profile is ClientProfile.NATIVE:
            raise InvalidRequest("redirect_uri is missing")
        return
    if not constant_time_equal(token_request.redirect_uri, grant.redirect_uri):
        raise InvalidGrant("wrong redirect_uri for this grant")


def narrow_scopes(scope: str, grant: Grant) -> tuple[str, ...]:
    """Fewer scopes for the access token, never more; what was signed in with, openid, stays (R3)."""
    if not scope:
        return grant.scopes
    wanted = set(scope.split()) if SCOPE_TEXT.fullmatch(scope) else {scope}
    if not wanted <= set(grant.scopes):
        raise InvalidScope("scope exceeds the grant")
    return tuple(one for one in grant.scopes if one in wanted or one == OPENID)
