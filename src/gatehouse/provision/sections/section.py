"""What every section is, and what it may use."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.kernel.addresses import Network
from gatehouse.keys.sealing import MasterKeys
from gatehouse.permissions.model.project import ServiceAccount
from gatehouse.provision.document import Document
from gatehouse.provision.file_secrets import FileSeal, FileSecret, RevealedSecret, SecretResolver
from gatehouse.provision.model import Change, Problems, ReadScope, StoredState, Unfit

T = TypeVar("T")
E = TypeVar("E", bound=Struct)

HASHES_IN_PARALLEL: Final = 16  # hashes asked for at the same time


@dataclass(frozen=True, slots=True)
class Located(Generic[E]):
    place: str  # "users[3]", for complaints
    entry: E


@dataclass(frozen=True, slots=True)
class ProvisionFile:
    """The sections of one file by name: some records look at those of another section."""

    sections: Mapping[str, Sequence[Located[Any]]] = field(default_factory=dict)

    def entries_of(self, name: str) -> Sequence[Located[Any]]:
        return self.sections.get(name, ())


IssueToken = Callable[[ServiceAccount], Awaitable[str]]


async def issue_no_token(account: ServiceAccount) -> str:  # noqa: ARG001 - where no account comes to life
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    masters: MasterKeys
    seal: FileSeal
    passwords: Passwords
    rules: PasswordRules
    reachable: tuple[Network, ...] = ()  # what outbound requests may reach though it is not public
    issue_token: IssueToken = issue_no_token  # the JWT of a service account that is about to be made
    file: ProvisionFile = field(default_factory=ProvisionFile)
    now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the operator asked for beside the file."""

    secrets: SecretResolver
    prune: bool = False
    allow_weak: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionPlan:
    """A section's share of the plan; worthless when there are problems."""

    changes: tuple[Change, ...] = ()
    problems: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()


class PlanStage(Protocol[E]):
    """One step from a section to changes. Most sections take one; some refer to what later ones bring along."""

    @property
    def name(self) -> str:
        """The section it reads."""

    async def plan(
        self, entries: Sequence[Located[E]], state: StoredState, context: Context, options: Options
    ) -> SectionPlan:
        """What has to change so that every record is as the file says; nothing, when it is already.

        `state` is what the stages before will have made of it.
        """


class FileSection(PlanStage[E], Protocol[E]):
    """One kind of record: how a file writes it, and how what is written becomes changes and back."""

    @property
    def entry(self) -> type[E]:
        """What a record may say. A field that is absent keeps, null clears, a value replaces whole."""

    def read_scope(self, entries: Sequence[Located[E]], *, prune: bool) -> ReadScope:
        """What of the stored state a draft has to see."""

    def export_documents(self, state: StoredState, context: Context, *, secrets: bool) -> list[Document]:
        """Every stored record, written so that applying it changes nothing."""


async def gather_in_batches(work: Sequence[Coroutine[object, object, T]]) -> list[T]:
    """Await them all; the password room turns a crowd away (accounts/passwords.py)."""
    settled: list[T] = []
    for start in range(0, len(work), HASHES_IN_PARALLEL):
        settled += await asyncio.gather(*work[start : start + HASHES_IN_PARALLEL])
    return settled


def merge_field(given: T | UnsetType | None, *, kept: T, cleared: T) -> T:
    """An absent field keeps, null clears, a given one replaces whole (R6)."""
    if given is UNSET:
        return kept
    return cleared if given is None else given


def reveal_secret(given: FileSecret, context: Context, options: Options, *, purpose: str) -> RevealedSecret:
    return options.secrets.reveal(given, context.seal, purpose=purpose)


def sealed_document(text: str, context: Context, *, purpose: str) -> dict[str, object]:
    """A secret as an export writes it."""
    return {"sealed": context.seal.seal(text, purpose=purpose)}


# From a document to typed records: every name known, every value of its type, all complaints at once.


RecordT = TypeVar("RecordT", bound=Struct)

NUMBER_ERRORS: Final = ("got `int`", "got `float`", "got `bool`")


@dataclass(frozen=True, slots=True)
class SectionEntries:
    """A section the file names, with its records in the order of the file."""

    section: FileSection[Any]
    entries: tuple[Located[Any], ...]


def read_entries(document: Document, sections: Iterable[FileSection[Any]]) -> tuple[SectionEntries, ...]:
    """Return the named sections in the order of the table. Raises Unfit with all that is wrong."""
    table = {section.name: section for section in sections}
    problems = Problems()
    for name in document:
        if name not in table:
            problems.add(name, f"unknown section{suggestion(name, table)}")
    asked = tuple(
        SectionEntries(section, tuple(read_section(section, document[name], problems)))
        for name, section in table.items()
        if name in document
    )
    if problems.lines:
        raise Unfit(problems.lines)
    return asked


def read_section(section: FileSection[RecordT], given: object, problems: Problems) -> Iterator[Located[RecordT]]:
    if not isinstance(given, list):
        problems.add(section.name, "must be a list of records")
        return
    for number, record in enumerate(given):
        place = f"{section.name}[{number}]"
        entry = read_record(record, section.entry, place, problems)
        if entry is not None:
            yield Located(place, entry)


def read_record(record: object, kind: type[RecordT], place: str, problems: Problems) -> RecordT | None:
    """The record in its type; None after every complaint about it is collected."""
    if not isinstance(record, dict):
        problems.add(place, "must be a record with named fields")
    elif fields_are_valid(kind, record, place, problems):
        entry: RecordT | None = convert_value(record, kind, place, problems)
        return entry
    return None


def fields_are_valid(entry: type[Struct], record: Document, place: str, problems: Problems) -> bool:
    """Look at each field by itself: msgspec would stop at the first complaint."""
    known = {field.name: field.type for field in msgspec.structs.fields(entry)}
    before = len(problems.lines)
    for name, value in record.items():
        if name in known:
            convert_value(value, known[name], f"{place}.{name}", problems)
        else:
            problems.add(f"{place}.{name}", f"unknown field{suggestion(name, known)}")
    return len(problems.lines) == before


def convert_value(value: object, kind: Any, place: str, problems: Problems) -> Any:  # noqa: ANN401 - a type, and a value of it
    try:
        return msgspec.convert(value, kind, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        hint = ", put it in quotes" if "Expected `str" in what and what.endswith(NUMBER_ERRORS) else ""
        problems.add(f"{place}{path.rstrip('`')}", what + hint)
        return None


def decode_hook(kind: type, value: object) -> object:
    if kind is FileSecret:
        return FileSecret.parse(value)
    if kind is object:
        return value
    raise TypeError(f"no field is a {kind}")


def suggestion(name: str, known: Mapping[str, object]) -> str:
    near = get_close_matches(name.lower(), known, n=1)
    return f", did you mean {near[0]}?" if near else ""
