"""What the readers of exports share: documents of users, decoded one entry at a time.

Keycloak and Firebase write one JSON document. The file is mapped into memory and split into accounts without decoding
them, so that only one account at a time is decoded. Passwords become one of the notations of `hashes.py`.
"""

import mmap
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Final, TypeVar

import msgspec

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.importing.lines import MAX_LINE_BYTES, NOTHING, json_problem
from gatehouse.accounts.importing.model import BadImportFile, FileRow, ImportEntry

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
        user = decoder.decode(part)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        return FileRow(number, NOTHING, json_problem(error))
    try:
        return FileRow(number, convert(user))
    except BadAccount as error:
        return FileRow(number, ImportEntry(login=title_of(user)), str(error))


def title_of(user: object) -> str:
    return str(getattr(user, "email", None) or getattr(user, "username", None) or "")


def full_name(*parts: str) -> str:
    return " ".join(part for part in parts if part)
