"""The deliveries of a webhook as the console lists them."""

from dataclasses import dataclass, fields
from typing import Final

from sqlalchemy import Text, bindparam, func, or_, select

from gatehouse.admin.paging import Page, PagedList, PageRequest, contains_search
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import Row, Verb
from gatehouse.storage.tables.outgoing import webhook_deliveries
from gatehouse.storage.webhooks import NEWEST_FIRST


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


_STATE: Final = bindparam("state", type_=Text())
_WHERE: Final = (
    webhook_deliveries.c.webhook_id == bindparam("of", type_=Text()),
    or_(_STATE == "", webhook_deliveries.c.state == _STATE),
    contains_search(webhook_deliveries.c.event),
)
DELIVERY_LIST = PagedList(
    select(*(webhook_deliveries.c[field.name] for field in fields(DeliveryListItem)))
    .where(*_WHERE)
    .order_by(*NEWEST_FIRST),
    counted=select(func.count().label("total")).select_from(webhook_deliveries).where(*_WHERE),
)


def list_deliveries(webhook_id: str, page_request: PageRequest, state: str) -> Verb[Page[DeliveryListItem]]:
    """Return a page of deliveries, the newest first; an empty `state` matches any, the search is in the event."""
    return DELIVERY_LIST.read_page(page_request, _list_item, of=webhook_id, state=state)


def _list_item(row: Row) -> DeliveryListItem:
    return DeliveryListItem(**row._asdict())


class DeliveryListStore(SqlStore):
    deliveries = snapshot_read(list_deliveries)
