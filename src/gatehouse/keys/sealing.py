"""Secrets at rest: AES-256-GCM under a master key that is kept outside the database (S-01).

Each record has a random data key of its own, wrapped by the master key. This has advantages over encrypting directly:
the master key encrypts only short random keys, changing it re-wraps those without touching the secret itself, and a
key service that can only wrap could replace it.

    version 1 | key id 8 | nonce 12, wrapped data key 48 | nonce 12, ciphertext and tag

The purpose ("signing-key:…") is authenticated in both layers, so a record moved elsewhere does not open.
"""

import secrets
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import structlog
from cachetools import LRUCache
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec import Struct

from gatehouse.kernel.errors import Misconfigured
from gatehouse.keys.encoding import encode_base64url
from gatehouse.keys.model import MasterKeyMissing, Tampered, WrongMasterKey

KEY_BYTES: Final = 32
VERSION: Final = b"\x01"
KEY_ID_BYTES: Final = 8
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
WRAPPED_BYTES: Final = NONCE_BYTES + KEY_BYTES + TAG_BYTES
MIN_ENVELOPE_BYTES: Final = len(VERSION) + KEY_ID_BYTES + WRAPPED_BYTES + NONCE_BYTES + TAG_BYTES
MIN_DISTINCT_BYTES: Final = 16  # 32 random bytes hold about 30 distinct ones; under 16 they were typed by hand
MAX_REPORTED: Final = 10_000  # damaged records that were reported

log = structlog.get_logger(__name__)


class Envelope(Struct, frozen=True):
    key_id: str
    wrapped: bytes  # the data key, under the master key
    body: bytes  # the secret, under the data key


