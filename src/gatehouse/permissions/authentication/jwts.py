"""JWTs of callers: verify those of people and service accounts, and verify, issue and revoke service JWTs."""

from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Final, TypeAlias

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.cache import WeightedCache
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import ServiceToken
from gatehouse.permissions.store import ApplicationKeyStore
from gatehouse.tokens.claims import (
    ExchangedUserClaims,
    GeneratedServiceClaims,
    InvalidToken,
    ServiceAccountClaims,
    StaticServiceClaims,
    UserJwtClaims,
    typ_of,
)
from gatehouse.tokens.signer import Signer
from gatehouse.tokens.verifier import TokenVerifier, parse_jws

CLAIMS_CACHE_BYTES: Final = 32 * 2**20  # ten thousand tokens of ordinary length
CLAIMS_WEIGHT: Final = 3  # bytes of claims in memory for each character of a token
CLAIMS_CACHE_GROUP: Final = "claims"

CallerClaims: TypeAlias = UserJwtClaims | ExchangedUserClaims | ServiceAccountClaims
CLAIMS_BY_TYP: Final = {typ_of(kind): kind for kind in (UserJwtClaims, ExchangedUserClaims, ServiceAccountClaims)}


class CallerJwtVerifier:
    """Owns the cache of claims by JWT digest; an entry is never invalid, because a signature stays valid.

    Whether the token is still valid is checked for every request: its key and lifetime here, the account's `rev` with
    the facts.
    """

    def __init__(self, verifier: TokenVerifier) -> None:
        self._verifier = verifier
        self._cache: WeightedCache[CallerClaims] = WeightedCache(CLAIMS_CACHE_BYTES)

    @property
    def cache_weight(self) -> int:
        """Estimated bytes of the cached claims."""
        return self._cache.weight

    async def verify(self, jwt: str, *, expiry_grace: int = 0) -> CallerClaims:
        """Verify a JWT; only a user JWT may be expired, by at most the grace seconds. Raises InvalidToken.

        The claims name the user whose facts to read, and are valid only after `recheck_key` with these facts.
        """
        digest = sha256(jwt)
        claims = self._cache.get(CLAIMS_CACHE_GROUP, digest)
        if claims is not None:
            await self._verifier.recheck_with_cached_keys(claims, expiry_grace=grace_for(type(claims), expiry_grace))
            return claims
        kind = claims_class_of(jwt)
        claims = await self._verifier.verify_with_cached_keys(jwt, kind, expiry_grace=grace_for(kind, expiry_grace))
        self._cache.put(CLAIMS_CACHE_GROUP, digest, claims, CLAIMS_WEIGHT * len(jwt))
        return claims

    async def recheck_key(self, claims: CallerClaims, *, keys_version: int) -> None:
        """Raise InvalidToken when the key is not trusted any more in the version that came with the facts."""
        await self._verifier.recheck_key(claims, keys_version=keys_version)


def grace_for(kind: type[CallerClaims], expiry_grace: int) -> int:
    """Return the grace seconds: none for an exchanged JWT and for that of a service account (R2)."""
    return expiry_grace if kind is UserJwtClaims else 0


def claims_class_of(jwt: str) -> type[CallerClaims]:
    """Return the class of claims by the token's type; the token is then fully verified as that class."""
    typ = parse_jws(jwt).payload.get("typ")
    kind = CLAIMS_BY_TYP.get(typ) if typ is None or isinstance(typ, str) else None
    if kind is None:
        raise InvalidToken("not an accepted token type")
    return kind


# Service JWTs: an application authenticates with one (R2).
#
# Static ones are issued here by an administrator and can be revoked. Applications sign generated ones themselves;
# they live for minutes.


DAY_SECONDS: Final = 86_400
MAX_TOKEN_DAYS: Final = 365
JTI_BYTES: Final = 16


class IssuedServiceToken(SecretRecord, frozen=True, kw_only=True):
    token: ServiceToken
    jwt: SecretText


class ServiceJwtVerifier:
    """Finds the application of a service JWT."""

    def __init__(self, *, store: ApplicationKeyStore, verifier: TokenVerifier) -> None:
        self._store = store
        self._verifier = verifier

    async def verify(self, jwt: str) -> int:
        """Verify a service JWT.

        Raises InvalidToken, also if it was revoked or its application or project is removed.
        """
        claims = await self._verifier.verify_service_jwt(jwt)
        if isinstance(claims, GeneratedServiceClaims):
            return int(claims.iss)  # the key was found, so the application exists
        found = await self._store.service_token(claims.jti)
        if found is None or found.token.revoked or found.token.application_id != int(claims.aud):
            raise InvalidToken(f"service JWT {claims.jti} is revoked, or its application was removed")
        await self._verifier.recheck_key(claims, keys_version=found.keys_version)
        return found.token.application_id


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
