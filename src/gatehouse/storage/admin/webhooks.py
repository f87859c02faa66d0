"""Lists the deliveries of a webhook (admin/webhooks.py)."""

from dataclasses import fields
from typing import Final

from sqlalchemy import Text, bindparam, func, or_, select

from gatehouse.admin.paging import Page, PageRequest
from gatehouse.admin.webhooks import DeliveryListItem
from gatehouse.storage.admin.paging import PagedList, contains_search
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import Row, Verb
from gatehouse.storage.tables.outgoing import webhook_deliveries
from gatehouse.storage.webhooks import NEWEST_FIRST

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
    return DELIVERY_LIST.read_page(page_request, _list_item, of=webhook_id, state=state)


def _list_item(row: Row) -> DeliveryListItem:
    return DeliveryListItem(**row._asdict())


class DeliveryListStorage(SqlStore):
    deliveries = snapshot_read(list_deliveries)
