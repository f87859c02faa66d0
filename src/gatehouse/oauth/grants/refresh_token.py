"""A refresh token for new tokens; it is replaced each time (interface §2.1, R3).

Its `jti` is the grant and a number. The grant's row says which number is good, so the JWT alone never suffices.
"""

import re
from dataclasses import replace
from typing import Final

from gatehouse.audit.events import Event
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import same_secret
from gatehouse.oauth.errors import InvalidGrant, InvalidRequest, InvalidScope
from gatehouse.oauth.model import Client, Grant, Profile
from gatehouse.oauth.refresh_tokens import RefreshTokens
from gatehouse.oauth.store import GrantStore, Turn
from gatehouse.oauth.token_endpoint import Found, Taken, TokenRequest
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS, OPENID

SCOPE_TEXT: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+( +[\x21\x23-\x5b\x5d-\x7e]+)*", re.ASCII)


class RefreshToken:
    """`grace`: seconds within which a parallel refresh gets the same new token; a client may have its own."""

    def __init__(
        self, *, store: GrantStore, tokens: RefreshTokens, recorder: Recorder, clock: Clock, grace: int
    ) -> None:
        self._store = store
        self._tokens = tokens
        self._recorder = recorder
        self._clock = clock
        self._grace = grace

    async def find(self, ask: TokenRequest) -> Found | None:
        if not ask.refresh_token:
            raise InvalidRequest("refresh_token is missing")
        found = await self._tokens.find(ask.refresh_token)
        if found is None:
            return None
        holder = found.holder
        if holder.client.profile is Profile.NATIVE and ask.credentials.is_nameless and not ask.redirect_uri:
            raise InvalidRequest("redirect_uri is missing")  # before the proof, which cannot be right without it
        return Found(holder=holder, generation=found.generation)

    async def failed(self, ask: TokenRequest) -> None:
        """Nothing is spent: whoever has no proof cannot use the token however often he tries."""

    async def take(self, ask: TokenRequest, client: Client, found: Found | None) -> Taken:
        if found is None:
            raise InvalidGrant("unknown refresh token, or its grant has ended")
        if OFFLINE_ACCESS not in found.holder.scopes:
            raise InvalidGrant("the client no longer has offline_access")
        grant = found.holder.grant
        refuse_other_redirect(ask, client, grant)
        scopes = narrowed(ask.scope, grant)
        turned = await self._store.turn(
            grant.grant_id,
            found.generation,
            self._clock.now(),
            grace=self._grace_for(client),
            reused=lambda: self._recorder.record(
                Event.REFRESH_REUSED,
                replace(ask.origin, actor=client.client_id),
                subject=grant.user_id,
                details={"client_id": client.client_id, "grant_id": grant.grant_id},
            ),
        )
        if turned.turn not in (Turn.ROTATED, Turn.REPEATED):
            raise InvalidGrant(f"refresh token {found.generation} of grant {grant.grant_id}: {turned.turn.name}")
        return Taken(
            holder=found.holder, scopes=scopes, generation=turned.generation, refreshed_at=turned.refreshed_at
        )

    def _grace_for(self, client: Client) -> int:
        own = client.token_settings.refresh_grace_seconds
        return self._grace if own is None else own


def refuse_other_redirect(ask: TokenRequest, client: Client, grant: Grant) -> None:
    """Native clients repeat the grant's; others may, and then it has to be the same (R3, checklist TK-16)."""
    if not ask.redirect_uri:
        if client.profile is Profile.NATIVE:
            raise InvalidRequest("redirect_uri is missing")
        return
    if not same_secret(ask.redirect_uri, grant.redirect_uri):
        raise InvalidGrant("wrong redirect_uri for this grant")


def narrowed(scope: str, grant: Grant) -> tuple[str, ...]:
    """Fewer scopes for the access token, never more; what was signed in with, openid, stays (R3)."""
    if not scope:
        return grant.scopes
    wanted = set(scope.split()) if SCOPE_TEXT.fullmatch(scope) else {scope}
    if not wanted <= set(grant.scopes):
        raise InvalidScope("scope exceeds the grant")
    return tuple(one for one in grant.scopes if one in wanted or one == OPENID)
