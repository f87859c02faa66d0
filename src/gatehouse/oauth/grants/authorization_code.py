"""A code for tokens, once (interface §4.2, R3)."""

from dataclasses import replace
from typing import Final

from gatehouse.audit.events import Event
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import same_secret, sha256
from gatehouse.oauth.errors import InvalidGrant, InvalidRequest
from gatehouse.oauth.model import Client, Grant
from gatehouse.oauth.proofs import is_verified
from gatehouse.oauth.store import GrantStore, Taking
from gatehouse.oauth.token_endpoint import Found, Taken, TokenRequest
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS

FAILURES_MOST: Final = 5  # attempts with one code; then it is burnt (R3)


class AuthorizationCode:
    def __init__(self, *, store: GrantStore, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock

    async def find(self, ask: TokenRequest) -> Found | None:
        if not ask.code or not ask.redirect_uri:
            raise InvalidRequest("code or redirect_uri is missing")
        holder = await self._store.by_code(sha256(ask.code))
        return None if holder is None else Found(holder=holder)

    async def failed(self, ask: TokenRequest) -> None:
        await self._store.fail_code(sha256(ask.code), most=FAILURES_MOST)

    async def take(self, ask: TokenRequest, client: Client, found: Found | None) -> Taken:
        """One attempt of someone else does not burn the code (R3): it is taken only when all the rest is right."""
        if found is None:
            raise InvalidGrant("unknown code")
        holder = found.holder
        if not is_bound_to(ask, client, holder.grant):
            await self.failed(ask)
            raise InvalidGrant("wrong redirect_uri or verifier for this code")
        now = self._clock.now()
        generation = 1 if OFFLINE_ACCESS in holder.scopes else 0
        taking = await self._store.take_code(
            sha256(ask.code),
            now,
            generation=generation,
            reused=lambda: self._recorder.record(
                Event.CODE_REUSED,
                replace(ask.origin, actor=client.client_id),
                subject=holder.user.user_id,
                details={"client_id": client.client_id, "grant_id": holder.grant.grant_id},
            ),
        )
        if taking is not Taking.TAKEN:
            raise InvalidGrant(f"the code of grant {holder.grant.grant_id}: {taking.name}")
        return Taken(holder=holder, scopes=holder.grant.scopes, generation=generation, refreshed_at=now)


def is_bound_to(ask: TokenRequest, client: Client, grant: Grant) -> bool:
    proved = is_verified(ask.code_verifier, grant.code_challenge)
    has_proof = bool(grant.code_challenge) or not client.public  # a public client has no other
    return same_secret(ask.redirect_uri, grant.redirect_uri) and proved and has_proof
