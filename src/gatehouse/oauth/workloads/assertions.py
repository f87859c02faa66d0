"""Checks the tokens of foreign issuers that authenticate a client (R11, RFC 7523 §3)."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import GatehouseError
from gatehouse.oauth.errors import InvalidClient
from gatehouse.oauth.model import Client
from gatehouse.oauth.store import GrantStore
from gatehouse.oauth.workloads.keys import KeysUnreadable, WorkloadKeys
from gatehouse.oauth.workloads.model import WorkloadIdentity
from gatehouse.tokens.claims import InvalidToken
from gatehouse.tokens.foreign_jws import is_signed_with, parse_foreign_jws
from gatehouse.tokens.verifier import LEEWAY, ParsedJws

REFUSED_HEADERS: Final = ("crit", "jku", "x5u", "jwk")  # keys come from the registered issuer only (R11)
MAX_AGE: Final = 3_600  # seconds since iat
MAX_LIFETIME: Final = 86_400  # seconds from now to exp
MAX_LIFETIME_WITHOUT_IAT: Final = 3_600
MAX_JTI: Final = 255
MAX_NAME: Final = 255  # characters of an issuer or subject in an audit record


class WorkloadRefused(GatehouseError):
    """The detail is a fixed text for the audit log."""

    public = "The token of the workload is not accepted."


class Workload(Struct, frozen=True, kw_only=True):
    """Who presented the token, as its issuer names them."""

    issuer: str
    subject: str

    @property
    def audit_details(self) -> Mapping[str, str]:
        return {"workload_issuer": self.issuer[:MAX_NAME], "workload_subject": self.subject[:MAX_NAME]}


class WorkloadAssertions(Struct, kw_only=True, eq=False):
    keys: WorkloadKeys
    store: GrantStore
    clock: Clock
    issuer: str  # of this service, and the audience that is expected

    async def verify(self, client: Client, assertion: str) -> None:
        """Check the token, and use it up where the identity says so. Raises WorkloadRefused, InvalidClient."""
        jws = parse_workload_token(assertion)
        identities = self._matching_identities(client, jws.payload)
        refuse_other_time(jws.payload, self.clock.now())
        identity = await self._signing_identity(identities, jws)
        if identity.single_use and not await self._is_first_use(client, identity, jws.payload):
            raise WorkloadRefused("the token of the workload was used before, or has no jti")

    def _matching_identities(self, client: Client, payload: Mapping[str, object]) -> Sequence[WorkloadIdentity]:
        """Return the identities that the token is of. Raises WorkloadRefused if there is none."""
        issuer, subject = payload.get("iss"), payload.get("sub")
        is_foreign = isinstance(subject, str) and issuer != self.issuer
        found = [one for one in client.workload_identities if is_foreign and one.is_of(issuer, str(subject))]
        if not found:
            raise WorkloadRefused("no workload identity has this issuer and subject")
        found = [one for one in found if one.has_claims(payload)]
        if not found:
            raise WorkloadRefused("a claim of the workload's token differs")
        found = [one for one in found if has_audience(payload, one.audience or self.issuer)]
        if not found:
            raise WorkloadRefused("the token of the workload has another audience")
        return found

    async def _signing_identity(self, identities: Sequence[WorkloadIdentity], jws: ParsedJws) -> WorkloadIdentity:
        """Return the first identity with a key that signed the token. Raises WorkloadRefused if there is none."""
        reason = "the signature of the workload's token is wrong"
        for identity in identities:
            try:
                keys = await self.keys.find(identity, alg=jws.alg, kid=jws.kid)
            except KeysUnreadable:
                reason = "the keys of the workload's issuer cannot be read"
                continue
            if any(is_signed_with(jws, key.public) for key in keys):
                return identity
        raise WorkloadRefused(reason)

    async def _is_first_use(self, client: Client, identity: WorkloadIdentity, payload: Mapping[str, object]) -> bool:
        """Whether no client of this service has presented it."""
        jti, ends_at = payload.get("jti"), payload["exp"]
        if not isinstance(jti, str) or not 0 < len(jti) <= MAX_JTI or not isinstance(ends_at, int):
            return False
        digest = sha256(sha256(f"workload {identity.issuer_name}") + sha256(jti))
        return await self.store.spend_assertion(digest, client.client_id, self.clock.now(), ends_at=ends_at + LEEWAY)


def refuse_other_time(payload: Mapping[str, object], now: int) -> None:
    """Raise WorkloadRefused for a token that is too old, ends too late, or is not valid yet."""
    ends, issued, starts = (time_in(payload, name) for name in ("exp", "iat", "nbf"))
    if ends is None:
        raise WorkloadRefused("the token of the workload has no end")
    longest = MAX_LIFETIME_WITHOUT_IAT if issued is None else MAX_LIFETIME
    if ends + LEEWAY <= now or ends > now + longest + LEEWAY:
        raise WorkloadRefused("the token of the workload has expired, or ends too late")
    if issued is not None and not now - MAX_AGE - LEEWAY <= issued <= now + LEEWAY:
        raise WorkloadRefused("the token of the workload is older than an hour, or from the future")
    if starts is not None and starts > now + LEEWAY:
        raise WorkloadRefused("the token of the workload is not valid yet")


def time_in(payload: Mapping[str, object], name: str) -> int | None:
    """Return a time; None if it is absent. Raises WorkloadRefused for anything else than a whole number."""
    value = payload.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise WorkloadRefused("the token of the workload is malformed")
    return value


def has_audience(payload: Mapping[str, object], audience: str) -> bool:
    return payload.get("aud") in (audience, [audience])


def workload_of(client: Client, assertion: str) -> Workload | None:
    """Return who presented the token, once it is verified; None for a client without workload identities."""
    if not client.workload_identities:
        return None
    payload = parse_workload_token(assertion).payload
    issuer, subject = payload.get("iss"), str(payload.get("sub", ""))
    names = (one.issuer_name for one in client.workload_identities if one.is_of(issuer, subject))
    return Workload(issuer=next(names, ""), subject=subject)


def parse_workload_token(assertion: str) -> ParsedJws:
    """Parse an assertion of any issuer. Raises InvalidClient."""
    try:
        return parse_foreign_jws(assertion, refused=REFUSED_HEADERS)
    except InvalidToken as error:
        raise InvalidClient(error.detail) from None
