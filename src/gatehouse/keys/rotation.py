"""Rotates keys without invalidating tokens (S-06, R2).

A new key is published first and signs an hour later, when verifiers have fetched it; the old one then stops signing
and stays published until the last token it signed has expired.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import StrEnum
from typing import Final

import structlog
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as new_ec_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as new_rsa_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec import Struct
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Misconfigured
from gatehouse.kernel.ids import new_key_id
from gatehouse.keys.key_objects import SECRET_KEY_BYTES, PrivateKey, public_der
from gatehouse.keys.model import (
    REFRESH_KEYS,
    Algorithm,
    KeyAlgorithm,
    KeyLine,
    KeyPurpose,
    KeysChanged,
    KeyState,
    KeyStore,
    MacAlgorithm,
    RotationPending,
    SigningKey,
    Tampered,
    WrongMasterKey,
    key_state,
)
from gatehouse.keys.sealing import MasterKeys, sealing_key_id

DAY: Final = 86_400
RSA_EXPONENT: Final = 65_537
RSA_BITS: Final = (2048, 3072)  # R2
MAX_CLOCK_SKEW: Final = 60  # seconds by which clocks of two nodes may differ
MAX_ATTEMPTS: Final = 3  # decisions in all, when other nodes save first

KEY_LINES: Final = (
    KeyLine(KeyPurpose.TOKENS, Algorithm.RS256),
    KeyLine(KeyPurpose.TOKENS, Algorithm.ES256),
    KeyLine(KeyPurpose.TOKENS, Algorithm.EDDSA),
    REFRESH_KEYS,
    KeyLine(KeyPurpose.AUDIT, Algorithm.EDDSA),
)

KeyChange = Callable[[tuple[SigningKey, ...]], Awaitable[list[SigningKey]]]

log = structlog.get_logger(__name__)


class RotationPolicy(Struct, frozen=True, kw_only=True):
    interval: int = 90 * DAY
    publish_lead: int = 3_600  # seconds a new key is published before it signs
    max_token_lifetime: int = 365 * DAY  # of any token: a static service JWT (R2)
    grace: int = 30 * DAY + MAX_CLOCK_SKEW  # an expired user JWT still counts so long (R6)
    rsa_bits: int = 2048
    lines: tuple[KeyLine, ...] = KEY_LINES

    def __post_init__(self) -> None:
        if self.rsa_bits not in RSA_BITS:
            raise Misconfigured(f"RSA keys must have {RSA_BITS[0]} or {RSA_BITS[1]} bits, not {self.rsa_bits}")


class RotationMode(StrEnum):
    PLANNED = "planned"
    AT_ONCE = "at once"  # sign with a new key now; signatures of the old one stay valid
    DISTRUST = "distrust"  # and reject everything that older keys of the line signed


def new_key_bytes(alg: KeyAlgorithm, rsa_bits: int) -> tuple[bytes, bytes]:
    """Return the private key as it is sealed, and the public one; it is empty for a secret key."""
    private: PrivateKey
    match alg:
        case MacAlgorithm.HS256:
            return secrets.token_bytes(SECRET_KEY_BYTES), b""
        case Algorithm.RS256:
            private = new_rsa_key(RSA_EXPONENT, rsa_bits)
        case Algorithm.ES256:
            private = new_ec_key(SECP256R1())
        case Algorithm.EDDSA:
            private = Ed25519PrivateKey.generate()
    plain = private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return plain, public_der(private.public_key())


def make_key(line: KeyLine, masters: MasterKeys, *, now: int, signs_from: int, rsa_bits: int) -> SigningKey:
    """Generate a key. RSA takes a tenth of a second: run it off the event loop."""
    plain, public = new_key_bytes(line.alg, rsa_bits)
    key = SigningKey(
        kid=new_key_id(),
        alg=line.alg,
        purpose=line.purpose,
        public=public,
        sealed_private=b"",
        created_at=now,
        signs_from=signs_from,
    )
    return replace(key, sealed_private=masters.seal(plain, purpose=key.sealed_for))


def lines_without_keys(keys: Sequence[SigningKey], lines: Iterable[KeyLine], now: int) -> list[KeyLine]:
    """Return the lines without a current or future signing key."""
    served = {key.line for key in keys if not key.signs_until and key_state(key, now) is not KeyState.RETIRED}
    return [line for line in lines if line not in served]


def due_for_rotation(keys: Sequence[SigningKey], now: int, interval: int) -> list[KeyLine]:
    """The lines whose youngest key has been signing for so long, or is not of the line's algorithm.

    None that has a key waiting to sign.
    """
    youngest: dict[KeyLine, int] = {}
    for key in keys:
        if key_state(key, now) in (KeyState.NEXT, KeyState.SIGNING):
            signs_for = interval if key.alg is key.line.alg else 0
            youngest[key.line] = max(youngest.get(key.line, 0), max(key.signs_from, key.created_at) + signs_for)
    return [line for line, until in youngest.items() if now >= until]


def pending_key(line_keys: Sequence[SigningKey], now: int) -> SigningKey | None:
    return next((key for key in line_keys if key_state(key, now) is KeyState.NEXT), None)


def end_signing(line_keys: Sequence[SigningKey], at: int, policy: RotationPolicy, now: int) -> list[SigningKey]:
    """Return the keys that sign now, changed to sign only until `at`."""
    signing = [key for key in line_keys if key_state(key, now) is KeyState.SIGNING]
    return [replace(key, signs_until=at, verifies_until=verification_end(key, at, policy)) for key in signing]


def verification_end(key: SigningKey, signs_until: int, policy: RotationPolicy) -> int:
    if key.purpose is KeyPurpose.AUDIT:
        return 0  # the audit log is verified for as long as it is kept
    return signs_until + policy.max_token_lifetime + policy.grace


def distrust_keys(line_keys: Sequence[SigningKey], now: int) -> list[SigningKey]:
    """Return every key of the line, retired: an attacker who read one could read the others too.

    The end is dated back, so that a node with a slower clock rejects them at once too.
    """
    end = now - MAX_CLOCK_SKEW
    live = [key for key in line_keys if key_state(key, end) is not KeyState.RETIRED]
    return [replace(key, signs_until=end, verifies_until=end) for key in live]


class KeyRotation:
    """Decides from one read of the stored keys, and decides again when another node saved first."""

    def __init__(
        self,
        *,
        store: KeyStore,
        masters: MasterKeys,
        recorder: Recorder,
        clock: Clock,
        policy: RotationPolicy,
    ) -> None:
        self._store = store
        self._masters = masters
        self._recorder = recorder
        self._clock = clock
        self._policy = policy

    async def ensure_first_keys(self, *, origin: AuditOrigin) -> tuple[SigningKey, ...]:
        """Make the keys that are missing, signing at once; return them."""

        async def missing(keys: tuple[SigningKey, ...]) -> list[SigningKey]:
            lines = lines_without_keys(keys, self._policy.lines, self._clock.now())
            # From 0, not from now: the first key must also sign on a node whose clock is behind.
            return [await self._make_key(line, signs_from=0) for line in lines]

        return await self._save_change(missing, event=AuditEvent.KEY_MADE, origin=origin)

    async def rotate(
        self, line: KeyLine, *, origin: AuditOrigin, mode: RotationMode = RotationMode.PLANNED
    ) -> SigningKey:
        """Return the key that takes over; raise RotationPending when a planned one already waits."""

        async def successor(keys: tuple[SigningKey, ...]) -> list[SigningKey]:
            return await self._replace_signing_key(line, [key for key in keys if key.line == line], mode)

        event = AuditEvent.KEY_DISTRUSTED if mode is RotationMode.DISTRUST else AuditEvent.KEY_ROTATED
        return (await self._save_change(successor, event=event, origin=origin))[0]

    async def rotate_due(self, *, origin: AuditOrigin) -> tuple[SigningKey, ...]:
        """Rotate the keys that are old enough; return the new ones. Several nodes may call it at once."""

        async def due(keys: tuple[SigningKey, ...]) -> list[SigningKey]:
            changed = []
            for line in due_for_rotation(keys, self._clock.now(), self._policy.interval):
                own = [key for key in keys if key.line == line]
                changed += await self._replace_signing_key(line, own, RotationMode.PLANNED)
            return changed

        changed = await self._save_change(due, event=AuditEvent.KEY_ROTATED, origin=origin)
        return tuple(key for key in changed if not key.signs_until)

    async def rewrap_all(self, *, origin: AuditOrigin) -> int:
        """Rewrap every private half with the primary master key; return how many were rewrapped.

        One save: a crash leaves all as they were, and running it again finishes the work.
        """

        async def rewrap_old(keys: tuple[SigningKey, ...]) -> list[SigningKey]:
            old = [key for key in keys if sealing_key_id(key.sealed_private) != self._masters.primary_id]
            return [moved for key in old if (moved := self._rewrap(key)) is not None]

        return len(await self._save_change(rewrap_old, event=AuditEvent.REWRAPPED, origin=origin))

    def _rewrap(self, key: SigningKey) -> SigningKey | None:
        try:
            sealed = self._masters.rewrap(key.sealed_private, purpose=key.sealed_for)
        except (Tampered, WrongMasterKey) as error:
            log.error("signing key cannot be re-encrypted", key_id=key.kid, reason=error.detail)  # noqa: TRY400
            return None
        return replace(key, sealed_private=sealed)

    async def _replace_signing_key(
        self, line: KeyLine, own: Sequence[SigningKey], mode: RotationMode
    ) -> list[SigningKey]:
        now = self._clock.now()
        waiting = pending_key(own, now)
        match mode:
            case RotationMode.PLANNED:
                if waiting is not None:
                    raise RotationPending(f"{line.purpose} {line.alg}: {waiting.kid}")
                start = now + self._policy.publish_lead
                return [await self._make_key(line, signs_from=start), *end_signing(own, start, self._policy, now)]
            case RotationMode.AT_ONCE:
                # A waiting key is preferred, because verifiers already know it.
                key = replace(waiting, signs_from=now) if waiting else await self._make_key(line, signs_from=now)
                return [key, *end_signing(own, now, self._policy, now)]
            case RotationMode.DISTRUST:
                start = now - MAX_CLOCK_SKEW
                return [await self._make_key(line, signs_from=start), *distrust_keys(own, now)]

    async def _make_key(self, line: KeyLine, *, signs_from: int) -> SigningKey:
        return await asyncio.to_thread(
            make_key,
            line,
            self._masters,
            now=self._clock.now(),
            signs_from=signs_from,
            rsa_bits=self._policy.rsa_bits,
        )

    async def _save_change(
        self, decide: KeyChange, *, event: AuditEvent, origin: AuditOrigin
    ) -> tuple[SigningKey, ...]:
        for _ in range(MAX_ATTEMPTS):
            stored = await self._store.load_keys()
            self._masters.refuse_foreign_records(key.sealed_private for key in stored.keys)
            changed = await decide(stored.keys)
            if not changed:
                return ()
            try:
                await self._store.save_keys(changed, seen=stored.version, entry=self._entry(event, changed, origin))
            except KeysChanged:
                continue
            return tuple(changed)
        raise KeysChanged(f"{event}: another node was faster {MAX_ATTEMPTS} times")

    def _entry(self, event: AuditEvent, keys: Sequence[SigningKey], origin: AuditOrigin) -> AuditRecord:
        kids = ",".join(key.kid for key in keys)
        return self._recorder.record(event, origin, subject="keys", details={"kids": kids})
