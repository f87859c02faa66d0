"""The exports of Auth0: its bulk import schema, its extension and its support; an array or a line per account."""

import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, Final

import msgspec

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.importing.hashes import BadHash, decode_base64, encode_base64
from gatehouse.accounts.importing.lines import NOTHING, read_lines
from gatehouse.accounts.importing.model import FileRow, ForeignIdentity, ImportEntry
from gatehouse.accounts.importing.vendors import LOST_FACTOR, decode_entries, decode_entry, split_document
from gatehouse.fields.secrets import SecretRecord, SecretText


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
    secrets = [factor.totp.secret for factor in user.mfa_factors if factor.totp is not None]
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
            ForeignIdentity(identity.provider, str(identity.user_id))
            for identity in user.identities
            if identity.provider != AUTH0_DATABASE
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


def auth0_bytes(encoded: Auth0Encoded, usual: str) -> bytes:
    try:
        return AUTH0_ENCODINGS[encoded.encoding or usual](encoded.value)
    except (KeyError, ValueError, binascii.Error):
        raise BadHash("the password hash or its salt is not in the encoding it names") from None
