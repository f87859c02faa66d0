"""What every section is, and what it may use."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from msgspec import UNSET, Struct, UnsetType

from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.keys.sealing import MasterKeys
from gatehouse.oauth.clients import Clients
from gatehouse.provision.document import Document
from gatehouse.provision.given import GivenSecret, Revealed, SecretSources
from gatehouse.provision.model import Change, Scope, State
from gatehouse.provision.sealed import FileSeal

T = TypeVar("T")
E = TypeVar("E", bound=Struct)

AT_ONCE: Final = 16  # hashes asked for at the same time


@dataclass(frozen=True, slots=True)
class Placed(Generic[E]):
    place: str  # "users[3]", for complaints
    entry: E


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    masters: MasterKeys
    seal: FileSeal
    passwords: Passwords
    rules: PasswordRules
    clients: Clients
    now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the operator asked for beside the file."""

    secrets: SecretSources
    prune: bool = False
    allow_weak: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A section's share of the plan; worthless when there are problems."""

    changes: tuple[Change, ...] = ()
    problems: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()


class Section(Protocol[E]):
    """One kind of record: how a file writes it, and how what is written becomes changes and back."""

    @property
    def name(self) -> str:
        """The section's name in a file."""

    @property
    def entry(self) -> type[E]:
        """What a record may say. A field that is absent keeps, null clears, a value replaces whole."""

    def scope(self, entries: Sequence[Placed[E]], *, prune: bool) -> Scope:
        """What of the stored state a draft has to see."""

    async def draft(self, entries: Sequence[Placed[E]], state: State, tools: Tools, terms: Terms) -> Draft:
        """What has to change so that every record is as the file says; nothing, when it is already."""

    def documents(self, state: State, tools: Tools, *, secrets: bool) -> list[Document]:
        """Every stored record, written so that applying it changes nothing."""


async def few_at_a_time(work: Sequence[Coroutine[object, object, T]]) -> list[T]:
    """Await them all; the password room turns a crowd away (accounts/passwords.py)."""
    settled: list[T] = []
    for start in range(0, len(work), AT_ONCE):
        settled += await asyncio.gather(*work[start : start + AT_ONCE])
    return settled


def chosen(given: T | UnsetType | None, *, kept: T, cleared: T) -> T:
    """An absent field keeps, null clears, a given one replaces whole (R6)."""
    if given is UNSET:
        return kept
    return cleared if given is None else given


def reveal(given: GivenSecret, tools: Tools, terms: Terms, *, purpose: str) -> Revealed:
    return terms.secrets.reveal(given, tools.seal, purpose=purpose)


def sealed(text: str, tools: Tools, *, purpose: str) -> dict[str, object]:
    """A secret as an export writes it."""
    return {"sealed": tools.seal.seal(text, purpose=purpose)}
