"""Links mailed to an account, and how they end; part of other store methods."""

from typing import Final

from sqlalchemy import bindparam, delete, or_

from gatehouse.accounts.model import LinkKind
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.installation import once as once_table

EMAIL_SIGN_IN: Final = "email_sign_in"  # kind of the single-use record: a link and a code
REGISTRATION: Final = "registration"  # kind of the record of a registration that waits in its browser

END_LINKS = Statement(
    lambda: delete(once_table).where(
        or_(*(once_table.c.kind == kind for kind in (*LinkKind, EMAIL_SIGN_IN))),
        once_table.c.subject == bindparam("of"),
    )
)


def end_links(user_id: str) -> Verb[None]:
    """End every link mailed before."""
    yield END_LINKS(of=user_id)
