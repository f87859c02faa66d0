"""Tokens of the login operation (accounts/login_result.py, oauth/store.py)."""

from typing import Final

from sqlalchemy import and_, bindparam, delete, insert, select

from gatehouse.accounts.bans.model import find_ban
from gatehouse.accounts.model import SignInMethod
from gatehouse.accounts.session_model import LoginToken, LoginTokenRecord, ShortTokenOwner
from gatehouse.audit.model import AuditRecord
from gatehouse.storage import single_use
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.epoch import USER_REV
from gatehouse.storage.permissions.row_readers import bans_from_document
from gatehouse.storage.runner import SqlStore, inline_write, read, write
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import login_tokens, users
from gatehouse.storage.tables.permissions import applications

SHORT_TOKEN: Final = "stoken"  # noqa: S105 - a kind of single-use thing

LOCK_UNREVOKED_USER = Statement(
    lambda: (
        select(users.c.user_id)
        .where(users.c.user_id == bindparam("of"), bindparam("rev") == USER_REV, users.c.blocked.is_(False))
        .with_for_update(read=True)
    )  # a concurrent revocation waits, or has won already
)
INSERT_LOGIN_TOKEN = Statement(lambda: insert(login_tokens))
DROP_LOGIN_TOKEN = Statement(
    lambda: delete(login_tokens).where(login_tokens.c.digest == bindparam("of")).returning(login_tokens.c.digest)
)
LIVE_LOGIN_TOKEN = Statement(
    lambda: (
        select(
            login_tokens.c.user_id,
            login_tokens.c.application_id,
            login_tokens.c.ends_at,
            users.c.bans,
            select(applications.c.project_id)
            .where(applications.c.application_id == login_tokens.c.application_id)
            .scalar_subquery()
            .label("project_id"),
        )
        .join(users, and_(users.c.user_id == login_tokens.c.user_id, login_tokens.c.rev == USER_REV))
        .where(
            login_tokens.c.digest == bindparam("of"),
            login_tokens.c.ends_at > bindparam("now"),
            users.c.blocked.is_(False),
        )
    )
)


def save_login(login: LoginTokenRecord, entry: AuditRecord) -> Verb[bool]:
    if not (yield LOCK_UNREVOKED_USER(of=login.user_id, rev=login.rev)):
        return False
    yield from insert_login(login, entry)
    return True


def insert_login(login: LoginTokenRecord, entry: AuditRecord) -> Verb[None]:
    """Store a login; the caller holds a lock on the account against revocation."""
    yield INSERT_LOGIN_TOKEN(**token_row(login))
    if login.stoken is not None:
        yield from single_use.put_single_use(
            SHORT_TOKEN,
            login.stoken,
            subject=login.user_id,
            details={"address": login.address, "rev": login.rev, "auth": login.auth.value},
            now=login.now,
            expires_at=login.stoken_ends_at,
        )
    yield from add_audit_record(entry)


def delete_login(login: LoginTokenRecord) -> Verb[bool]:
    """Delete what `save_login` stored; False when it is gone."""
    if not (yield DROP_LOGIN_TOKEN(of=login.token)):
        return False
    if login.stoken is not None:
        yield single_use.DROP_SECRET(of_kind=SHORT_TOKEN, of_digest=login.stoken)
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
    if not rows:
        return None
    row, bans = rows[0], bans_from_document(rows[0].bans)
    if find_ban(bans, now, application_id=row.application_id, project_id=row.project_id or "") is not None:
        return None
    return LoginToken(user_id=row.user_id, application_id=row.application_id, ends_at=row.ends_at)


def find_short_token_owner(digest: bytes, address: str, now: int) -> Verb[ShortTokenOwner | None]:
    return _short_token_owner((yield from single_use.find_single_use(SHORT_TOKEN, digest, now)), address)


def take_short_token(digest: bytes, address: str, now: int) -> Verb[ShortTokenOwner | None]:
    if (yield from find_short_token_owner(digest, address, now)) is None:
        return None
    return _short_token_owner((yield from single_use.take_single_use(SHORT_TOKEN, digest, now)), address)


class LoginStorage(SqlStore):
    save_login = inline_write(save_login)
    live_login_token = read(live_login_token)
    find_short_token_owner = read(find_short_token_owner)
    take_short_token = write(take_short_token)


def _short_token_owner(row: Row | None, address: str) -> ShortTokenOwner | None:
    if row is None or row.details["address"] != address:
        return None
    return ShortTokenOwner(
        user_id=row.subject, rev=row.details["rev"], auth=SignInMethod(row.details.get("auth", SignInMethod.LOGIN))
    )
