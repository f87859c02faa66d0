"""Keeps what the login operation gives out (accounts/login_data.py, oauth/store.py)."""

from typing import Final

from sqlalchemy import and_, bindparam, delete, insert, select

from gatehouse.accounts.model import LoginTokenRecord
from gatehouse.audit.model import AuditRecord
from gatehouse.oauth.model import LoginToken
from gatehouse.storage import once
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.runner import SqlStore, inline_write, read, write
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import login_tokens, users

SHORT_TOKEN: Final = "stoken"  # noqa: S105 - a kind of single-use thing

LOCK_UNREVOKED_USER = Statement(
    select(users.c.user_id)
    .where(users.c.user_id == bindparam("of"), users.c.rev == bindparam("rev"), users.c.blocked.is_(False))
    .with_for_update(read=True)  # a revocation under way waits, or has won already
)
INSERT_LOGIN_TOKEN = Statement(insert(login_tokens))
DROP_LOGIN_TOKEN = Statement(
    delete(login_tokens).where(login_tokens.c.digest == bindparam("of")).returning(login_tokens.c.digest)
)
LIVE_LOGIN_TOKEN = Statement(
    select(login_tokens.c.user_id, login_tokens.c.application_id, login_tokens.c.ends_at)
    .join(users, and_(users.c.user_id == login_tokens.c.user_id, users.c.rev == login_tokens.c.rev))
    .where(
        login_tokens.c.digest == bindparam("of"),
        login_tokens.c.ends_at > bindparam("now"),
        users.c.blocked.is_(False),
    )
)


def save_login(login: LoginTokenRecord, entry: AuditRecord) -> Verb[bool]:
    if not (yield LOCK_UNREVOKED_USER(of=login.user_id, rev=login.rev)):
        return False
    yield from insert_login(login, entry)
    return True


def insert_login(login: LoginTokenRecord, entry: AuditRecord) -> Verb[None]:
    """For whoever holds the account against a revocation."""
    yield INSERT_LOGIN_TOKEN(**token_row(login))
    if login.stoken is not None:
        yield from once.put_single_use(
            SHORT_TOKEN,
            login.stoken,
            subject=login.user_id,
            details={"address": login.address, "rev": login.rev},
            now=login.now,
            expires_at=login.stoken_ends_at,
        )
    yield from add_audit_record(entry)


def delete_login(login: LoginTokenRecord) -> Verb[bool]:
    """Take back what `put_login` kept; False when it is not there."""
    if not (yield DROP_LOGIN_TOKEN(of=login.token)):
        return False
    if login.stoken is not None:
        yield once.DROP_SECRET(of_kind=SHORT_TOKEN, of_digest=login.stoken)
    return True


def token_row(login: LoginTokenRecord) -> dict[str, object]:
    return {
        "digest": login.token,
        "user_id": login.user_id,
        "rev": login.rev,
        "application_id": login.application_id,
        "ends_at": login.token_ends_at,
    }


def live_login_token(digest: bytes, now: int) -> Verb[LoginToken | None]:
    rows = yield LIVE_LOGIN_TOKEN(of=digest, now=now)
    return LoginToken(**rows[0]._asdict()) if rows else None


def find_short_token_owner(digest: bytes, address: str, now: int) -> Verb[tuple[str, int] | None]:
    return _short_token_owner((yield from once.find_single_use(SHORT_TOKEN, digest, now)), address)


def take_short_token(digest: bytes, address: str, now: int) -> Verb[tuple[str, int] | None]:
    if (yield from find_short_token_owner(digest, address, now)) is None:
        return None
    return _short_token_owner((yield from once.take_single_use(SHORT_TOKEN, digest, now)), address)


class LoginStorage(SqlStore):
    save_login = inline_write(save_login)
    live_login_token = read(live_login_token)
    find_short_token_owner = read(find_short_token_owner)
    take_short_token = write(take_short_token)


def _short_token_owner(row: Row | None, address: str) -> tuple[str, int] | None:
    if row is None or row.details["address"] != address:
        return None
    return row.subject, row.details["rev"]
