"""What every section is, and what it may use."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import UNSET, Struct, UnsetType

from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.kernel.addresses import Network
from gatehouse.keys.sealing import MasterKeys
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.provision.document import Document
from gatehouse.provision.given import FileSecret, RevealedSecret, SecretResolver
from gatehouse.provision.model import Change, ReadScope, StoredState
from gatehouse.provision.sealed import FileSeal

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
