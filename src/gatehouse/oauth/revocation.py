"""Ends a grant by one of its tokens: revoke of interface §4.2, and RFC 7009."""

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.access_token_verifier import AccessTokenVerifier
from gatehouse.oauth.api_tokens import ApiTokens, FoundToken
from gatehouse.oauth.client_auth import ClientAuthenticator, ClientCredentials
from gatehouse.oauth.errors import InvalidRefreshToken, InvalidRequest
from gatehouse.oauth.machines import MachineAuthenticator
from gatehouse.oauth.model import Client, GrantHolder
from gatehouse.oauth.refresh_tokens import RefreshTokens
from gatehouse.oauth.store import GrantStore


class Revocation(Struct, kw_only=True, eq=False):
    store: GrantStore
    authentication: ClientAuthenticator
    refresh_tokens: RefreshTokens
    access_token_verifier: AccessTokenVerifier
    api_tokens: ApiTokens
    machines: MachineAuthenticator
    recorder: Recorder
    clock: Clock

    async def revoke_refresh_token(self, credentials: ClientCredentials, token: str, origin: AuditOrigin) -> None:
        """Interface §4.2: accept only the valid refresh token of this client.

        A rotated one ends its family as well, and is answered as invalid: its holder wanted to sign out, and
        another party may have rotated it.

        Raises InvalidClient, InvalidRequest, InvalidRefreshToken.
        """
        if not token:
            raise InvalidRequest("refresh_token is missing")
        client = await self.authentication.authenticate_by_secret(credentials)
        refresh_token = await self.refresh_tokens.find(token)
        if refresh_token is None or refresh_token.holder.client.client_id != client.client_id:
            raise InvalidRefreshToken("the refresh token belongs to another client")
        if not await self._revoke(refresh_token.holder, client, origin) or not refresh_token.is_newest:
            raise InvalidRefreshToken("rotated or revoked in the meantime")

    async def revoke(self, credentials: ClientCredentials, token: str, origin: AuditOrigin) -> None:
        """RFC 7009: accept any token of the client; an invalid one is no error, nor is another client's (§2.2).

        Both get the same answer, so that no one learns which foreign tokens are live. Revoking an access token ends
        its grant: access tokens are not stored one by one. Raises InvalidClient, InvalidRequest.
        """
        if not token:
            raise InvalidRequest("token is missing")
        account = await self.machines.authenticate_account(credentials)
        client = None if account else await self.authentication.authenticate_by_secret(credentials)
        api_token = await self.api_tokens.find(token, include_expired=True)
        if api_token is not None and api_token.machine:
            if api_token.machine == (account.subject.sub if account else client and client.subject):
                await self._revoke_machine_token(api_token, origin)
            return
        holder = await self._find_holder(token) if api_token is None else api_token.holder
        if client is not None and holder is not None and holder.client.client_id == client.client_id:
            await self._revoke(holder, client, origin)

    async def _revoke_machine_token(self, token: FoundToken, origin: AuditOrigin) -> None:
        """End one token of a machine, or of a program that acts; its others live on."""
        record = self.recorder.record(
            AuditEvent.MACHINE_TOKEN_REVOKED,
            replace(origin, actor=token.machine),
            subject=token.client_id,
            details={"jti": token.jti},
        )
        await self.store.revoke_machine_token(token.jti, self.clock.now(), ends_at=token.ends_at, record=record)

    async def _find_holder(self, token: str) -> GrantHolder | None:
        """Revoke expired tokens too: the clock may be wrong, and a token answered as revoked must stay so (I16)."""
        bearer = await self.access_token_verifier.find(token, include_expired=True)
        if bearer is not None:
            return bearer.holder
        refresh_token = await self.refresh_tokens.find(token, include_expired=True)
        return None if refresh_token is None else refresh_token.holder

    async def _revoke(self, holder: GrantHolder, client: Client, origin: AuditOrigin) -> bool:
        record = self.recorder.record(
            AuditEvent.GRANT_REVOKED,
            replace(origin, actor=client.subject),
            subject=holder.user.user_id,
            details={"client_id": client.client_id, "grant_id": holder.grant.grant_id},
        )
        return await self.store.revoke_grant(holder.grant.grant_id, self.clock.now(), record)
