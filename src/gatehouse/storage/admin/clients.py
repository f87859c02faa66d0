"""Lists clients of an application (admin/clients.py)."""

from typing import Final

from sqlalchemy import BigInteger, Text, bindparam, func, select

from gatehouse.admin.clients import ClientListItem, ClientRemovalImpact
from gatehouse.admin.paging import Page, PageRequest
from gatehouse.storage.admin.paging import PagedList, contains_search
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.oauth import clients, consents, grants

_THIS_APPLICATION: Final = bindparam("of", type_=BigInteger())
_NOW: Final = bindparam("now", type_=BigInteger())
_THIS_CLIENT: Final = bindparam("client", type_=Text())
_LIVE_GRANTS: Final = (grants.c.revoked_at == 0, grants.c.ends_at > _NOW)
_WHERE: Final = (
    clients.c.application_id == _THIS_APPLICATION,
    clients.c.removed.is_(False),
    contains_search(clients.c.client_id, clients.c.name),
)
CLIENT_LIST = PagedList(
    select(
        clients.c.client_id,
        clients.c.name,
        clients.c.profile,
        clients.c.public,
        select(func.count())
        .where(grants.c.client_id == clients.c.client_id, *_LIVE_GRANTS)
        .scalar_subquery()
        .label("sign_ins"),
        clients.c.created_at,
    )
    .where(*_WHERE)
    .order_by(clients.c.client_id),
    counted=select(func.count().label("total")).select_from(clients).where(*_WHERE),
)
REMOVAL_IMPACT = Statement(
    select(
        func.count().label("sign_ins"),
        func.count(grants.c.user_id.distinct()).label("people"),
        select(func.count()).where(consents.c.client_id == _THIS_CLIENT).scalar_subquery().label("consents"),
        func.coalesce(func.max(grants.c.created_at), 0).label("last_at"),
    )
    .select_from(grants)
    .where(grants.c.client_id == _THIS_CLIENT, *_LIVE_GRANTS)
)


def list_clients(application_id: int, page_request: PageRequest, now: int) -> Verb[Page[ClientListItem]]:
    return CLIENT_LIST.read_page(page_request, _list_item, row_params={"now": now}, of=application_id)


def _list_item(row: Row) -> ClientListItem:
    return ClientListItem(**row._asdict())


def removal_impact(client_id: str, now: int) -> Verb[ClientRemovalImpact]:
    (row,) = yield REMOVAL_IMPACT(client=client_id, now=now)
    return ClientRemovalImpact(**row._asdict())


class ClientListStorage(SqlStore):
    clients = snapshot_read(list_clients)
    removal_impact = snapshot_read(removal_impact)
