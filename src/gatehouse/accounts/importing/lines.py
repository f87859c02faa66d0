"""Read CSV and JSON Lines: one line is one account, however it is quoted, and no line is unbounded.

So a broken line never swallows the following ones, and its number is the one that an editor shows.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final

import msgspec
from msgspec.structs import asdict

from gatehouse.accounts.importing.model import BadImportFile, FileRow, ForeignIdentity, ImportEntry
from gatehouse.fields.secrets import SecretRecord, SecretText

MAX_LINE_BYTES: Final = 65_536
CHUNK_BYTES: Final = 65_536  # in which the rest of a longer line is skipped
BOM: Final = b"\xef\xbb\xbf"
DELIMITERS: Final = (",", ";", "\t")
FLAG_COLUMNS: Final = ("email_verified", "phone_verified", "blocked")
LISTS: Final = frozenset({"tags", "purchases"})
FLAGS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("true", "yes", "1"), True),
    **dict.fromkeys(("false", "no", "0", ""), False),
}
NOTHING: Final = ImportEntry()


class JsonIdentity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    provider: str
    subject: str


class JsonLine(SecretRecord, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An account of a file; a value may be null or left out."""

    login: str | None = None
    nick: str | None = None
    name: str | None = None
    username: str | None = None
    phone: str | None = None
    phone_verified: bool | None = None
    password_hash: SecretText | None = None
    totp_secret: SecretText | None = None
    tags: list[str] | None = None
    purchases: list[str] | None = None
    email_verified: bool | None = None
    blocked: bool | None = None
    user_id: str | int | None = None
    provider: str | None = None
    subject: str | None = None
    identities: list[JsonIdentity] | None = None


COLUMNS: Final = tuple(name for name in JsonLine.__struct_fields__ if name != "identities")  # of CSV


def read_lines(file: BinaryIO) -> Iterator[tuple[int, str | None, str]]:
    """Yield each line's number, and its text or what is wrong with it; empty lines are left out."""
    number = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
            skip_line(file)
            yield number, None, f"the line is longer than {MAX_LINE_BYTES:,} bytes"
            continue
        line = (raw.removeprefix(BOM) if number == 1 else raw).rstrip(b"\r\n")
        if not line.strip():
            continue
        try:
            yield number, line.decode(), ""
        except UnicodeDecodeError:
            yield number, None, "the line is not UTF-8"


def skip_line(file: BinaryIO) -> None:
    while (rest := file.readline(CHUNK_BYTES)) and not rest.endswith(b"\n"):
        pass


def read_csv(file: BinaryIO) -> Iterator[FileRow]:
    """Yield the rows below the header. Raises BadImportFile for a file without a usable header."""
    lines = read_lines(file)
    delimiter, columns = read_header(lines)
    for number, text, trouble in lines:
        yield FileRow(number, NOTHING, trouble) if text is None else read_csv_row(number, text, delimiter, columns)


def read_header(lines: Iterator[tuple[int, str | None, str]]) -> tuple[str, Sequence[str]]:
    """Return the delimiter and the columns. Raises BadImportFile."""
    _, header, problem = next(lines, (1, None, "the file is empty"))
    if header is None:
        raise BadImportFile(problem)
    delimiter = max(DELIMITERS, key=header.count)
    return delimiter, check_columns([cell.strip().lower() for cell in split_line(header, delimiter)])


def csv_says_verified(file: BinaryIO) -> bool:
    """Return whether a column says which addresses are verified; True without addresses, or a usable header."""
    try:
        _, columns = read_header(read_lines(file))
    except BadImportFile:
        return True
    return "email_verified" in columns or "login" not in columns


def check_columns(columns: Sequence[str]) -> Sequence[str]:
    unknown = [name for name in columns if name not in COLUMNS]
    if unknown:
        raise BadImportFile(f"unknown column {unknown[0][:40]!r}; the columns are {', '.join(COLUMNS)}")
    if len(set(columns)) < len(columns):
        raise BadImportFile("a column is named twice")
    if not {"login", "subject"} & set(columns):
        raise BadImportFile("the file needs a column login, or provider and subject")
    return columns


def split_line(text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise BadImportFile(f"the line is not CSV: {error}") from error


def read_csv_row(number: int, text: str, delimiter: str, columns: Sequence[str]) -> FileRow:
    try:
        cells = split_line(text, delimiter)
    except BadImportFile as error:
        return FileRow(number, NOTHING, str(error))
    if len(cells) != len(columns):
        return FileRow(number, NOTHING, f"has {len(cells)} cells, the header has {len(columns)}")
    values = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
    flags = {name: FLAGS.get(values.pop(name, "").lower()) for name in FLAG_COLUMNS}
    identities = read_identities(values.pop("provider", ""), values.pop("subject", ""))
    fields: dict[str, Any] = {name: split_words(cell) if name in LISTS else cell for name, cell in values.items()}
    fields |= {name: bool(value) for name, value in flags.items() if name in columns}
    entry = ImportEntry(**fields, identities=identities)
    wrong = next((name for name, value in flags.items() if value is None), "")
    return FileRow(number, entry, f"{wrong} must be true or false" if wrong else "")


def read_identities(provider: str, subject: str) -> tuple[ForeignIdentity, ...]:
    return (ForeignIdentity(provider, subject),) if provider or subject else ()


def split_words(cell: str) -> frozenset[str]:
    return frozenset(word for word in (part.strip() for part in cell.split(",")) if word)


def read_jsonl(file: BinaryIO) -> Iterator[FileRow]:
    decoder = msgspec.json.Decoder(JsonLine)
    for number, text, problem in read_lines(file):
        if text is None:
            yield FileRow(number, NOTHING, problem)
            continue
        try:
            line = decoder.decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            yield FileRow(number, NOTHING, json_problem(error))
        else:
            yield FileRow(number, json_line_entry(line))


def json_problem(error: Exception) -> str:
    """Say what is wrong without a value of the file."""
    return "is nested too deeply" if isinstance(error, RecursionError) else f"is not valid: {error}"


def json_line_entry(line: JsonLine) -> ImportEntry:
    values = {name: value for name, value in asdict(line).items() if value is not None}
    identities = (
        *read_identities(values.pop("provider", ""), values.pop("subject", "")),
        *(ForeignIdentity(identity.provider, identity.subject) for identity in values.pop("identities", ())),
    )
    fields: dict[str, Any] = {name: frozenset(value) if name in LISTS else value for name, value in values.items()}
    if "user_id" in fields:
        fields["user_id"] = str(fields["user_id"])
    return ImportEntry(**fields, identities=identities)
