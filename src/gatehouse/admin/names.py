"""Names for the ids that screens show."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

MAX_FOUND: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPerson:
    user_id: str
    nick: str
    login: str  # "" for a service account


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedApplication:
    application_id: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedProject:
    project_id: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedProjectGroup:
    group_id: str
    title: str
    project_id: str


class NameStore(Protocol):
    async def people_by_id(self, user_ids: Collection[str]) -> Mapping[str, NamedPerson]:
        """Return people by id, without deleted accounts."""

    async def find_people(self, text: str, among: Collection[str] | None = None) -> Sequence[NamedPerson]:
        """Return the first people with the text in nick or id among these, or in nick, id or address of all."""

    async def find_person_exactly(self, user_id: str, login_key: str) -> Sequence[NamedPerson]:
        """Return those with this id or this whole login key."""
