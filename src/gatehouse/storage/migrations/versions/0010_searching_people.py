"""People are found by any part of nick, name and login; answers to creates are kept for a day."""

import unicodedata

from alembic import op
from sqlalchemy import BigInteger, Column, LargeBinary, PrimaryKeyConstraint, Text, text

revision = "0010"
down_revision = "0009"

BATCH = 1_000  # accounts read at a time
SEARCHED = ("reg_time", "user_id", "nick_key", "name_key", "login_key", "blocked", "kind")
NEXT_ACCOUNTS = text("SELECT user_id, nick, name FROM users WHERE user_id > :last ORDER BY user_id LIMIT :most")
SET_KEYS = text("UPDATE users SET nick_key = :nick, name_key = :name WHERE user_id = :of")


def upgrade() -> None:
    for name in ("nick_key", "name_key"):
        op.add_column("users", Column(name, Text, nullable=False, server_default=text("''")))
    fill_keys()
    op.create_index("ix_users_search", "users", list(SEARCHED))
    op.create_table(
        "idempotency_keys",
        Column("user_id", Text, nullable=False),
        Column("through", BigInteger, nullable=False),
        Column("key_digest", LargeBinary, nullable=False),
        Column("request_digest", LargeBinary, nullable=False),
        Column("sealed_answer", LargeBinary),
        Column("ends_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("user_id", "through", "key_digest", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_ends_at", "idempotency_keys", ["ends_at"])


def fill_keys() -> None:
    there, last = op.get_bind(), ""
    while rows := there.execute(NEXT_ACCOUNTS, {"last": last, "most": BATCH}).all():
        keys = [{"of": row.user_id, "nick": search_key(row.nick), "name": search_key(row.name)} for row in rows]
        there.execute(SET_KEYS, keys)
        last = rows[-1].user_id


def search_key(value: str) -> str:
    return unicodedata.normalize("NFC", value.casefold())[:200]
