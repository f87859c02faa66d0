"""Secrets inside an exported file: unreadable without the master key, and the same text every time.

Stored secrets are sealed with a random key each (keys/sealing.py), so two exports of one installation would
differ in every line. AES-SIV (RFC 5297) needs no randomness: an export kept under version control shows what
changed and nothing else. It reveals only that a secret is the same as before.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from gatehouse.fields.secrets import HIDDEN, SecretRecord, SecretText
from gatehouse.kernel.errors import BadInput
from gatehouse.keys.encoding import decode_base64url, encode_base64url
from gatehouse.keys.model import WrongMasterKey
from gatehouse.keys.sealing import MasterKeys

WRONG_MASTER_KEY: Final = "was encrypted with a master key that is not configured here"
WRONG_RECORD: Final = "was encrypted for another record, or is damaged"


class FileSeal:
    def __init__(self, masters: MasterKeys) -> None:
        self._masters = masters

    def seal(self, plain: str, *, purpose: str) -> str:
        """`purpose` names the record and the field: the text cannot be decrypted for another."""
        key_id = self._masters.sealing_id
        sealed = self._cipher(key_id).encrypt(plain.encode(), [purpose.encode()])
        return f"{key_id}.{encode_base64url(sealed).decode()}"

    def open(self, sealed: str, *, purpose: str) -> str:
        """Return the secret; raise BadInput with a text that continues after the name of the field."""
        key_id, _, text = sealed.partition(".")
        if not key_id:
            raise BadInput(WRONG_RECORD)
        try:
            cipher = self._cipher(key_id)
            return cipher.decrypt(decode_base64url(text.encode()), [purpose.encode()]).decode()
        except WrongMasterKey:
            raise BadInput(WRONG_MASTER_KEY) from None
        except (InvalidTag, ValueError):
            raise BadInput(WRONG_RECORD) from None

    def _cipher(self, key_id: str) -> AESSIV:
        halves = (self._masters.derive(f"provision/{half}", key_id=key_id) for half in ("mac", "encryption"))
        return AESSIV(b"".join(halves))


# A secret as a file gives it: in the clear, by reference, or sealed (R7).


MAX_SECRET_BYTES: Final = 65_536  # of any secret; each kind has a narrower limit of its own


class SecretSource(StrEnum):
    PLAIN = "plain"
    ENV = "env"
    FILE = "file"
    SEALED = "sealed"


class FileSecret:
    """A plain class: msgspec would read and write the fields of a dataclass."""

    __slots__ = ("source", "text")

    def __init__(self, source: SecretSource, text: str) -> None:
        self.source: Final = source
        self.text: Final = text

    def __repr__(self) -> str:
        return f"FileSecret({self.source})"

    @classmethod
    def parse(cls, given: object) -> "FileSecret":
        """Read text or a table of one of env, file, sealed; raise ValueError for anything else."""
        if isinstance(given, str):
            return cls(SecretSource.PLAIN, given)
        if isinstance(given, dict) and len(given) == 1:
            ((name, text),) = given.items()
            if name in SOURCE_BY_KEY and isinstance(text, str):
                return cls(SOURCE_BY_KEY[name], text)
        raise ValueError("must be text in quotes, {env: NAME}, {file: PATH} or {sealed: TEXT}")


SOURCE_BY_KEY: Final = {source.value: source for source in (SecretSource.ENV, SecretSource.FILE, SecretSource.SEALED)}


class RevealedSecret(SecretRecord, frozen=True):
    text: SecretText
    was_sealed: bool  # by an export: the stored form, not what a person typed


class SecretResolver(SecretRecord, frozen=True, kw_only=True):
    """Looks up references to the environment and to files, which this package does not read itself."""

    environment: Annotated[Mapping[str, str], HIDDEN]
    read_file: Callable[[str], str]  # raises BadInput

    def reveal(self, given: FileSecret, seal: FileSeal, *, purpose: str) -> RevealedSecret:
        """Return the secret; raise BadInput with a text that continues after the name of the field."""
        match given.source:
            case SecretSource.PLAIN:
                text = given.text
            case SecretSource.ENV:
                text = self._environment_variable(given.text)
            case SecretSource.FILE:
                text = self.read_file(given.text)
            case SecretSource.SEALED:
                return RevealedSecret(seal.open(given.text, purpose=purpose), was_sealed=True)
        return RevealedSecret(check_secret_size(text), was_sealed=False)

    def _environment_variable(self, name: str) -> str:
        if name not in self.environment:
            raise BadInput(f"the environment variable {name} is not set")
        return self.environment[name]


def check_secret_size(text: str) -> str:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadInput("is not UTF-8 text") from None
    if not 0 < size <= MAX_SECRET_BYTES:
        raise BadInput("is empty" if not size else f"is longer than {MAX_SECRET_BYTES} bytes")
    return text
