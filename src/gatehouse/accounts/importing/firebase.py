"""Firebase: `firebase auth:export FILE --format=json`, with the project's hash parameters."""

from collections.abc import Iterator
from typing import BinaryIO, Final

import msgspec

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.importing.hashes import BadHash, decode_base64, encode_base64
from gatehouse.accounts.importing.model import BadImportFile, FileRow, ForeignIdentity, ImportEntry
from gatehouse.accounts.importing.vendors import LOST_FACTOR, UserDocument, decode_entries, split_document
from gatehouse.fields.secrets import SecretBytes, SecretRecord, SecretText


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
        stream = bytes(byte ^ other for byte, other in zip(value, self.signer_key, strict=True))
        salted = encode_base64(decode_base64(salt) + self.salt_separator)
        return f"$firebase-scrypt$ln={self.mem_cost},r={self.rounds}${salted}${encode_base64(stream)}"


FIREBASE_SETTINGS: Final = ("base64_signer_key", "base64_salt_separator", "rounds", "mem_cost")
PASSWORD_PROVIDERS: Final = frozenset({"password", "phone", "emailLink"})


def parse_hash_config(text: str) -> FirebaseHashConfig:
    """Parse the parameters as the console shows them. Raises BadImportFile."""
    pairs = (line.strip().rstrip(",").partition(":") for line in text.splitlines())
    settings = {name.strip(): value.strip().strip('"') for name, colon, value in pairs if colon}
    missing = [name for name in FIREBASE_SETTINGS if name not in settings]
    if missing or settings.get("algorithm", "SCRYPT") != "SCRYPT":
        raise BadImportFile(f"the hash parameters need algorithm SCRYPT and {', '.join(FIREBASE_SETTINGS)}")
    try:
        return FirebaseHashConfig(
            signer_key=decode_base64(settings["base64_signer_key"]),
            salt_separator=decode_base64(settings["base64_salt_separator"]),
            rounds=int(settings["rounds"]),
            mem_cost=int(settings["mem_cost"]),
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
            ForeignIdentity(identity.provider_id, identity.raw_id)
            for identity in user.provider_user_info
            if identity.provider_id not in PASSWORD_PROVIDERS
        ),
    )
