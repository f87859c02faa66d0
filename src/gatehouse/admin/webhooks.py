"""The deliveries of a webhook as the console lists them."""

from dataclasses import dataclass
from typing import Protocol

from gatehouse.admin.paging import Page, PageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryListItem:
    """A delivery without its body."""

    delivery_id: str
    event_id: str
    event: str
    created_at: int
    state: str
    tries: int
    status: int  # of the last response, 0 for none
    duration_ms: int
    trouble: str  # error of the last try
    next_try_at: int


class DeliveryListStore(Protocol):
    async def deliveries(self, webhook_id: str, page_request: PageRequest, state: str) -> Page[DeliveryListItem]:
        """Return a page of deliveries, the newest first; an empty `state` matches any, the search is in the event."""
