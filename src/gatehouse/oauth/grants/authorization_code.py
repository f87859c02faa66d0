"""The authorization code grant: a code is redeemed for tokens once (interface §4.2, R3)."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, sha256
from gatehouse.oauth.client_auth import ClientCredentials, matches_code_challenge
from gatehouse.oauth.errors import InvalidClient, InvalidGrant, InvalidRequest
from gatehouse.oauth.model import Client, Grant
from gatehouse.oauth.store import GrantStore, RedeemOutcome
from gatehouse.oauth.token_endpoint import GrantAccess, TokenRequest
from gatehouse.oauth.token_issuer import TokenIssuer, TokenResponse
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS

MAX_CODE_FAILURES: Final = 5  # attempts with one code; then it is invalid (R3)


class AuthorizationCodeGrant(Struct, kw_only=True, eq=False):
    store: GrantStore
    access: GrantAccess
    token_issuer: TokenIssuer
    recorder: Recorder
    clock: Clock

    async def issue(self, token_request: TokenRequest, credentials: ClientCredentials) -> TokenResponse:
        """Redeem the code after all other checks, so that an attempt by another party does not use it up (R3)."""
        if not token_request.code or not token_request.redirect_uri:
            raise InvalidRequest("code or redirect_uri is missing")
        holder = await self.store.find_grant_by_code(sha256(token_request.code))
        try:
            client = await self.access.authenticate(token_request, credentials, holder)
        except (InvalidClient, InvalidGrant):
            if holder is not None:
                await self._count_failure(token_request)
            raise
        if holder is None:
            raise InvalidGrant("unknown code")
        if not is_bound_to(token_request, client, holder.grant):
            await self._count_failure(token_request)
            raise InvalidGrant("wrong redirect_uri or verifier for this code")
        api = await self.access.check(token_request, holder)
        now = self.clock.now()
        generation = 1 if OFFLINE_ACCESS in holder.scopes else 0
        outcome = await self.store.redeem_code(
            sha256(token_request.code),
            now,
            generation=generation,
            reused=lambda: self.recorder.record(
                AuditEvent.CODE_REUSED,
                replace(credentials.origin, actor=client.subject),
                subject=holder.user.user_id,
                details={"client_id": client.client_id, "grant_id": holder.grant.grant_id},
            ),
        )
        if outcome is not RedeemOutcome.REDEEMED:
            raise InvalidGrant(f"the code of grant {holder.grant.grant_id}: {outcome.name}")
        return await self.token_issuer.issue(
            holder, scopes=holder.grant.scopes, generation=generation, refreshed_at=now, api=api
        )

    async def _count_failure(self, token_request: TokenRequest) -> None:
        await self.store.count_code_failure(sha256(token_request.code), most=MAX_CODE_FAILURES)


def is_bound_to(token_request: TokenRequest, client: Client, grant: Grant) -> bool:
    proved = matches_code_challenge(token_request.code_verifier, grant.code_challenge)
    has_proof = bool(grant.code_challenge) or not client.public  # a public client has no other proof
    return constant_time_equal(token_request.redirect_uri, grant.redirect_uri) and proved and has_proof
