"""Read the exports of Keycloak, Auth0 and Firebase.

Keycloak and Firebase write one JSON document. The file is mapped into memory and split into accounts without decoding
them, so that only one account at a time is decoded. Passwords become one of the notations of `hashes.py`.
"""

import base64
import binascii
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import BinaryIO, Final, TypeVar

import msgspec

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.importing.hashes import BadHash, decode_base64, encode_base64
from gatehouse.accounts.importing.lines import MAX_LINE_BYTES, NOTHING, json_problem, read_lines
from gatehouse.accounts.importing.model import BadImportFile, FileRow, ForeignIdentity, ImportEntry
from gatehouse.fields.secrets import SecretBytes, SecretRecord, SecretText

MAX_DOCUMENT_BYTES: Final = 2**30  # of a file that is one JSON document
TOTP_DIGITS: Final = 6  # this and the next two: what this service checks (RFC 6238)
TOTP_PERIOD: Final = 30
TOTP_ALGORITHM: Final = "HmacSHA1"
BASE32: Final = "BASE32"

LOST_FACTOR: Final = "has a second factor that cannot be imported; without it the account would be less protected"

T = TypeVar("T")


class UserDocument(msgspec.Struct):
    users: list[msgspec.Raw] = []


def split_document(file: BinaryIO, kind: type[T]) -> T:
    """Decode the outermost level of the file. Raises BadImportFile."""
    try:
        content: bytes | mmap.mmap = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # not a file, or an empty one
        content = file.read(MAX_DOCUMENT_BYTES + 1)
    if len(content) > MAX_DOCUMENT_BYTES:
        raise BadImportFile(f"the file is larger than {MAX_DOCUMENT_BYTES:,} bytes")
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise BadImportFile(f"the file {json_problem(error)}") from error


def decode_entries(
    parts: Sequence[msgspec.Raw], kind: type[T], convert: Callable[[T], ImportEntry]
) -> Iterator[FileRow]:
    decoder = msgspec.json.Decoder(kind)
    for number, part in enumerate(parts, 1):
        yield decode_entry(number, part, decoder, convert)


def decode_entry(
    number: int, part: msgspec.Raw | str, decoder: msgspec.json.Decoder[T], convert: Callable[[T], ImportEntry]
) -> FileRow:
    if len(part if isinstance(part, str) else bytes(part)) > MAX_LINE_BYTES:
        return FileRow(number, NOTHING, f"the account is longer than {MAX_LINE_BYTES:,} bytes")
    try:
        found = decoder.decode(part)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        return FileRow(number, NOTHING, json_problem(error))
    try:
        return FileRow(number, convert(found))
    except BadAccount as error:
        return FileRow(number, ImportEntry(login=title_of(found)), str(error))


def title_of(found: object) -> str:
    return str(getattr(found, "email", None) or getattr(found, "username", None) or "")


def full_name(*parts: str) -> str:
    return " ".join(part for part in parts if part)


# Keycloak: `kc.sh export --users same_file` or `different_files`.


class KeycloakCredential(msgspec.Struct, rename="camel"):
    type: str = ""
    secret_data: str | None = None  # JSON
    credential_data: str | None = None  # JSON


class KeycloakLink(msgspec.Struct, rename="camel"):
    identity_provider: str = ""
    user_id: str = ""


class KeycloakUser(msgspec.Struct, rename="camel"):
    id: str | None = None
    username: str | None = None
    email: str | None = None
    email_verified: bool | None = None
    enabled: bool = True
    first_name: str | None = None
    last_name: str | None = None
    service_account_client_id: str | None = None
    credentials: list[KeycloakCredential] = []
    federated_identities: list[KeycloakLink] = []


class KeycloakSecret(msgspec.Struct, rename="camel"):
    value: str = ""
    salt: str | None = None


class KeycloakParameters(msgspec.Struct, rename="camel"):
    algorithm: str = ""
    hash_iterations: int = 0
    additional_parameters: dict[str, list[str]] = {}
    sub_type: str = "totp"
    digits: int = TOTP_DIGITS
    period: int = TOTP_PERIOD
    secret_encoding: str | None = None


