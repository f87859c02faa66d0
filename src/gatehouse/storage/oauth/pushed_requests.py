"""Stores the authorization requests that clients push (oauth/store.py)."""

from sqlalchemy import bindparam, delete, insert, select

from gatehouse.oauth.model import PushedRequest
from gatehouse.storage.epoch import CURRENT_EPOCH
from gatehouse.storage.rows import column_values
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.oauth import clients, pushed_requests

_UNEXPIRED = (pushed_requests.c.ends_at > bindparam("now"), pushed_requests.c.epoch == CURRENT_EPOCH)
_THIS_REQUEST = (
    pushed_requests.c.digest == bindparam("of"),
    pushed_requests.c.client_id == bindparam("of_client"),
    *_UNEXPIRED,
)
_COLUMNS = [column for column in pushed_requests.c if column.name != "epoch"]

# Until the commit no other node counts the requests of this client.
LOCK_CLIENT = Statement(
    lambda: (
        select(clients.c.client_id)
        .where(clients.c.client_id == bindparam("of_client"))
        .with_for_update(key_share=True)
    )
)
OPEN_ENDS = Statement(
    lambda: (
        select(pushed_requests.c.ends_at)
        .where(
            pushed_requests.c.client_id == bindparam("of_client"),
            pushed_requests.c.source == bindparam("of_source"),
            *_UNEXPIRED,
        )
        .order_by(pushed_requests.c.ends_at.desc())
        .limit(bindparam("most"))
    )
)
INSERT_REQUEST = Statement(
    lambda: insert(pushed_requests).values(
        {column.name: bindparam(column.name) for column in _COLUMNS} | {"epoch": CURRENT_EPOCH}
    )
)
FIND_REQUEST = Statement(lambda: select(*_COLUMNS).where(*_THIS_REQUEST))
TAKE_REQUEST = Statement(lambda: delete(pushed_requests).where(*_THIS_REQUEST).returning(*_COLUMNS))


def add_pushed_request(request: PushedRequest, *, most: int) -> Verb[int]:
    yield LOCK_CLIENT(of_client=request.client_id)
    now = request.created_at
    ends = yield OPEN_ENDS(of_client=request.client_id, of_source=request.source, now=now, most=most)
    if len(ends) >= most:
        return int(ends[-1].ends_at) - now
    yield INSERT_REQUEST(**column_values(request))
    return 0


def find_pushed_request(digest: bytes, client_id: str, now: int) -> Verb[PushedRequest | None]:
    rows = yield FIND_REQUEST(of=digest, of_client=client_id, now=now)
    return _request_from_row(rows[0]) if rows else None


def take_pushed_request(digest: bytes, client_id: str, now: int) -> Verb[PushedRequest | None]:
    rows = yield TAKE_REQUEST(of=digest, of_client=client_id, now=now)
    return _request_from_row(rows[0]) if rows else None


class PushedRequestStorage(SqlStore):
    add_pushed_request = write(add_pushed_request)
    find_pushed_request = read(find_pushed_request)
    take_pushed_request = write(take_pushed_request)


def _request_from_row(row: Row) -> PushedRequest:
    return PushedRequest(**row._asdict())
