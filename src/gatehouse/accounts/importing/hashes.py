"""Password hashes of other systems: parsed and bounded at the import, verified at the first sign-in (R10).

A stored one begins with IMPORTED, so that it is never taken for one of ours: those are made from NFC and a pepper,
these from the bytes as typed. `Passwords` verifies it in its own pool and replaces it by Argon2id.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from typing import ClassVar, Final, TypeAlias

import structlog
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.argon2 import Argon2d, Argon2i, Argon2id
from msgspec import Struct

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.importing.sha_crypt import sha256_crypt, sha512_crypt
from gatehouse.kernel.digests import constant_time_equal

log = structlog.get_logger(__name__)

IMPORTED: Final = "imported:"

MAX_HASH_LENGTH: Final = 1_024  # characters
MAX_BCRYPT_COST: Final = 14  # this and the next five: R10
MAX_PBKDF2_ITERATIONS: Final = 2_000_000
MAX_SCRYPT_MIB: Final = 128
MAX_ARGON2_MIB: Final = 256
MAX_ARGON2_TIME: Final = 10
MAX_SHA_CRYPT_ROUNDS: Final = 1_000_000
MAX_SCRYPT_PASSES: Final = 4  # over the largest memory: bounds `p` by what the whole costs
MAX_ARGON2_LANES: Final = 16

BCRYPT_BYTES: Final = 72  # bcrypt reads no more; the library refuses longer ones instead of cutting them
SHA_CRYPT_ROUNDS: Final = 5_000  # unless the hash names them
MIN_SHA_CRYPT_ROUNDS: Final = 1_000  # fewer are raised to this by the specification
MIN_DIGEST_BYTES: Final = 16
MIB: Final = 2**20
BLANKS: Final = {"salt": "A", "checksum": "A", "value": "A", "bcrypt": "."}  # zeros, as each group writes them
SCRYPT_BLOCK_BITS: Final = 16  # N of r blocks has fewer bits than r times so many
MAX_SHA_CRYPT_PASSWORD: Final = 256  # bytes: each of up to a million rounds reads it
ARGON2_VARIANTS: Final[dict[str, type[Argon2d | Argon2i | Argon2id]]] = {"d": Argon2d, "i": Argon2i, "id": Argon2id}
NAMES: Final = "bcrypt, scrypt, PBKDF2, Argon2, SHA-crypt, salted SHA"


class BadHash(BadAccount):
    """A hash that is not supported, malformed or too expensive to check."""


# What verifies a password of each kind; it takes as long as the hash was made to take.


class Bcrypt(Struct, frozen=True):
    kind: ClassVar[str] = "bcrypt"

    text: str
    prehashed: bool = False  # Django's bcrypt_sha256

    def verify(self, password: bytes) -> bool:
        import bcrypt  # noqa: PLC0415 - most installations have no such hash

        secret = hashlib.sha256(password).hexdigest().encode() if self.prehashed else password[:BCRYPT_BYTES]
        try:
            return bcrypt.checkpw(secret, self.text.encode())
        except ValueError:
            return False


class Pbkdf2(Struct, frozen=True):
    kind: ClassVar[str] = "PBKDF2"

    digest: str
    iterations: int
    salt: bytes
    checksum: bytes

    def verify(self, password: bytes) -> bool:
        """Compare the first block: every further one would cost as much again and prove nothing more."""
        length = min(len(self.checksum), hashlib.new(self.digest).digest_size)
        checksum = hashlib.pbkdf2_hmac(self.digest, password, self.salt, self.iterations, length)
        return constant_time_equal(checksum, self.checksum[:length])


class Scrypt(Struct, frozen=True):
    kind: ClassVar[str] = "scrypt"

    n: int
    r: int
    p: int
    salt: bytes
    checksum: bytes

    def verify(self, password: bytes) -> bool:
        checksum = derive_scrypt(password, self.salt, n=self.n, r=self.r, p=self.p, length=len(self.checksum))
        return constant_time_equal(checksum, self.checksum)


class FirebaseScrypt(Struct, frozen=True):
    """Firebase encrypts its signer key with AES-CTR under a key of scrypt.

    Only the key stream is stored, which is the hash without the signer key: that is a secret of the whole project.
    """

    kind: ClassVar[str] = "Firebase scrypt"
    n: int
    r: int
    salt: bytes  # with the project's separator
    checksum: bytes

    def verify(self, password: bytes) -> bool:
        key = derive_scrypt(password, self.salt, n=self.n, r=self.r, p=1, length=32)
        stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(len(self.checksum)))
        return constant_time_equal(stream, self.checksum)


class Argon2(Struct, frozen=True):
    kind: ClassVar[str] = "Argon2"

    variant: type[Argon2d | Argon2i | Argon2id]
    memory_kib: int
    time_cost: int
    lanes: int
    salt: bytes
    checksum: bytes

    def derivation(self) -> Argon2d | Argon2i | Argon2id:
        """Return what derives the checksum, once. Raises ValueError for parameters that Argon2 does not allow."""
        return self.variant(
            salt=self.salt,
            length=len(self.checksum),
            iterations=self.time_cost,
            lanes=self.lanes,
            memory_cost=self.memory_kib,
        )

    def verify(self, password: bytes) -> bool:
        return constant_time_equal(self.derivation().derive(password), self.checksum)


class ShaCrypt(Struct, frozen=True):
    kind: ClassVar[str] = "SHA-crypt"

    make: Callable[[bytes, bytes, int], str]
    rounds: int
    salt: str
    checksum: str

    def verify(self, password: bytes) -> bool:
        if len(password) > MAX_SHA_CRYPT_PASSWORD:
            return False
        return constant_time_equal(self.make(password, self.salt.encode(), self.rounds), self.checksum)


class SaltedSha(Struct, frozen=True):
    kind: ClassVar[str] = "salted SHA"

    digest: str
    salt: bytes
    checksum: bytes
    salt_first: bool

    def verify(self, password: bytes) -> bool:
        whole = self.salt + password if self.salt_first else password + self.salt
        return constant_time_equal(hashlib.new(self.digest, whole).digest(), self.checksum)


ForeignHash: TypeAlias = Bcrypt | Pbkdf2 | Scrypt | FirebaseScrypt | Argon2 | ShaCrypt | SaltedSha


def derive_scrypt(password: bytes, salt: bytes, *, n: int, r: int, p: int, length: int) -> bytes:
    memory = 128 * r * (n + p + 2) + MIB  # what OpenSSL asks for, and some room
    return hashlib.scrypt(password, salt=salt, n=n, r=r, p=p, maxmem=memory, dklen=length)


# Entry points.


def imported_hash(text: str) -> str:
    """Return the hash as it is stored. Raises BadHash."""
    parse_hash(text)
    return IMPORTED + text


def is_imported(stored: str) -> bool:
    return stored.startswith(IMPORTED)


def verify_imported(stored: str, password: str) -> bool:
    try:
        known = parse_hash(stored.removeprefix(IMPORTED))
    except BadHash as error:  # accepted by an earlier version, or stored some other way
        log.warning("a stored imported password hash cannot be checked", reason=str(error))
        return False
    try:
        return known.verify(password.encode("utf-8", "surrogatepass"))
    except (ValueError, MemoryError):  # parameters that a library refuses, or memory that is not there
        return False


def blank_hash(stored: str) -> str:
    """Return a hash, ours or imported, without its salt and checksum: checking it takes as long, and nothing matches.

    Hashes of one kind with the same parameters become the same text. Raises BadHash.
    """
    prefix = IMPORTED if is_imported(stored) else ""
    match, _ = _recognize(stored.removeprefix(prefix))
    text = match.string
    for name in BLANKS.keys() & match.groupdict().keys():
        begin, end = match.span(name)
        blank = "".join("=" if each == "=" else BLANKS[name] for each in text[begin:end])
        text = text[:begin] + blank + text[end:]
    return prefix + text


def parse_hash(text: str) -> ForeignHash:
    """Return what verifies the hash. Raises BadHash, which never quotes the hash."""
    if len(text) > MAX_HASH_LENGTH:
        raise BadHash(f"the password hash is longer than {MAX_HASH_LENGTH} characters")
    match, build = _recognize(text)
    return build(match)


def _recognize(text: str) -> "tuple[re.Match[str], Builder]":
    for pattern, build in NOTATIONS:
        if (match := re.fullmatch(pattern, text, re.ASCII)) is not None:
            return match, build
    raise BadHash(f"the password hash is malformed or of an unknown kind; supported are {NAMES}")


# Notations, one builder each.


def _bcrypt(match: re.Match[str]) -> Bcrypt:
    _refuse_above("the bcrypt cost", int(match["cost"]), MAX_BCRYPT_COST)
    return Bcrypt(match["text"], prehashed=match["django"] == "bcrypt_sha256$")


def _pbkdf2(match: re.Match[str]) -> Pbkdf2:
    salt, checksum = decode_base64(match["salt"]), decode_base64(match["checksum"])
    return checked_pbkdf2((match["digest"] or "sha1"), int(match["iterations"]), salt, checksum)


def _django_pbkdf2(match: re.Match[str]) -> Pbkdf2:
    salt, checksum = match["salt"].encode(), decode_base64(match["checksum"])
    return checked_pbkdf2(match["digest"], int(match["iterations"]), salt, checksum)


def checked_pbkdf2(digest: str, iterations: int, salt: bytes, checksum: bytes) -> Pbkdf2:
    _refuse_above("PBKDF2 iterations", iterations, MAX_PBKDF2_ITERATIONS)
    _refuse_short(checksum)
    return Pbkdf2(digest=digest, iterations=max(iterations, 1), salt=salt, checksum=checksum)


def _scrypt(match: re.Match[str]) -> Scrypt:
    salt, checksum = decode_base64(match["salt"]), decode_base64(match["checksum"])
    return checked_scrypt(_power_of_two(int(match["ln"])), int(match["r"]), int(match["p"]), salt, checksum)


def _django_scrypt(match: re.Match[str]) -> Scrypt:
    salt, checksum = match["salt"].encode(), decode_base64(match["checksum"])
    return checked_scrypt(int(match["n"]), int(match["r"]), int(match["p"]), salt, checksum)


def checked_scrypt(n: int, r: int, p: int, salt: bytes, checksum: bytes) -> Scrypt:
    refuse_costly_scrypt(n, r, p)
    _refuse_short(checksum)
    return Scrypt(n=n, r=r, p=p, salt=salt, checksum=checksum)


def refuse_costly_scrypt(n: int, r: int, p: int) -> None:
    if n < 2 or n & (n - 1) or not r or not p:  # noqa: PLR2004 - the smallest power of two that scrypt takes
        raise BadHash("the scrypt parameters are malformed: N must be a power of two, r and p at least 1")
    _refuse_above("scrypt memory in MiB", -(-128 * r * max(n, p) // MIB), MAX_SCRYPT_MIB)
    if n.bit_length() > SCRYPT_BLOCK_BITS * r:
        raise BadHash("the scrypt parameters are malformed: N is too large for r")  # RFC 7914 §2
    _refuse_above("scrypt memory times p in MiB", -(-128 * n * r * p // MIB), MAX_SCRYPT_PASSES * MAX_SCRYPT_MIB)


def _firebase(match: re.Match[str]) -> FirebaseScrypt:
    n, r = _power_of_two(int(match["ln"])), int(match["r"])
    refuse_costly_scrypt(n, r, 1)
    checksum = decode_base64(match["checksum"])
    _refuse_short(checksum)
    return FirebaseScrypt(n=n, r=r, salt=decode_base64(match["salt"]), checksum=checksum)


def _argon2(match: re.Match[str]) -> Argon2:
    if match["version"] != "19":  # in decimal; version 1.0 is 16, or left out
        raise BadHash("only version 1.3 of Argon2 (v=19) is supported")
    memory_kib, time_cost, lanes = int(match["m"]), int(match["t"]), int(match["p"])
    _refuse_above("Argon2 memory in MiB", -(-memory_kib // 1024), MAX_ARGON2_MIB)
    _refuse_above("the Argon2 time cost", time_cost, MAX_ARGON2_TIME)
    _refuse_above("Argon2 parallelism", lanes, MAX_ARGON2_LANES)
    known = Argon2(
        ARGON2_VARIANTS[match["variant"]],
        memory_kib,
        time_cost,
        lanes,
        decode_base64(match["salt"]),
        decode_base64(match["checksum"]),
    )
    _refuse_short(known.checksum)
    try:
        known.derivation()
    except ValueError:
        raise BadHash("the Argon2 hash is malformed") from None
    return known


def _sha_crypt(match: re.Match[str]) -> ShaCrypt:
    rounds = SHA_CRYPT_ROUNDS if match["rounds"] is None else int(match["rounds"])
    _refuse_above("SHA-crypt rounds", rounds, MAX_SHA_CRYPT_ROUNDS)
    make = sha256_crypt if match["kind"] == "5" else sha512_crypt
    return ShaCrypt(make, max(rounds, MIN_SHA_CRYPT_ROUNDS), match["salt"], match["checksum"])


def _ldap(match: re.Match[str]) -> SaltedSha:
    digest = f"sha{match['bits'] or '1'}"
    value, size = decode_base64(match["value"]), hashlib.new(digest).digest_size
    return checked_sha(digest, value[size:], value[:size], salt_first=False)


def _salted_sha(match: re.Match[str]) -> SaltedSha:
    salt, checksum = decode_base64(match["salt"]), decode_base64(match["checksum"])
    return checked_sha(match["digest"], salt, checksum, salt_first=match["position"] == "prefix")


def _django_sha1(match: re.Match[str]) -> SaltedSha:
    return checked_sha("sha1", match["salt"].encode(), bytes.fromhex(match["checksum"]), salt_first=True)


def checked_sha(digest: str, salt: bytes, checksum: bytes, *, salt_first: bool) -> SaltedSha:
    if not salt:
        raise BadHash("a SHA hash without a salt is not supported: anyone can look up such passwords")
    if len(checksum) != hashlib.new(digest).digest_size:
        raise BadHash("the password hash has the wrong length for its kind")
    return SaltedSha(digest, salt, checksum, salt_first=salt_first)


B64: Final = r"[A-Za-z0-9+/._-]"
NUMBER: Final = r"[0-9]{1,10}"
Builder = Callable[[re.Match[str]], ForeignHash]
# Compiled when the first hash is read: many installations have none.
NOTATIONS: Final[tuple[tuple[str, Builder], ...]] = (
    (
        (
            r"(?P<django>bcrypt\$|bcrypt_sha256\$|)"
            r"(?P<text>\$2[aby]\$(?P<cost>[0-9]{2})\$(?P<bcrypt>[A-Za-z0-9./]{53}))"
        ),
        _bcrypt,
    ),
    (
        (
            rf"\$pbkdf2(-(?P<digest>sha1|sha256|sha512))?\$(i=)?(?P<iterations>{NUMBER})(,l={NUMBER})?"
            rf"\$(?P<salt>{B64}*=*)\$(?P<checksum>{B64}+=*)"
        ),
        _pbkdf2,
    ),
    (
        (
            rf"pbkdf2_(?P<digest>sha1|sha256|sha512)\$(?P<iterations>{NUMBER})\$(?P<salt>[^$]+)"
            rf"\$(?P<checksum>{B64}+=*)"
        ),
        _django_pbkdf2,
    ),
    (
        (
            rf"\$scrypt\$ln=(?P<ln>[0-9]{{1,2}}),r=(?P<r>{NUMBER}),p=(?P<p>{NUMBER})"
            rf"\$(?P<salt>{B64}*=*)\$(?P<checksum>{B64}+=*)"
        ),
        _scrypt,
    ),
    (
        rf"scrypt\$(?P<n>{NUMBER})\$(?P<salt>[^$]+)\$(?P<r>{NUMBER})\$(?P<p>{NUMBER})\$(?P<checksum>{B64}+=*)",
        _django_scrypt,
    ),
    (
        (
            rf"\$firebase-scrypt\$ln=(?P<ln>[0-9]{{1,2}}),r=(?P<r>{NUMBER})"
            rf"\$(?P<salt>{B64}*=*)\$(?P<checksum>{B64}+=*)"
        ),
        _firebase,
    ),
    (
        (
            rf"(argon2(?=\$))?\$argon2(?P<variant>i|d|id)\$(v=(?P<version>[0-9]{{2}})\$)?m=(?P<m>{NUMBER}),"
            rf"t=(?P<t>{NUMBER}),p=(?P<p>{NUMBER})\$(?P<salt>[A-Za-z0-9+/]+)\$(?P<checksum>[A-Za-z0-9+/]+)"
        ),
        _argon2,
    ),
    (
        (
            r"(\{CRYPT\})?\$(?P<kind>5)\$(rounds=(?P<rounds>[0-9]{1,10})\$)?(?P<salt>[^$:\n]{0,16})"
            r"\$(?P<checksum>[A-Za-z0-9./]{43})"
        ),
        _sha_crypt,
    ),
    (
        (
            r"(\{CRYPT\})?\$(?P<kind>6)\$(rounds=(?P<rounds>[0-9]{1,10})\$)?(?P<salt>[^$:\n]{0,16})"
            r"\$(?P<checksum>[A-Za-z0-9./]{86})"
        ),
        _sha_crypt,
    ),
    (rf"\{{SSHA(?P<bits>256|384|512)?\}}(?P<value>{B64}+=*)", _ldap),
    (
        (
            rf"\$salted-(?P<digest>sha1|sha256|sha384|sha512)\$(?P<position>prefix|suffix)"
            rf"\$(?P<salt>{B64}+=*)\$(?P<checksum>{B64}+=*)"
        ),
        _salted_sha,
    ),
    (r"sha1\$(?P<salt>[^$]+)\$(?P<checksum>[0-9a-fA-F]{40})", _django_sha1),
)


def _refuse_above(what: str, value: int, limit: int) -> None:
    if value > limit:
        raise BadHash(f"{what} is {value:,}; at most {limit:,} is accepted")


def _refuse_short(checksum: bytes) -> None:
    if len(checksum) < MIN_DIGEST_BYTES:
        raise BadHash(f"the password hash has fewer than {MIN_DIGEST_BYTES} bytes")


def _power_of_two(exponent: int) -> int:
    return 1 << min(exponent, 40)  # more than enough to be refused


def decode_base64(text: str) -> bytes:
    """Decode any of its spellings: standard, URL-safe, and passlib's, which writes a dot for the plus sign."""
    plain = text.rstrip("=").replace("-", "+").replace("_", "/").replace(".", "+")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise BadHash("the password hash is not valid base64") from None


def encode_base64(raw: bytes) -> str:
    """Encode as PHC strings do: standard, without padding."""
    return base64.b64encode(raw).decode().rstrip("=")
