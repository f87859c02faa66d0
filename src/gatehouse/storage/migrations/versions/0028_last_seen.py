"""When a person was last seen, on the account: the list of people is sorted by it."""

from alembic import op
from sqlalchemy import BigInteger, Column, text

revision = "0028"
down_revision = "0027"

BATCH = 1_000  # accounts at a time
NEXT_ACCOUNTS = text("SELECT user_id FROM users WHERE user_id > :last ORDER BY user_id LIMIT :most")
LAST_TIMES = text(
    "SELECT (SELECT MAX(seen_at) FROM sessions WHERE user_id = :of) AS session,"
    " (SELECT MAX(at) FROM audit_events WHERE subject = :of"
    " AND event IN ('session.opened', 'login.done')) AS signed_in"
)
SET_SEEN = text("UPDATE users SET seen_at = :at WHERE user_id = :of")


def upgrade() -> None:
    op.add_column("users", Column("seen_at", BigInteger, nullable=False, server_default=text("0")))
    there, last = op.get_bind(), ""
    while rows := there.execute(NEXT_ACCOUNTS, {"last": last, "most": BATCH}).all():
        for row in rows:
            times = there.execute(LAST_TIMES, {"of": row.user_id}).one()
            if at := max(times.session or 0, times.signed_in or 0):
                there.execute(SET_SEEN, {"of": row.user_id, "at": at})
        last = rows[-1].user_id
    op.create_index("ix_users_seen_at", "users", ["seen_at", "user_id"])
