"""The refresh token grant: returns new tokens and replaces the refresh token each time (interface §2.1, R3).

Its `jti` is the grant and a number. The grant's row has the valid number, so the JWT alone is never enough.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal
from gatehouse.oauth.api_model import plain_scope
from gatehouse.oauth.client_auth import ClientCredentials
from gatehouse.oauth.errors import InvalidGrant, InvalidRequest, InvalidScope
from gatehouse.oauth.model import Client, ClientProfile, Grant
from gatehouse.oauth.refresh_tokens import RefreshTokens
from gatehouse.oauth.store import GrantStore, RotationOutcome
from gatehouse.oauth.token_endpoint import GrantAccess, TokenRequest
from gatehouse.oauth.token_issuer import TokenIssuer, TokenResponse
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS, OPENID, SCOPE_TEXT


class RefreshTokenGrant(Struct, kw_only=True, eq=False):
    """`grace`: seconds within which a parallel refresh gets the same new token; a client may have its own."""

    store: GrantStore
    tokens: RefreshTokens
    access: GrantAccess
    token_issuer: TokenIssuer
    recorder: Recorder
    clock: Clock
    grace: Callable[[], int]

    async def issue(self, token_request: TokenRequest, credentials: ClientCredentials) -> TokenResponse:
        """Rotate the token; a failed proof does not use it up, because it is worthless without a proof."""
        if not token_request.refresh_token:
            raise InvalidRequest("refresh_token is missing")
        refresh_token = await self.tokens.find(token_request.refresh_token)
        if (
            refresh_token is not None
            and refresh_token.holder.client.profile is ClientProfile.NATIVE
            and credentials.is_unnamed_proof
            and not token_request.redirect_uri
        ):
            raise InvalidRequest("redirect_uri is missing")  # before the proof, which depends on it
        client = await self.access.authenticate(
            token_request, credentials, None if refresh_token is None else refresh_token.holder
        )
        if refresh_token is None:
            raise InvalidGrant("unknown refresh token, or its grant has ended")
        if OFFLINE_ACCESS not in refresh_token.holder.scopes:
            raise InvalidGrant("the client no longer has offline_access")
        grant = refresh_token.holder.grant
        refuse_other_redirect(token_request, client, grant)
        scopes = narrow_scopes(token_request.scope, grant)
        api = await self.access.check(token_request, refresh_token.holder)
        rotated = await self.store.rotate(
            grant.grant_id,
            refresh_token.generation,
            self.clock.now(),
            kid=await self.tokens.signing_kid(refresh_token.holder),
            grace=self._grace_for(client),
            reused=lambda: self.recorder.record(
                AuditEvent.REFRESH_REUSED,
                replace(credentials.origin, actor=client.subject),
                subject=grant.user_id,
                details={"client_id": client.client_id, "grant_id": grant.grant_id},
            ),
        )
        if rotated.outcome not in (RotationOutcome.ROTATED, RotationOutcome.REPEATED):
            raise InvalidGrant(
                f"refresh token {refresh_token.generation} of grant {grant.grant_id}: {rotated.outcome.name}"
            )
        return await self.token_issuer.issue(
            refresh_token.holder,
            scopes=scopes,
            generation=rotated.generation,
            refreshed_at=rotated.refreshed_at,
            kid=rotated.kid,
            api=api,
        )

    def _grace_for(self, client: Client) -> int:
        own = client.token_settings.refresh_grace_seconds
        return self.grace() if own is None else own


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
    fixed_scopes = {OPENID, ""}
    if not wanted <= {plain_scope(name) for name in grant.scopes}:
        raise InvalidScope("scope exceeds the grant")
    return tuple(name for name in grant.scopes if plain_scope(name) in wanted | fixed_scopes)
