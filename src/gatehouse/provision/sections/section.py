"""What every section has: its entries, context, options and plan."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.fields.secrets import SecretRecord
from gatehouse.images.loading import NewImage
from gatehouse.images.model import BadImage, ImageShape, StoredImage
from gatehouse.kernel.addresses import Network
from gatehouse.kernel.errors import BadInput
from gatehouse.kernel.stored_settings import StoredSetting, StoredSettings
from gatehouse.keys.sealing import MasterKeys
from gatehouse.permissions.documents.apis import NOTHING_RESERVED, ReservedResources
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.provision.document import Document
from gatehouse.provision.file_secrets import FileSeal, FileSecret, RevealedSecret, SecretResolver
from gatehouse.provision.model import (
    Change,
    OnProgress,
    Plan,
    Problems,
    ReadScope,
    StoredState,
    Unfit,
    ignore_progress,
)

T = TypeVar("T")
E = TypeVar("E", bound=Struct)

HASHES_IN_PARALLEL: Final = 16  # password hashes at a time


class Located(msgspec.Struct, Generic[E], frozen=True):
    place: str  # "users[3]", for problems
    entry: E
    image: NewImage = UNSET  # that the entry names, loaded; UNSET keeps the stored one


class Edit(SecretRecord, Generic[E, T], frozen=True, kw_only=True):
    """An entry, with its record before and after it."""

    place: str
    entry: E
    before: T | None  # None: new
    after: T
    image: NewImage = UNSET  # that it stores


class ProvisionFile(msgspec.Struct, frozen=True):
    """The sections of one file by name: some entries refer to those of another section."""

    sections: Mapping[str, Sequence[Located[Any]]] = msgspec.field(default_factory=dict)

    def entries_of(self, name: str) -> Sequence[Located[Any]]:
        return self.sections.get(name, ())


class SettingRules(Protocol):
    """What is known about settings; this package does not know them itself."""

    def convert_setting(self, name: str, given: object) -> StoredSetting | None:
        """Return the value as it is stored, None for None; an image is loaded before. Raises BadInput."""

    def is_image(self, name: str) -> bool:
        """Whether the setting is an image."""

    def problems_of(
        self, before: StoredSettings, after: StoredSettings, entered: Collection[str] = ()
    ) -> Mapping[str, BadInput]:
        """Return what is wrong with or between the settings after a change, by setting.

        `entered`: secrets that were given in the clear, though they may be as before.
        """


IssueToken = Callable[[ServiceAccount], Awaitable[str]]


async def issue_no_token(account: ServiceAccount) -> str:  # noqa: ARG001 - the default issues none
    return ""


LoadImage = Callable[[str, ImageShape], Awaitable[StoredImage]]  # by URL; raises BadImage, Unavailable


async def load_no_image(url: str, shape: ImageShape) -> StoredImage:  # noqa: ARG001 - the default loads none
    raise BadImage("cannot be loaded here")


class Context(msgspec.Struct, frozen=True, kw_only=True):
    masters: MasterKeys
    seal: FileSeal
    passwords: Passwords
    rules: PasswordRules
    reachable: tuple[Network, ...] = ()  # private networks that outbound requests may reach
    reserved: ReservedResources = NOTHING_RESERVED
    load_image: LoadImage = load_no_image
    settings: SettingRules | None = None  # None: tests of permissions have none
    file: ProvisionFile = msgspec.field(default_factory=ProvisionFile)
    on_progress: OnProgress = ignore_progress  # in entries of the section
    now: int
    secrets: bool = True  # whether an export contains them


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the operator beside the file."""

    secrets: SecretResolver
    prune: bool = False
    allow_weak: bool = False


class SectionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the plan a stage makes; not used when there are problems."""

    changes: tuple[Change, ...] = ()
    problems: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        return Plan(changes=self.changes, spared=self.spared, warnings=self.warnings)


class ResolvedSection(msgspec.Struct, frozen=True):
    """The entries of a section, ready to be planned."""

    entries: Sequence[Any]
    problems: tuple[str, ...] = ()
    is_plannable: bool = True  # False if the entries are not even clear about whom they mean

    def plan(self, stage: "PlanStage", state: StoredState, context: Context, options: Options) -> SectionPlan:
        if not self.is_plannable:
            return SectionPlan(problems=self.problems)
        draft = stage.plan(self.entries, state, context, options)
        return replace(draft, problems=(*self.problems, *draft.problems))


async def resolve_nothing(
    entries: Sequence[Located[Any]],
    state: StoredState,  # noqa: ARG001 - nothing of these is needed
    context: Context,  # noqa: ARG001
    options: Options,  # noqa: ARG001
) -> ResolvedSection:
    return ResolvedSection(entries)


class PlanStage(msgspec.Struct, frozen=True, kw_only=True):
    """One step from entries to changes. Most sections have one; some refer to what later sections add."""

    name: str  # of the section it reads
    # The changes that make the state, which is what is stored after the stages before, equal to the entries.
    # Pure: runs in the transaction of the file.
    plan: Callable[[Sequence[Any], StoredState, Context, Options], SectionPlan]


class Section(PlanStage, frozen=True, kw_only=True):
    """One kind of entry: how it is read, planned and exported."""

    entry: type[Any]  # its fields: an absent one stays, null clears it, a value replaces it
    documents: Callable[[StoredState, Context], list[Document]]  # all that is stored: applying it changes nothing
    scope: Callable[[Sequence[Any]], ReadScope] = lambda _: ReadScope()  # what the plan of these entries reads
    scope_of_prune: ReadScope = ReadScope()  # what --prune reads beside it
    # Does before the transaction what takes long: compare and hash passwords, load images.
    resolve: Callable[[Sequence[Any], StoredState, Context, Options], Awaitable[ResolvedSection]] = resolve_nothing


async def gather_in_batches(work: Sequence[Coroutine[object, object, T]], on_progress: OnProgress) -> list[T]:
    """Await all, a few at a time: more hashes at once would be refused (accounts/passwords.py)."""
    results: list[T] = []
    for start in range(0, len(work), HASHES_IN_PARALLEL):
        results += await asyncio.gather(*work[start : start + HASHES_IN_PARALLEL])
        on_progress(len(results))
    return results


def merge_field(given: T | UnsetType | None, *, kept: T, cleared: T) -> T:
    """An absent field stays, null clears it, a value replaces it (R6)."""
    if given is UNSET:
        return kept
    return cleared if given is None else given


def reveal_secret(given: FileSecret, context: Context, options: Options, *, purpose: str) -> RevealedSecret:
    return options.secrets.reveal(given, context.seal, purpose=purpose)


def sealed_document(text: str, context: Context, *, purpose: str) -> dict[str, object]:
    """A secret as an export writes it."""
    return {"sealed": context.seal.seal(text, purpose=purpose)}


# From a document to typed entries, with every unknown name and wrong type as a problem.


RecordT = TypeVar("RecordT", bound=Struct)

NUMBER_ERRORS: Final = ("got `int`", "got `float`", "got `bool`")


class SectionEntries(msgspec.Struct, frozen=True):
    """A section of the file, with its entries in their order."""

    section: Section
    entries: tuple[Located[Any], ...]

    def scope(self, *, prune: bool) -> ReadScope:
        """What the plan reads of the stored state."""
        named = self.section.scope([located.entry for located in self.entries])
        return named | self.section.scope_of_prune if prune else named


def read_entries(document: Document, sections: Iterable[Section]) -> tuple[SectionEntries, ...]:
    """The sections of the file, in the order of `sections`. Raises Unfit with every problem."""
    table = {section.name: section for section in sections}
    problems = Problems()
    for name in document:
        if name not in table:
            problems.add(name, f"unknown section{suggestion(name, table)}")
    found = tuple(
        SectionEntries(section, tuple(read_section(section, document[name], problems)))
        for name, section in table.items()
        if name in document
    )
    if problems.lines:
        raise Unfit(problems.lines)
    return found


def read_section(section: Section, given: object, problems: Problems) -> Iterator[Located[Any]]:
    if not isinstance(given, list):
        problems.add(section.name, "must be a list of records")
        return
    for number, record in enumerate(given):
        place = f"{section.name}[{number}]"
        entry = read_record(record, section.entry, place, problems)
        if entry is not None:
            yield Located(place, entry)


def read_record(record: object, kind: type[RecordT], place: str, problems: Problems) -> RecordT | None:
    """The typed entry, or None after its problems are collected."""
    if not isinstance(record, dict):
        problems.add(place, "must be a record with named fields")
    elif fields_are_valid(kind, record, place, problems):
        entry: RecordT | None = convert_value(record, kind, place, problems)
        return entry
    return None


def fields_are_valid(entry: type[Struct], record: Document, place: str, problems: Problems) -> bool:
    """Check each field by itself: msgspec stops at the first error."""
    known = field_types(entry)
    before = len(problems.lines)
    for name, value in record.items():
        if name in known:
            convert_value(value, known[name], f"{place}.{name}", problems)
        else:
            problems.add(f"{place}.{name}", f"unknown field{suggestion(name, known)}")
    return len(problems.lines) == before


@cache
def field_types(entry: type[Struct]) -> Mapping[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(entry)}


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