PBKDF2_NAMES: Final = {"pbkdf2": "sha1", "pbkdf2-sha256": "sha256", "pbkdf2-sha512": "sha512"}
KEYCLOAK_PASSKEYS: Final = frozenset({"webauthn", "webauthn-passwordless"})
ARGON2_VERSIONS: Final = {"1.0": 16, "1.3": 19}


def read_keycloak(file: BinaryIO) -> tuple[int, Iterator[FileRow]]:
    users = split_document(file, UserDocument).users
    return len(users), decode_entries(users, KeycloakUser, keycloak_entry)


def keycloak_entry(user: KeycloakUser) -> ImportEntry:
    if user.service_account_client_id:
        raise BadAccount("is the service account of a client, not a person")
    username, email = user.username or "", user.email or ""
    if "@" in username:  # a realm whose user names are email addresses
        username, email = "", email or username
    credentials = {one.type: one for one in user.credentials}
    if "otp" not in credentials and credentials.keys() & KEYCLOAK_PASSKEYS:
        raise BadAccount(LOST_FACTOR)
    return ImportEntry(
        login=email,
        nick=username,
        name=full_name(user.first_name or "", user.last_name or ""),
        given_name=user.first_name or "",
        family_name=user.last_name or "",
        username=username,
        password_hash=keycloak_hash(credentials["password"]) if "password" in credentials else "",
        totp_secret=keycloak_totp(credentials["otp"]) if "otp" in credentials else "",
        email_verified=user.email_verified,
        blocked=not user.enabled,
        source_id=user.id or "",
        identities=tuple(ForeignIdentity(one.identity_provider, one.user_id) for one in user.federated_identities),
    )


def credential_parts(one: KeycloakCredential) -> tuple[KeycloakSecret, KeycloakParameters]:
    try:
        return (
            msgspec.json.decode(one.secret_data or "{}", type=KeycloakSecret),
            msgspec.json.decode(one.credential_data or "{}", type=KeycloakParameters),
        )
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise BadAccount(f"the credential {one.type} {json_problem(error)}") from None


def keycloak_hash(one: KeycloakCredential) -> str:
    secret, parameters = credential_parts(one)
    salt, value = encode_base64(decode_base64(secret.salt or "")), encode_base64(decode_base64(secret.value))
    if parameters.algorithm in PBKDF2_NAMES:
        return f"$pbkdf2-{PBKDF2_NAMES[parameters.algorithm]}${parameters.hash_iterations}${salt}${value}"
    if parameters.algorithm == "argon2":
        given = {name: values[0] for name, values in parameters.additional_parameters.items() if values}
        version = ARGON2_VERSIONS.get(given.get("version", "1.3"), 0)
        costs = f"m={given.get('memory', '0')},t={parameters.hash_iterations},p={given.get('parallelism', '1')}"
        return f"$argon2{given.get('type', 'id')}$v={version}${costs}${salt}${value}"
    raise BadHash(f"the password is hashed with {parameters.algorithm[:40]!r}, which is not supported")


def keycloak_totp(one: KeycloakCredential) -> str:
    """Return the secret in base32; Keycloak stores the text whose bytes are the secret, unless it says base32."""
    secret, parameters = credential_parts(one)
    standard = (TOTP_DIGITS, TOTP_PERIOD, "totp", TOTP_ALGORITHM)
    found = (parameters.digits, parameters.period, parameters.sub_type, parameters.algorithm or TOTP_ALGORITHM)
    if found != standard:
        raise BadAccount("the second factor is not TOTP with 6 digits, 30 seconds and SHA-1")
    return secret.value if parameters.secret_encoding == BASE32 else base64.b32encode(secret.value.encode()).decode()


# Auth0: the bulk import schema, and the exports of its extension and of its support; an array or a line per account.


class Auth0Encoded(msgspec.Struct):
    value: str = ""
    encoding: str | None = None
    position: str | None = None


class Auth0Hash(msgspec.Struct, rename="camel"):
    algorithm: str = ""
    hash: Auth0Encoded | None = None
    salt: Auth0Encoded | None = None
    keylen: int = 64
    cost: int = 16_384
    block_size: int = 8
    parallelization: int = 1


