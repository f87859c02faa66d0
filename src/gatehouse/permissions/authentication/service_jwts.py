"""Service JWTs: an application authenticates with one (R2).

Static ones are issued here by an administrator and can be revoked. Applications sign generated ones themselves;
they live for minutes.
"""

from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Final

from msgspec import Struct

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.authentication.jwts import CallerJwtVerifier
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.service_token import ServiceToken
from gatehouse.permissions.store import ApplicationKeyStore
from gatehouse.tokens.claims import GeneratedServiceClaims, InvalidToken, StaticServiceClaims
from gatehouse.tokens.signer import Signer

DAY_SECONDS: Final = 86_400
MAX_TOKEN_DAYS: Final = 365
JTI_BYTES: Final = 16


class IssuedServiceToken(SecretRecord, frozen=True, kw_only=True):
    token: ServiceToken
    jwt: SecretText


class ServiceJwtVerifier(Struct, kw_only=True, eq=False):
    """Finds the application of a service JWT."""

    store: ApplicationKeyStore
    jwts: CallerJwtVerifier

    async def verify(self, jwt: str) -> int:
        """Verify a service JWT.

        Raises InvalidToken, also if it was revoked or its application or project is removed.
        """
        claims, checked_in = await self.jwts.verify_service_jwt(jwt)
        if isinstance(claims, GeneratedServiceClaims):
            return int(claims.iss)  # the key was found, so the application exists
        record = await self.store.service_token(claims.jti)
        if record is None or record.token.revoked or record.token.application_id != int(claims.aud):
            raise InvalidToken(f"service JWT {claims.jti} is revoked, or its application was removed")
        await self.jwts.recheck_key(claims, checked_in=checked_in, keys_version=record.keys_version)
        return record.token.application_id


class ServiceTokens:
    """Static service JWTs, managed by administrators."""

    def __init__(
        self,
        *,
        store: ApplicationKeyStore,
        signer: Signer,
        recorder: Recorder,
        clock: Clock,
        issuer: str,
        days: Callable[[], int],
    ) -> None:
        self._store = store
        self._signer = signer
        self._recorder = recorder
        self._clock = clock
        self._issuer = issuer
        self._days = days

    async def issue(
        self, application_id: int, *, days: int | None = None, comment: str = "", origin: AuditOrigin
    ) -> IssuedServiceToken:
        """Issue a service JWT for this number of days; it is recorded before it is signed.

        Raises ApplicationNotFound, Malformed.
        """
        days = self._days() if days is None else days
        if not 1 <= days <= MAX_TOKEN_DAYS:
            raise Malformed(f"days: must be 1 to {MAX_TOKEN_DAYS}")
        now = self._clock.now()
        token = ServiceToken(
            jti=token_hex(JTI_BYTES),
            application_id=application_id,
            comment=grammar.check_comment(comment, place="comment"),
            created_at=now,
            ends_at=now + days * DAY_SECONDS,
        )
        record = self._recorder.record(
            AuditEvent.SERVICE_TOKEN_MADE,
            origin,
            subject=f"application {application_id}",
            details={"jti": token.jti, "days": days, "comment": token.comment},
        )
        await self._store.add_service_token(token, (record,))
        return IssuedServiceToken(token=token, jwt=await self._signer.sign(self._claims(token)))

    async def list(self, application_id: int) -> Sequence[ServiceToken]:
        return await self._store.service_tokens(application_id)

    async def revoke(self, application_id: int, jti: str, origin: AuditOrigin) -> None:
        """Refuse it from now on; raises KeyNotFound, also for one of another application."""
        record = self._recorder.record(
            AuditEvent.SERVICE_TOKEN_REVOKED, origin, subject=f"application {application_id}", details={"jti": jti}
        )
        await self._store.revoke_service_token(application_id, jti, (record,))

    def _claims(self, token: ServiceToken) -> StaticServiceClaims:
        return StaticServiceClaims(
            iss=self._issuer,
            iat=token.created_at,
            exp=token.ends_at,
            aud=str(token.application_id),
            jti=token.jti,
        )
