"""The installation's epoch: no account and no client has a lower `rev` (R3, docs/decisions/0011).

A promotion and a restore raise it above every `rev` that was issued. That ends everything at once, in the same time
for any number of accounts: nothing is written to their rows.
"""

from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, bindparam, case, literal_column, select
from sqlalchemy.dialects.postgresql import insert

from gatehouse.storage.statements import DialectFunction, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.installation import installation_epoch
from gatehouse.storage.tables.oauth import clients

ONLY_ROW: Final = 1


class AtLeastEpoch(DialectFunction[int]):
    """The number, or the installation's epoch if that is higher."""

    inherit_cache = True
    type = BigInteger()
    on_postgres = "greatest({0}, (SELECT installation_epoch.epoch FROM installation_epoch))"
    on_sqlite = "max({0}, ifnull((SELECT installation_epoch.epoch FROM installation_epoch), 0))"


USER_REV: Final = AtLeastEpoch(users.c.rev)
CLIENT_REV: Final = AtLeastEpoch(clients.c.rev)
CURRENT_EPOCH: Final = AtLeastEpoch(literal_column("0", BigInteger()))

_UPSERT_EPOCH = insert(installation_epoch)

READ_EPOCH = Statement(lambda: select(CURRENT_EPOCH.label("epoch")))
# Along the index of each; the condition is that of the index.
HIGHEST_USER_REV = Statement(
    lambda: select(users.c.rev).where(users.c.rev > literal_column("0")).order_by(users.c.rev.desc()).limit(1)
)
HIGHEST_CLIENT_REV = Statement(lambda: select(clients.c.rev).order_by(clients.c.rev.desc()).limit(1))
SET_EPOCH = Statement(
    lambda: _UPSERT_EPOCH.on_conflict_do_update(
        index_elements=["only_row"], set_={"epoch": _UPSERT_EPOCH.excluded.epoch}
    )
)


def next_rev(rev: ColumnElement[int]) -> ColumnElement[Any]:
    """Return the next `rev`: the time in `epoch`, or one more than before if that is higher."""
    return case((rev >= bindparam("epoch"), rev + 1), else_=bindparam("epoch"))


def raise_epoch(at_least: int, *, margin: int = 1) -> Verb[None]:
    """Raise the epoch above every stored `rev`; the caller has locked out other raises."""
    ((epoch,),) = yield READ_EPOCH()
    users_rev, clients_rev = (yield HIGHEST_USER_REV()), (yield HIGHEST_CLIENT_REV())
    used = [epoch, *(row.rev for row in (*users_rev, *clients_rev))]
    yield SET_EPOCH(only_row=ONLY_ROW, epoch=max(at_least, max(used) + margin))
