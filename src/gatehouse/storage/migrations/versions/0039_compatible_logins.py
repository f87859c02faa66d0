"""Email addresses that differ in compatibility forms only are one; accounts that share one keep their spellings."""

import re
import unicodedata

from alembic import op
from sqlalchemy import Column, Text, text

revision = "0039"
down_revision = "0038"

BATCH = 1_000  # accounts read at a time
LOCAL_PART = re.compile(r"[^\s\"(),:;<>@\[\\\].]+(\.[^\s\"(),:;<>@\[\\\].]+)*")
MAX_LOCAL_LENGTH = 64
NEXT_ACCOUNTS = text(
    "SELECT user_id, login_key FROM users WHERE login_key IS NOT NULL AND user_id > :last"
    " ORDER BY user_id LIMIT :most"
)
SHARE_KEY = text("UPDATE users SET shared_key = :key WHERE user_id = :of")
# Of accounts that share a spelling which none of them has, one gets it: with a proved address, or the oldest.
GIVE_KEYS = text(
    "UPDATE users SET login_key = shared_key, shared_key = NULL WHERE shared_key IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM users AS owner WHERE owner.login_key = users.shared_key)"
    " AND user_id = (SELECT first.user_id FROM users AS first WHERE first.shared_key = users.shared_key"
    " ORDER BY first.email_verified DESC, first.reg_time, first.user_id LIMIT 1)"
)


def upgrade() -> None:
    op.add_column("users", Column("shared_key", Text))
    op.create_index(
        "ix_users_shared_key",
        "users",
        ["shared_key"],
        postgresql_where=text("shared_key IS NOT NULL"),
        sqlite_where=text("shared_key IS NOT NULL"),
    )
    there, last = op.get_bind(), ""
    while rows := there.execute(NEXT_ACCOUNTS, {"last": last, "most": BATCH}).all():
        keys = [{"of": row.user_id, "key": canonical_key(row.login_key)} for row in rows if differs(row.login_key)]
        if keys:
            there.execute(SHARE_KEY, keys)
        last = rows[-1].user_id
    there.execute(GIVE_KEYS)


def differs(key: str) -> bool:
    return not key.isascii() and canonical_key(key) != key


def canonical_key(key: str) -> str:
    local, _, domain = key.rpartition("@")
    plain = compatible(local)
    return f"{plain}@{domain}" if len(plain) <= MAX_LOCAL_LENGTH and LOCAL_PART.fullmatch(plain) else key


def compatible(value: str) -> str:
    folded = unicodedata.normalize("NFC", value).casefold()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", folded).casefold())
