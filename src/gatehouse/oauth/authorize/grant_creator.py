"""Creates the grant of a sign-in to a client, with its code."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_record_id, new_secret
from gatehouse.oauth.acr import acr_of, met_value
from gatehouse.oauth.authorize.request import AuthorizationRequest
from gatehouse.oauth.errors import LoginRequired
from gatehouse.oauth.model import Client, Grant
from gatehouse.oauth.store import GrantStore
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS
from gatehouse.sign_in_flow.model import SignInProof


class GrantLifetimes(Struct, frozen=True, kw_only=True):
    """Seconds."""

    code_seconds: int = 60
    family_seconds: int = 90 * 86_400


def ending_with(grant: Grant, consent_end: int) -> Grant:
    """Return the grant with its end, not later than that of the person's consent; 0: it has none."""
    return replace(grant, ends_at=min(grant.ends_at, consent_end)) if consent_end else grant


class GrantCreator(Struct, kw_only=True, eq=False):
    store: GrantStore
    recorder: Recorder
    clock: Clock
    lifetimes: Callable[[], GrantLifetimes]

    async def create(
        self,
        client: Client,
        proof: SignInProof,
        request: AuthorizationRequest,
        origin: AuditOrigin,
        *,
        ends_at: int = 0,
    ) -> str:
        """Store the grant and return its code, of which only a digest is stored.

        `ends_at`: of the person's consent; the grant does not outlive it. 0: it has no end.

        Raises LoginRequired when the account was blocked, all its sessions were ended, or the consent was withdrawn
        in the meantime.
        """
        code = new_secret()
        grant = ending_with(self._grant(client, proof, request, sha256(code)), ends_at)
        details = {"client": client.client_id, "scope": " ".join(request.scopes)}
        entry = self.recorder.record(AuditEvent.GRANT_MADE, origin, subject=proof.user_id, details=details)
        consented = not client.first_party or request.names_programs
        if not await self.store.create_grant(grant, entry, in_session=True, consented=consented):
            raise LoginRequired
        return code

    def _grant(self, client: Client, proof: SignInProof, request: AuthorizationRequest, code: bytes) -> Grant:
        now, lifetimes = self.clock.now(), self.lifetimes()
        code_ends_at = now + lifetimes.code_seconds
        # Without refresh tokens the grant ends with the access token that the code can still be redeemed for.
        lifetime = (
            lifetimes.family_seconds if OFFLINE_ACCESS in request.scopes else client.token_settings.access_seconds
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
            second_factor=proof.second_factor,
            auth_time=proof.proved_at,
            acr=met_value(request.acr_values, acr_of(proof)) if request.acr_is_essential else "",
            code=code,
            code_ends_at=code_ends_at,
            created_at=now,
            ends_at=code_ends_at + lifetime,
        )