class Auth0Totp(msgspec.Struct):
    secret: str = ""


class Auth0Factor(msgspec.Struct):
    totp: Auth0Totp | None = None


class Auth0Identity(msgspec.Struct):
    provider: str = ""
    user_id: str | int = ""


class Auth0User(SecretRecord, frozen=True):
    user_id: str | None = None
    email: str | None = None
    email_verified: bool | None = None
    username: str | None = None
    name: str | None = None
    given_name: str | None = None
    family_name: str | None = None
    nickname: str | None = None
    blocked: bool = False
    password_hash: SecretText | None = None
    custom_password_hash: Auth0Hash | None = None
    mfa_factors: list[Auth0Factor] = msgspec.field(default_factory=list)
    identities: list[Auth0Identity] = msgspec.field(default_factory=list)
    exported_hash: str | None = msgspec.field(default=None, name="passwordHash")


AUTH0_DATABASE: Final = "auth0"  # the provider of passwords
AUTH0_TEXTS: Final = frozenset({"argon2", "bcrypt", "pbkdf2", "ldap"})  # whose value is one of our notations
AUTH0_DIGESTS: Final = frozenset({"sha1", "sha256", "sha512"})
AUTH0_ENCODINGS: Final[Mapping[str, Callable[[str], bytes]]] = {
    "base64": decode_base64,
    "hex": bytes.fromhex,
    "utf8": str.encode,
}


def read_auth0(file: BinaryIO) -> tuple[int | None, Iterator[FileRow]]:
    start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    file.seek(0)
    if start.startswith(b"["):
        users = split_document(file, list[msgspec.Raw])
        return len(users), decode_entries(users, Auth0User, auth0_entry)
    return None, read_auth0_lines(file)


def read_auth0_lines(file: BinaryIO) -> Iterator[FileRow]:
    decoder = msgspec.json.Decoder(Auth0User)
    for number, text, problem in read_lines(file):
        yield FileRow(number, NOTHING, problem) if text is None else decode_entry(number, text, decoder, auth0_entry)


def auth0_entry(user: Auth0User) -> ImportEntry:
    secrets = [one.totp.secret for one in user.mfa_factors if one.totp is not None]
    if user.mfa_factors and not secrets:
        raise BadAccount(LOST_FACTOR)
    return ImportEntry(
        login=user.email or "",
        nick=user.nickname or user.username or "",
        name=user.name if user.name and user.name != user.email else "",
        given_name=user.given_name or "",
        family_name=user.family_name or "",
        username=user.username or "",
        password_hash=auth0_hash(user),
        totp_secret=secrets[0] if secrets else "",
        email_verified=user.email_verified,
        blocked=user.blocked,
        source_id=user.user_id or "",
        identities=tuple(
            ForeignIdentity(one.provider, str(one.user_id))
            for one in user.identities
            if one.provider != AUTH0_DATABASE
        ),
    )


def auth0_hash(user: Auth0User) -> str:
    custom = user.custom_password_hash
    if custom is None or custom.hash is None:
        return user.password_hash or user.exported_hash or ""
    if custom.algorithm in AUTH0_TEXTS:
        return custom.hash.value
    if custom.algorithm not in {*AUTH0_DIGESTS, "scrypt"}:
        raise BadHash(f"the password is hashed with {custom.algorithm[:40]!r}, which is not supported")
    value = auth0_bytes(custom.hash, "hex")
    salt = b"" if custom.salt is None else auth0_bytes(custom.salt, "utf8")
    if custom.algorithm == "scrypt":
        exponent = custom.cost.bit_length() - 1
        if custom.cost != 1 << exponent:
            raise BadHash("the scrypt cost must be a power of two")
        costs = f"ln={exponent},r={custom.block_size},p={custom.parallelization}"
        return f"$scrypt${costs}${encode_base64(salt)}${encode_base64(value)}"
    position = (custom.salt and custom.salt.position) or "prefix"
    if not salt:
        raise BadHash("a SHA hash without a salt is not supported: anyone can look up such passwords")
    return f"$salted-{custom.algorithm}${position}${encode_base64(salt)}${encode_base64(value)}"


