"""The deliveries of a webhook as the console lists them."""

from dataclasses import dataclass
from typing import Protocol

from gatehouse.admin.paging import Page, PageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryListItem:
    """Everything of a delivery but what was sent."""

    delivery_id: str
    event_id: str
    event: str
    created_at: int
    state: str
    tries: int
    status: int  # the last answer's, 0 when there was none
    duration_ms: int
    trouble: str  # what the last try ended with
    next_try_at: int


class DeliveryListStore(Protocol):
    async def deliveries(self, webhook_id: str, wanted: PageRequest, state: str) -> Page[DeliveryListItem]:
        """Those of the webhook, the newest first, in that state or in any; the search looks at the event."""
