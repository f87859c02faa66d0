"""Lists clients of an application (admin/model/clients.py)."""

from typing import Final

from sqlalchemy import BigInteger, Text, bindparam, func, select

from gatehouse.admin.model.clients import ClientBreaks, ClientLine
from gatehouse.admin.model.paging import Page, Wanted
from gatehouse.storage.admin.searching import Listing, found_in
from gatehouse.storage.runner import Stored, survey
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.oauth import clients, consents, grants

_OF: Final = bindparam("of", type_=BigInteger())
_NOW: Final = bindparam("now", type_=BigInteger())
_CLIENT: Final = bindparam("client", type_=Text())
_ALIVE: Final = (grants.c.revoked_at == 0, grants.c.ends_at > _NOW)
_WHERE: Final = (
    clients.c.application_id == _OF,
    clients.c.removed.is_(False),
    found_in(clients.c.client_id, clients.c.name),
)
LINES = Listing(
    select(
        clients.c.client_id,
        clients.c.name,
        clients.c.profile,
        clients.c.public,
        select(func.count())
        .where(grants.c.client_id == clients.c.client_id, *_ALIVE)
        .scalar_subquery()
        .label("sign_ins"),
        clients.c.created_at,
    )
    .where(*_WHERE)
    .order_by(clients.c.client_id),
    counted=select(func.count().label("total")).select_from(clients).where(*_WHERE),
)
BREAKS = Statement(
    select(
        func.count().label("sign_ins"),
        func.count(grants.c.user_id.distinct()).label("people"),
        select(func.count()).where(consents.c.client_id == _CLIENT).scalar_subquery().label("consents"),
        func.coalesce(func.max(grants.c.created_at), 0).label("last_at"),
    )
    .select_from(grants)
    .where(grants.c.client_id == _CLIENT, *_ALIVE)
)


def listed(application_id: int, wanted: Wanted, now: int) -> Verb[Page[ClientLine]]:
    return LINES.page(wanted, _line, beside={"now": now}, of=application_id)


def _line(row: Row) -> ClientLine:
    return ClientLine(**row._asdict())


def breaks(client_id: str, now: int) -> Verb[ClientBreaks]:
    (row,) = yield BREAKS(client=client_id, now=now)
    return ClientBreaks(**row._asdict())


class ClientListStorage(Stored):
    clients = survey(listed)
    breaks = survey(breaks)
