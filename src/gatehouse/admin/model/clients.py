"""OAuth clients of an application as the console lists them."""

from dataclasses import dataclass
from typing import Protocol

from gatehouse.admin.model.paging import Page, PageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientListItem:
    client_id: str
    name: str
    profile: str
    public: bool
    sign_ins: int  # that are good now
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRemovalImpact:
    """What goes when a client is removed."""

    sign_ins: int
    people: int
    consents: int
    last_at: int  # when somebody last signed in through it; 0 for never


class ClientListStore(Protocol):
    async def clients(self, application_id: int, wanted: PageRequest, now: int) -> Page[ClientListItem]:
        """Those of the application, by id."""

    async def removal_impact(self, client_id: str, now: int) -> ClientRemovalImpact:
        """What would end with it."""
