"""The deliveries of a webhook as the console lists them."""

from typing import Final

from sqlalchemy import Text, bindparam, func, literal, or_, select

from gatehouse.admin.paging import Page, PagedList, PageRequest, contains_search
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import Verb
from gatehouse.storage.tables.webhooks import webhook_deliveries
from gatehouse.storage.webhooks import NEWEST_FIRST, delivery_from_row
from gatehouse.webhooks.model import Delivery

_STATE: Final = bindparam("state", type_=Text())
_WHERE: Final = (
    webhook_deliveries.c.webhook_id == bindparam("of", type_=Text()),
    or_(_STATE == "", webhook_deliveries.c.state == _STATE),
    contains_search(webhook_deliveries.c.event),
)
_COLUMNS: Final = [column for column in webhook_deliveries.c if column.name != "body"]
DELIVERY_LIST = PagedList(
    select(*_COLUMNS, literal("").label("body")).where(*_WHERE).order_by(*NEWEST_FIRST),
    counted=select(func.count().label("total")).select_from(webhook_deliveries).where(*_WHERE),
)


def list_deliveries(webhook_id: str, page_request: PageRequest, state: str) -> Verb[Page[Delivery]]:
    """Return a page of deliveries without bodies, the newest first; an empty `state` matches any.

    The search is in the event.
    """
    return DELIVERY_LIST.read_page(page_request, delivery_from_row, of=webhook_id, state=state)


class DeliveryListStore(SqlStore):
    deliveries = snapshot_read(list_deliveries)
