"""The installation as the console shows it: its settings, its outbox, its database."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gatehouse.admin.model.paging import Page, PageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingListItem:
    name: str
    value: str  # a secret's is masked
    unit: str
    meaning: str
    source: str  # default, dev, file …, environment, flag, database

    def matches(self, search: str) -> bool:
        """Whether it is found by a word; ignoring case."""
        return search.lower() in f"{self.name} {self.value} {self.meaning} {self.source}".lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingGroup:
    """Settings that belong together; the words are `settings.policy_<name>`."""

    name: str
    lines: Sequence[SettingListItem]


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """How mail is sent; no host means that nobody takes it."""

    host: str
    port: int
    security: str
    username: str
    sender: str
    is_shown: bool  # printed where the log is


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxListItem:
    """A letter that has not gone out; whom it is for stays sealed."""

    mail_id: str
    template: str
    created_at: int
    tries: int
    next_try_at: int  # 0: given up
    trouble: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFacts:
    version: str
    size: int  # bytes


class InstallationStore(Protocol):
    async def outbox(self, wanted: PageRequest) -> Page[OutboxListItem]:
        """What waits and what was given up, the newest first."""

    async def sqlite_facts(self) -> DatabaseFacts:
        """Of a file."""

    async def postgres_facts(self) -> DatabaseFacts:
        """Of a server's database."""