class MasterKeys:
    """All configured keys open. One seals: the key that the installation names, so that every node can open it.

    A new key is configured as the primary one, and seals only after `gatehouse key rewrap` has named it.
    """

    def __init__(self, primary: bytes, previous: Sequence[bytes] = ()) -> None:
        self._masters = {master_key_id(key): key for key in (primary, *previous)}
        self._wrapping = {key_id: AESGCM(derive_key(key, "wrap")) for key_id, key in self._masters.items()}
        self.primary_id: Final = master_key_id(primary)
        self.sealing_id = self.primary_id
        self.missing: frozenset[str] = frozenset()  # named by the installation, and not configured here
        self._reported: LRUCache[str, bytes] = LRUCache(MAX_REPORTED)

    def __repr__(self) -> str:
        return f"MasterKeys({', '.join(self._masters)})"

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of all configured keys, the one that seals first."""
        return (self.sealing_id, *(key_id for key_id in self._masters if key_id != self.sealing_id))

    def follow(self, named: str) -> None:
        """Take over the ids of the keys in use, as the installation names them: the one to seal with first.

        An unknown id stops this process from sealing anything: what it seals with a key that is being replaced
        would be lost, and a log whose head it cannot open would look broken.
        """
        key_ids = named.split()
        self.missing = frozenset(key_ids).difference(self._masters)
        if key_ids and not self.missing:
            self.sealing_id = key_ids[0]

    def seal(self, plain: bytes, *, purpose: str) -> bytes:
        """Encrypt and authenticate. Raises MasterKeyMissing."""
        if self.missing:
            raise MasterKeyMissing(f"{purpose}: {self.missing_text}")
        data_key = secrets.token_bytes(KEY_BYTES)
        body = encrypt(AESGCM(data_key), plain, purpose)
        return self._envelope(self.sealing_id, data_key, body, purpose)

    @property
    def missing_text(self) -> str:
        return f"master key {' and '.join(sorted(self.missing))} is in use and not configured here"

    def open(self, sealed: bytes, *, purpose: str) -> bytes:
        """Return the secret; raise MasterKeyMissing, WrongMasterKey or Tampered."""
        envelope = split_envelope(sealed, purpose)
        data_key = self._unwrap(envelope, purpose)
        return decrypt(AESGCM(data_key), envelope.body, purpose)

    def try_open(self, sealed: bytes, *, purpose: str) -> bytes | None:
        """Return the secret; None, with an alert, for a damaged one: only that one is refused (R-25).

        The alert is logged once for each record and names its purpose.
        """
        try:
            return self.open(sealed, purpose=purpose)
        except (Tampered, WrongMasterKey) as error:
            if self._reported.get(purpose) != sealed:
                self._reported[purpose] = sealed
                log.critical("stored secret refused", reason=error.detail)
            return None

    def rewrap(self, sealed: bytes, *, purpose: str) -> bytes:
        """Return the same secret sealed with the primary key."""
        envelope = split_envelope(sealed, purpose)
        data_key = self._unwrap(envelope, purpose)
        decrypt(AESGCM(data_key), envelope.body, purpose)  # a damaged record must not be re-wrapped as valid
        return self._envelope(self.primary_id, data_key, envelope.body, purpose)

    def derive(self, label: str, *, key_id: str = "") -> bytes:
        """A 32-byte key for one use (a MAC, a CSRF token): of the primary key, or of the one named.

        Callers that store what it protects store `primary_id` beside it, to verify it after a change of key.
        """
        master = self._masters.get(key_id or self.primary_id)
        if master is None:
            raise WrongMasterKey(f"{label}: master key {key_id} is not configured")
        return derive_key(master, f"derive:{label}")

    def refuse_foreign_records(self, records: Iterable[bytes]) -> None:
        """Raise WrongMasterKey when there are records and not one was sealed under a key we have.

        Then this is the wrong key or the wrong database: start nothing, change nothing (faults R-24). A single
        foreign one is a damaged record, which does not stop the service (R-25).
        """
        ids = {sealing_key_id(record) for record in records}
        if ids and ids.isdisjoint(self._masters):
            raise WrongMasterKey(f"encrypted with {', '.join(sorted(ids))}; configured {self!r}")

    def _envelope(self, key_id: str, data_key: bytes, body: bytes, purpose: str) -> bytes:
        wrapped = encrypt(self._wrapping[key_id], data_key, purpose)
        return VERSION + bytes.fromhex(key_id) + wrapped + body

    def _unwrap(self, envelope: Envelope, purpose: str) -> bytes:
        wrapping = self._wrapping.get(envelope.key_id)
        if envelope.key_id in self.missing:
            raise MasterKeyMissing(f"{purpose}: {self.missing_text}")
        if wrapping is None:
            raise WrongMasterKey(f"{purpose}: encrypted with master key {envelope.key_id}")
        return decrypt(wrapping, envelope.wrapped, purpose)


def sealing_key_id(sealed: bytes) -> str:
    """The id of the master key a record names; of a damaged record, the bytes at that position."""
    return sealed[len(VERSION) : len(VERSION) + KEY_ID_BYTES].hex()


def split_envelope(sealed: bytes, purpose: str) -> Envelope:
    if len(sealed) < MIN_ENVELOPE_BYTES or not sealed.startswith(VERSION):
        raise Tampered(f"{purpose}: not an encrypted record")
    rest = sealed[len(VERSION) + KEY_ID_BYTES :]
    return Envelope(sealing_key_id(sealed), rest[:WRAPPED_BYTES], rest[WRAPPED_BYTES:])


def encrypt(cipher: AESGCM, plain: bytes, purpose: str) -> bytes:
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + cipher.encrypt(nonce, plain, associated_data(purpose))


def decrypt(cipher: AESGCM, encrypted: bytes, purpose: str) -> bytes:
    try:
        return cipher.decrypt(encrypted[:NONCE_BYTES], encrypted[NONCE_BYTES:], associated_data(purpose))
    except InvalidTag:
        raise Tampered(f"{purpose}: authentication failed") from None


def associated_data(purpose: str) -> bytes:
    return VERSION + purpose.encode()


def master_key_id(key: bytes) -> str:
    if len(key) != KEY_BYTES:
        raise Misconfigured(f"a master key must have {KEY_BYTES} bytes, not {len(key)}")
    return derive_key(key, "id")[:KEY_ID_BYTES].hex()


def derive_key(key: bytes, label: str) -> bytes:
    info = f"gatehouse/master/{label}".encode()
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(key)


def new_master_key() -> str:
    return encode_base64url(secrets.token_bytes(KEY_BYTES)).decode()


def parse_master_key(text: str) -> bytes:
    """Read 32 bytes in hex, base64 or base64url; refuse anything that does not look random."""
    key = decode_master_key(text.strip())
    if key is None:
        raise Misconfigured(f"the master key must be {KEY_BYTES} bytes in base64url, base64 or hex")
    if looks_predictable(key):
        raise Misconfigured("the master key is an example or a phrase; generate a random one")
    return key


def decode_master_key(text: str) -> bytes | None:
    """Return the 32 bytes the text spells canonically in one of the three ways, or None."""
    if not text.isascii():
        return None
    if len(text) == 2 * KEY_BYTES:
        return decode_hex_key(text)
    standard = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        key = b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except NotBase64:
        return None
    canonical = b64encode(key).decode().rstrip("=") == standard
    return key if canonical and len(key) == KEY_BYTES else None


def decode_hex_key(text: str) -> bytes | None:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        return None
    return key if key.hex() == text.lower() else None  # fromhex skips spaces


def looks_predictable(key: bytes) -> bool:
    """True for patterns that 32 random bytes show less than once in 10^13 tries."""
    steps = {(after - before) % 256 for before, after in pairwise(key)}
    half = KEY_BYTES // 2
    return (
        len(set(key)) < MIN_DISTINCT_BYTES  # one byte, or a short text, over and over
        or len(steps) == 1  # 00 01 02 03 …
        or key[:half] == key[half:]
        or all(0x20 <= byte < 0x7F for byte in key)  # noqa: PLR2004 - the printable characters: a phrase
    )