def auth0_bytes(one: Auth0Encoded, usual: str) -> bytes:
    try:
        return AUTH0_ENCODINGS[one.encoding or usual](one.value)
    except (KeyError, ValueError, binascii.Error):
        raise BadHash("the password hash or its salt is not in the encoding it names") from None


# Firebase: `firebase auth:export FILE --format=json`, with the project's hash parameters.


class FirebaseProvider(msgspec.Struct, rename="camel"):
    provider_id: str = ""
    raw_id: str = ""


class FirebaseUser(SecretRecord, frozen=True, rename="camel"):
    local_id: str | None = None
    email: str | None = None
    email_verified: bool | None = None
    display_name: str | None = None
    disabled: bool = False
    password_hash: SecretText | None = None
    salt: str | None = None
    mfa_info: list[object] = msgspec.field(default_factory=list)
    provider_user_info: list[FirebaseProvider] = msgspec.field(default_factory=list)


class FirebaseHashConfig(SecretRecord, frozen=True, kw_only=True):
    """The password hash parameters that the Firebase console shows."""

    signer_key: SecretBytes
    salt_separator: bytes
    rounds: int
    mem_cost: int

    def convert(self, password_hash: str, salt: str) -> str:
        """Return the hash without the signer key: both are combined by XOR (see FirebaseScrypt)."""
        value = decode_base64(password_hash)
        if len(value) != len(self.signer_key):
            raise BadHash("the password hash does not have the length of the signer key")
        stream = bytes(one ^ other for one, other in zip(value, self.signer_key, strict=True))
        salted = encode_base64(decode_base64(salt) + self.salt_separator)
        return f"$firebase-scrypt$ln={self.mem_cost},r={self.rounds}${salted}${encode_base64(stream)}"


FIREBASE_SETTINGS: Final = ("base64_signer_key", "base64_salt_separator", "rounds", "mem_cost")
PASSWORD_PROVIDERS: Final = frozenset({"password", "phone", "emailLink"})


def parse_hash_config(text: str) -> FirebaseHashConfig:
    """Parse the parameters as the console shows them. Raises BadImportFile."""
    pairs = (line.strip().rstrip(",").partition(":") for line in text.splitlines())
    given = {name.strip(): value.strip().strip('"') for name, colon, value in pairs if colon}
    missing = [name for name in FIREBASE_SETTINGS if name not in given]
    if missing or given.get("algorithm", "SCRYPT") != "SCRYPT":
        raise BadImportFile(f"the hash parameters need algorithm SCRYPT and {', '.join(FIREBASE_SETTINGS)}")
    try:
        return FirebaseHashConfig(
            signer_key=decode_base64(given["base64_signer_key"]),
            salt_separator=decode_base64(given["base64_salt_separator"]),
            rounds=int(given["rounds"]),
            mem_cost=int(given["mem_cost"]),
        )
    except (ValueError, BadHash) as error:
        raise BadImportFile("the hash parameters are malformed") from error


def read_firebase(file: BinaryIO, config: FirebaseHashConfig | None) -> tuple[int, Iterator[FileRow]]:
    users = split_document(file, UserDocument).users
    return len(users), decode_entries(users, FirebaseUser, lambda user: firebase_entry(user, config))


def firebase_entry(user: FirebaseUser, config: FirebaseHashConfig | None) -> ImportEntry:
    if user.password_hash and config is None:
        raise BadHash("the password cannot be checked without the hash parameters of the project")
    if user.mfa_info:
        raise BadAccount(LOST_FACTOR)
    hashed = config.convert(user.password_hash, user.salt or "") if user.password_hash and config else ""
    return ImportEntry(
        login=user.email or "",
        nick=user.display_name or "",
        name=user.display_name or "",
        password_hash=hashed,
        email_verified=user.email_verified,
        blocked=user.disabled,
        source_id=user.local_id or "",
        identities=tuple(
            ForeignIdentity(one.provider_id, one.raw_id)
            for one in user.provider_user_info
            if one.provider_id not in PASSWORD_PROVIDERS
        ),
    )
