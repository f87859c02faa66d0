"""An administrator made by the operator."""

from collections.abc import Mapping

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditRecord
from gatehouse.storage.accounts import SETUP_CLOSED, create_user
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.installation import set_value_once
from gatehouse.storage.statements import Verb


def create_administrator(user: User, records: Mapping[str, AuditRecord], now: int) -> Verb[bool]:
    """Keep the account, and close setup in the same act: a setup link is dead once an administrator exists.

    True when setup was still open. `records` holds the entries `created` and `closed`.
    """
    closed = yield from set_value_once(SETUP_CLOSED, str(now))  # first, so that of two who race one keeps the record
    yield from create_user(user, records["created"], administrator=True)
    if closed:
        yield from add_audit_record(records["closed"])
    return closed
