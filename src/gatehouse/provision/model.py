"""The state a file is compared with, and the changes that come of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from gatehouse.accounts.model import User
from gatehouse.audit.events import Event
from gatehouse.audit.model import Details
from gatehouse.oauth.model import Client

NOBODY: Final[frozenset[str]] = frozenset()


class Action(StrEnum):
    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which accounts a plan has to see: those the file names, or all. Of everything else there is little."""

    all_users: bool = False
    user_ids: frozenset[str] = NOBODY
    login_keys: frozenset[str] = NOBODY

    def __or__(self, other: "Scope") -> "Scope":
        return Scope(
            all_users=self.all_users or other.all_users,
            user_ids=self.user_ids | other.user_ids,
            login_keys=self.login_keys | other.login_keys,
        )


EVERYTHING: Final = Scope(all_users=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What is stored: one field or two for each section."""

    users: tuple[User, ...] = ()  # those in scope, and every administrator
    administrators: frozenset[str] = NOBODY  # who holds that root role of application 1 now
    retired_user_ids: frozenset[str] = NOBODY  # of the ids in scope: given once, their account is gone
    clients: tuple[Client, ...] = ()
    removed_client_ids: frozenset[str] = NOBODY


@dataclass(frozen=True, slots=True)
class AddUser:
    user: User
    administrator: bool


@dataclass(frozen=True, slots=True)
class ChangeUser:
    """Replaces the account if it is still the version that was read."""

    user: User
    administrator: bool | None  # None leaves the role as it is
    ends_tokens: bool  # raises `rev`: whatever was issued before is refused (checklist LG-20)


@dataclass(frozen=True, slots=True)
class RemoveUser:
    user: User


@dataclass(frozen=True, slots=True)
class AddClient:
    client: Client


@dataclass(frozen=True, slots=True)
class ChangeClient:
    """Replaces the client if it is still the version that was read; a removed one is marked, its id is spent."""

    client: Client


Act: TypeAlias = AddUser | ChangeUser | RemoveUser | AddClient | ChangeClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What the audit log will say of a change."""

    event: Event
    details: Details = field(default_factory=dict)
    personal: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One line of the plan."""

    action: Action
    kind: str  # "user", "client": what a person calls it
    name: str  # how its owner knows it
    fields: tuple[str, ...] = ()  # what differs, by name; never a value
    act: Act
    subject: str  # whom the audit log files it under
    notes: tuple[Note, ...]
    generated_secret: str | None = field(default=None, repr=False)  # made here, told once


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    changes: tuple[Change, ...]
    spared: tuple[str, ...] = ()  # what --prune left standing, and why
