"""Whom ids mean, for screens that speak of people."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPerson:
    user_id: str
    nick: str
    login: str  # "" for a service account


class NameStore(Protocol):
    async def people(self, user_ids: Collection[str]) -> Mapping[str, NamedPerson]:
        """By id; who is gone is not in it."""
