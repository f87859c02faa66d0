"""The keys of issuers of workload identities: read through the outbound guard, and the last good ones kept (R11)."""

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec
import structlog
from msgspec import Struct

from gatehouse.kernel.cache import WeightedCache
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError
from gatehouse.kernel.strict_json import decode_strict_json
from gatehouse.kernel.web_urls import parse_web_url
from gatehouse.keys.jwk_parsing import ForeignKey, foreign_keys
from gatehouse.oauth.workloads.model import WorkloadIdentity
from gatehouse.outbound.client import OutboundClient
from gatehouse.outbound.model import CallFailed
from gatehouse.outbound.shared_reads import SharedReads

log = structlog.get_logger(__name__)

DISCOVERY_PATH: Final = "/.well-known/openid-configuration"
MEDIA_TYPES: Final = "application/jwk-set+json, application/json"
MAX_KEYS: Final = 50
CACHE_BYTES: Final = 4 * 2**20
KEY_BYTES: Final = 2_000  # in memory
FRESH_SECONDS: Final = 3_600
AGAIN_SECONDS: Final = 60  # between two reads for a key that is not among them, and after a failed one (R11)
KEPT_SECONDS: Final = 86_400  # that the last good keys are used while they cannot be read (R11)

DocumentT = TypeVar("DocumentT", bound=Struct)


class KeysUnreadable(GatehouseError):
    """The detail says why, for administrators and the log."""

    public = "The keys of the issuer cannot be read."


class DiscoveryDocument(Struct, frozen=True):
    issuer: str
    jwks_uri: str


class KeySetDocument(Struct, frozen=True):
    keys: list[object]


class ReadKeys(Struct, frozen=True, kw_only=True):
    keys: tuple[ForeignKey, ...]
    read_at: float


class WorkloadKeys:
    def __init__(self, *, outbound: OutboundClient, clock: Clock) -> None:
        self._outbound = outbound
        self._clock = clock
        self._cache: WeightedCache[ReadKeys] = WeightedCache(CACHE_BYTES)
        self._reads = SharedReads(
            failure=KeysUnreadable, failure_seconds=AGAIN_SECONDS, cache_bytes=CACHE_BYTES, clock=clock
        )

    async def find(self, identity: WorkloadIdentity, *, alg: str, kid: str) -> Sequence[ForeignKey]:
        """Return the keys that may have signed a token. Raises KeysUnreadable.

        They are read again after an hour, and for an unknown one at most once a minute.
        """
        if identity.jwks:
            return matching(fixed_keys(identity), alg=alg, kid=kid)
        group, place = place_of_keys(identity)
        known, now = self._cache.get(group, place), self._clock.monotonic()
        if known is not None and now < known.read_at + FRESH_SECONDS:
            found = matching(known.keys, alg=alg, kid=kid)
            if found or now < known.read_at + AGAIN_SECONDS:
                return found
        try:
            keys = await self._reads.fetch_shared(group, place, lambda: self._read_and_keep(identity))
        except KeysUnreadable as error:
            if known is None or now >= known.read_at + KEPT_SECONDS:
                raise
            log.warning("keys of an issuer not read", issuer=identity.issuer_name, reason=error.detail)
            keys = known.keys
        return matching(keys, alg=alg, kid=kid)

    async def _read_and_keep(self, identity: WorkloadIdentity) -> tuple[ForeignKey, ...]:
        keys, (group, place) = await self.read_keys(identity), place_of_keys(identity)
        read = ReadKeys(keys=keys, read_at=self._clock.monotonic())
        self._cache.put(group, place, read, KEY_BYTES * len(keys) + len(place))
        return keys

    async def read_keys(self, identity: WorkloadIdentity) -> tuple[ForeignKey, ...]:
        """Read the keys now. Raises KeysUnreadable."""
        if identity.jwks:
            return fixed_keys(identity)
        address = await self._discover(identity.issuer) if identity.discovery else identity.jwks_uri
        document = await self._get(address, KeySetDocument)
        keys = tuple(foreign_keys(document.keys[:MAX_KEYS], use=identity.key_use))
        if not keys:
            raise KeysUnreadable(f"{address} has no usable key of use {identity.key_use}")
        return keys

    async def _discover(self, issuer: str) -> str:
        address = discovery_address(issuer)
        document = await self._get(address, DiscoveryDocument)
        if document.issuer != issuer:
            raise KeysUnreadable(f"{address} names another issuer")
        url = parse_web_url(document.jwks_uri)
        if url is None or url.scheme != "https" or url.fragment:
            raise KeysUnreadable(f"{address} names a jwks_uri that is no https URL")
        return document.jwks_uri

    async def _get(self, address: str, kind: type[DocumentT]) -> DocumentT:
        try:
            response = await self._outbound.get(address, accept=MEDIA_TYPES)
        except CallFailed as error:
            raise KeysUnreadable(f"{address}: {error.detail or error.public}") from None
        if not response.is_success:
            raise KeysUnreadable(f"{address} answered {response.status}")
        try:
            return decode_strict_json(response.body.decode(), kind)
        except (ValueError, msgspec.MsgspecError) as error:  # of the encoding, the JSON or its members
            raise KeysUnreadable(f"{address}: {error}") from None


def place_of_keys(identity: WorkloadIdentity) -> tuple[str, str]:
    """Return where the keys are, as caches name it: what kind of place, and which one."""
    return ("discovery", identity.issuer) if identity.discovery else (identity.key_use, identity.jwks_uri)


def discovery_address(issuer: str) -> str:
    return f"{issuer.rstrip('/')}{DISCOVERY_PATH}"


def fixed_keys(identity: WorkloadIdentity) -> tuple[ForeignKey, ...]:
    return tuple(foreign_keys(identity.jwks.get("keys", ()), use=identity.key_use))


def matching(keys: Sequence[ForeignKey], *, alg: str, kid: str) -> Sequence[ForeignKey]:
    return [key for key in keys if key.may_sign(alg=alg, kid=kid)]
