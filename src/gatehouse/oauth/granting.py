"""Makes the grant that a sign-in to a client comes to, with its code."""

from dataclasses import dataclass
from typing import Final

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.interaction.model import SignInProof
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_record_id, new_secret
from gatehouse.oauth.authorization_request import AuthorizationRequest
from gatehouse.oauth.model import Client, Grant
from gatehouse.oauth.refusals import LoginRequired
from gatehouse.oauth.store import GrantStore

OFFLINE_SCOPE: Final = "offline_access"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantLifetimes:
    """Seconds."""

    code_seconds: int = 60
    family_seconds: int = 90 * 86_400


class GrantCreator:
    def __init__(self, *, store: GrantStore, recorder: Recorder, clock: Clock, lifetimes: GrantLifetimes) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock
        self._lifetimes = lifetimes

    async def create(
        self, client: Client, proof: SignInProof, request: AuthorizationRequest, origin: AuditOrigin
    ) -> str:
        """Keep the grant and return its code, of which a digest is kept.

        Raises LoginRequired when the account was blocked, all its sessions were ended, or the consent was withdrawn,
        a moment ago.
        """
        code = new_secret()
        grant = self._grant(client, proof, request, sha256(code))
        details = {"client": client.client_id, "scope": " ".join(request.scopes)}
        entry = self._recorder.record(AuditEvent.GRANT_MADE, origin, subject=proof.user_id, details=details)
        if not await self._store.create_grant(grant, entry, in_session=True, consented=not client.first_party):
            raise LoginRequired
        return code

    def _grant(self, client: Client, proof: SignInProof, request: AuthorizationRequest, code: bytes) -> Grant:
        now = self._clock.now()
        code_ends_at = now + self._lifetimes.code_seconds
        # Without refresh tokens nothing outlives the access token that the code may still be turned into.
        lasts = (
            self._lifetimes.family_seconds
            if OFFLINE_SCOPE in request.scopes
            else client.token_settings.access_seconds
        )
        return Grant(
            grant_id=new_record_id(now),
            client_id=client.client_id,
            user_id=proof.user_id,
            rev=proof.rev,
            session_id=proof.session_id,
            scopes=request.scopes,
            redirect_uri=request.redirect_uri,
            nonce=request.nonce,
            code_challenge=request.code_challenge,
            wanted_claims=request.wanted_claims,
            auth=proof.auth,
            auth_time=proof.proved_at,
            code=code,
            code_ends_at=code_ends_at,
            created_at=now,
            ends_at=code_ends_at + lasts,
        )
