"""Creates a grant on PostgreSQL in one statement and one round trip (docs/decisions/0003-verbs-written-once.md).

The statement checks that person, session and consent still exist, and writes the grant and its audit record. The rows
it checks are locked against a concurrent revocation until the commit, as in the verb it replaces.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any, Final, TypeVar

from sqlalchemy import CTE, and_, bindparam, case, cast, exists, literal_column, not_, or_, select, update
from sqlalchemy.dialects.postgresql import JSONB, insert

from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.ids import first_record_id, new_request_id
from gatehouse.oauth.model import Grant, GrantHolder
from gatehouse.oauth.store import RedeemOutcome, RotationOutcome, RotationResult
from gatehouse.storage.accounts.users import SELECT_USER, USER_COLUMNS
from gatehouse.storage.audit import (
    add_audit_record,
    audit_record_parameters,
    has_audit_record,
    insert_audit_record_if,
    insert_if,
)
from gatehouse.storage.epoch import CLIENT_REV, USER_REV
from gatehouse.storage.keys import KEYS_VERSION
from gatehouse.storage.oauth.apis import add_machine_record, is_machine_token_revoked, revoke_machine_token
from gatehouse.storage.oauth.clients import (
    APPLICATION_LIVE,
    NOT_REMOVED,
    ClientCache,
    client_by_id,
    end_client_grants,
)
from gatehouse.storage.rows import RecordColumns, column_values
from gatehouse.storage.runner import Runner, SqlStore, inline_write, read, write
from gatehouse.storage.single_use import insert_single_use
from gatehouse.storage.statements import BoundStatement, Row, Statement, Verb
from gatehouse.storage.tables.accounts import sessions, users
from gatehouse.storage.tables.installation import once
from gatehouse.storage.tables.oauth import clients, consents, grants
from gatehouse.storage.tables.permissions import applications


def _lock_unrevoked(*, in_session: bool, consented: bool) -> CTE:
    query = select(users.c.user_id).where(
        users.c.user_id == bindparam("user_id"), bindparam("rev") == USER_REV, users.c.blocked.is_(False)
    )
    if in_session:
        query = query.where(sessions.c.session_id == bindparam("session_id"))
    if consented:
        query = query.where(
            consents.c.user_id == bindparam("user_id"),
            consents.c.client_id == bindparam("client_id"),
            cast(consents.c.scopes, JSONB).contains(cast(bindparam("scopes", type_=grants.c.scopes.type), JSONB)),
            or_(consents.c.ends_at == 0, consents.c.ends_at >= bindparam("ends_at")),
        )
    return query.with_for_update(read=True).cte("held")


def _create_statement(*, in_session: bool, consented: bool) -> Statement:
    lock = _lock_unrevoked(in_session=in_session, consented=consented)
    return Statement(lambda: insert_audit_record_if(insert_if(lock, grants).cte("made")))


CREATE_SINGLE_STATEMENT: Final = {
    (in_session, consented): _create_statement(in_session=in_session, consented=consented)
    for in_session, consented in product((False, True), repeat=2)
}


def create_grant_single_statement(
    grant: Grant, entry: AuditRecord, *, in_session: bool = False, consented: bool = False
) -> Verb[bool]:
    return bool(
        (
            yield CREATE_SINGLE_STATEMENT[in_session, consented](
                **column_values(grant), **audit_record_parameters(entry)
            )
        )
    )


# Grants: one row for each sign-in to a client (oauth/store.py).


T = TypeVar("T")
ASSERTION: Final = "client_assertion"  # the single-use kind of the id of a private_key_jwt

_UNEXPIRED = and_(grants.c.revoked_at == 0, grants.c.ends_at > bindparam("now"))
_USER_UNREVOKED = exists().where(
    users.c.user_id == grants.c.user_id, grants.c.rev == USER_REV, users.c.blocked.is_(False)
)
_CLIENT_LIVE = exists().where(clients.c.client_id == grants.c.client_id, NOT_REMOVED, APPLICATION_LIVE)
_ALIVE = and_(_UNEXPIRED, _USER_UNREVOKED, _CLIENT_LIVE)

INSERT_GRANT = Statement(lambda: insert(grants))
LOCK_UNREVOKED_USER = Statement(
    lambda: (
        select(users.c.user_id)
        .where(users.c.user_id == bindparam("of"), bindparam("rev") == USER_REV, users.c.blocked.is_(False))
        .with_for_update(read=True)
    )  # a concurrent revocation waits, or has won already
)

LOCK_UNREVOKED_SESSION = Statement(  # the session must belong to the same person
    lambda: (
        select(users.c.user_id, sessions.c.session_id)
        .where(
            users.c.user_id == bindparam("of"),
            bindparam("rev") == USER_REV,
            users.c.blocked.is_(False),
            sessions.c.session_id == bindparam("session"),
        )
        .with_for_update(read=True)
    )
)
LOCK_CONSENTED_SCOPES = Statement(
    lambda: (
        select(consents.c.scopes, consents.c.ends_at)
        .where(consents.c.user_id == bindparam("of"), consents.c.client_id == bindparam("to"))
        .with_for_update(read=True)
    )  # a concurrent withdrawal waits, and then revokes this grant too
)


_PROJECT_OF_CLIENT = (
    select(applications.c.project_id)
    .where(applications.c.application_id == clients.c.application_id)
    .scalar_subquery()
)


def _select_holders() -> Any:  # noqa: ANN401 - a select of everything
    """Select the grant, its user and the versions of its client and of the keys in one round trip."""
    return (
        SELECT_USER.join(grants, grants.c.user_id == users.c.user_id)
        .join(clients, clients.c.client_id == grants.c.client_id)
        .add_columns(
            *(column.label(f"grant_{column.name}") for column in grants.c),
            clients.c.version.label("client_version"),
            CLIENT_REV.label("client_rev"),
            _PROJECT_OF_CLIENT.label("client_project_id"),
            KEYS_VERSION,
        )
    )


def grant_from_fields(fields: dict[str, Any]) -> Grant:
    fields["scopes"] = tuple(fields["scopes"])
    fields["wanted_claims"] = tuple(fields["wanted_claims"])
    return Grant(**fields)


_HOLDER_RECORDS: Final[Mapping[str, RecordColumns[Any]]] = {
    "user": USER_COLUMNS,
    "grant": RecordColumns(grant_from_fields, grants.c),
}
GRANT_BY_CODE = Statement(lambda: _select_holders().where(grants.c.code == bindparam("of")), records=_HOLDER_RECORDS)
LIVE_GRANT_BY_ID = Statement(
    lambda: _select_holders().where(
        grants.c.grant_id == bindparam("of"),
        _UNEXPIRED,
        grants.c.rev == USER_REV,
        users.c.blocked.is_(False),
        NOT_REMOVED,
        APPLICATION_LIVE,
    ),
    records=_HOLDER_RECORDS,
)
# The conditions are part of the write: of two takers the second one finds no row left to change.
REDEEM_CODE = Statement(
    lambda: (
        update(grants)
        .where(
            grants.c.code == bindparam("of"),
            grants.c.code_taken_at == 0,
            grants.c.code_ends_at > bindparam("now"),
            _ALIVE,
        )
        .values(
            code_taken_at=bindparam("now"),
            generation=bindparam("first"),
            refreshed_at=bindparam("now"),
            attempt=bindparam("by"),
        )
        .returning(grants.c.grant_id)
    )
)
REVOKE_REUSED_CODE = Statement(
    lambda: (
        update(grants)
        .where(
            grants.c.code == bindparam("of"),
            grants.c.code_taken_at > 0,
            grants.c.revoked_at == 0,
            grants.c.attempt != bindparam("by"),
        )
        .values(revoked_at=bindparam("now"))
        .returning(grants.c.grant_id)
    )
)
CODE_STATUS = Statement(
    lambda: select(grants.c.code_taken_at, grants.c.revoked_at, grants.c.attempt).where(
        grants.c.code == bindparam("of")
    )
)
COUNT_CODE_FAILURE = Statement(
    lambda: (
        update(grants)
        .where(grants.c.code == bindparam("of"), grants.c.code_taken_at == 0)
        .values(
            code_failures=grants.c.code_failures + 1,
            code_ends_at=case((grants.c.code_failures + 1 >= bindparam("most"), 0), else_=grants.c.code_ends_at),
        )
    )
)
ROTATE = Statement(
    lambda: (
        update(grants)
        .where(grants.c.grant_id == bindparam("of"), grants.c.generation == bindparam("shown"), _ALIVE)
        .values(
            generation=grants.c.generation + 1,
            refreshed_at=bindparam("now"),
            refresh_kid=bindparam("kid"),
            attempt=bindparam("by"),
        )
        .returning(grants.c.generation, grants.c.refreshed_at, grants.c.refresh_kid)
    )
)
CURRENT_GENERATION = Statement(
    lambda: select(grants.c.generation, grants.c.refreshed_at, grants.c.refresh_kid, grants.c.attempt).where(
        grants.c.grant_id == bindparam("of"), _ALIVE
    )
)
REVOKE_GRANT = Statement(
    lambda: (
        update(grants)
        .where(grants.c.grant_id == bindparam("of"), _ALIVE)
        .values(revoked_at=bindparam("now"))
        .returning(grants.c.grant_id)
    )
)
MARK_GRANT_USED = Statement(
    lambda: (
        update(grants)
        .where(grants.c.grant_id == bindparam("of"), grants.c.used_at < bindparam("now"))
        .values(used_at=bindparam("now"))
    )
)
SPEND_ASSERTION = Statement(lambda: insert_single_use().on_conflict_do_nothing().returning(once.c.digest))
ASSERTION_SPENT_BY = Statement(
    lambda: select(once.c.details).where(once.c.kind == ASSERTION, once.c.digest == bindparam("of_digest"))
)
# The client wants to be called when the session ends, however long ago its tokens ended.
_AWAITS_LOGOUT_CALL = and_(
    exists().where(sessions.c.session_id == grants.c.session_id),
    exists().where(clients.c.client_id == grants.c.client_id, clients.c.backchannel_logout_uri != ""),
)
UNUSED_CODE_WINDOW: Final = 86_400  # seconds after which the grant of an unredeemed code is deleted
# What a sweep removes, each by an index of its own.
SWEEP_CONDITIONS: Final = (
    (grants.c.ends_at <= bindparam("by"), not_(_AWAITS_LOGOUT_CALL)),
    (grants.c.revoked_at > literal_column("0"), grants.c.revoked_at <= bindparam("by")),  # as its index says it
    # Its code was never redeemed; codes live for minutes. The columns that show it change with every redemption, and
    # an index on them would make each one slower. IDs begin with the time (docs/decisions/0025).
    (
        grants.c.grant_id >= bindparam("first_id"),
        grants.c.grant_id < bindparam("end_id"),
        grants.c.code.is_not(None),
        grants.c.code_taken_at == 0,
    ),
)


def sweep_parameters(by: int) -> Iterator[dict[str, object]]:
    """Those of SWEEP_CONDITIONS, for what ended by that time."""
    yield {"by": by}
    yield {"by": by}
    yield {"first_id": first_record_id(by - UNUSED_CODE_WINDOW), "end_id": first_record_id(by + 1)}


def create_grant(
    grant: Grant, entry: AuditRecord, *, in_session: bool = False, consented: bool = False
) -> Verb[bool]:
    if not (yield lock_unrevoked(grant, in_session=in_session)):
        return False
    if consented and not (yield from has_consent(grant)):
        return False
    yield from insert_grant(grant)
    yield from add_audit_record(entry)
    return True


def lock_unrevoked(grant: Grant, *, in_session: bool) -> BoundStatement:
    if in_session:
        return LOCK_UNREVOKED_SESSION(of=grant.user_id, rev=grant.rev, session=grant.session_id)
    return LOCK_UNREVOKED_USER(of=grant.user_id, rev=grant.rev)


def has_consent(grant: Grant) -> Verb[bool]:
    rows = yield LOCK_CONSENTED_SCOPES(of=grant.user_id, to=grant.client_id)
    if not rows or (rows[0].ends_at and rows[0].ends_at < grant.ends_at):
        return False
    return set(grant.scopes) <= set(rows[0].scopes)


def insert_grant(grant: Grant) -> Verb[None]:
    """Part of every verb that makes a grant."""
    yield INSERT_GRANT(**column_values(grant))


def find_grant_by_code(code: bytes, client_cache: ClientCache) -> Verb[GrantHolder | None]:
    rows = yield GRANT_BY_CODE(of=code)
    return (yield from _holder_from_row(rows[0], client_cache)) if rows else None


def find_live_grant(grant_id: str, now: int, client_cache: ClientCache | None = None) -> Verb[GrantHolder | None]:
    """Find a live grant inside a transaction.

    The cache is not used, because the transaction's state may never be committed.
    """
    rows = yield LIVE_GRANT_BY_ID(of=grant_id, now=now)
    return (yield from _holder_from_row(rows[0], client_cache)) if rows else None


def redeem_code(
    code: bytes, now: int, *, generation: int, attempt: str, reused: Callable[[], AuditRecord]
) -> Verb[RedeemOutcome]:
    if (yield REDEEM_CODE(of=code, now=now, first=generation, by=attempt)):
        return RedeemOutcome.REDEEMED
    if (yield REVOKE_REUSED_CODE(of=code, now=now, by=attempt)):
        yield from add_audit_record(reused())
        return RedeemOutcome.REUSED
    rows = yield CODE_STATUS(of=code)
    if rows and rows[0].attempt == attempt and not rows[0].revoked_at:
        return RedeemOutcome.REDEEMED  # by an earlier run
    return RedeemOutcome.REUSED if rows and rows[0].code_taken_at else RedeemOutcome.GONE


def count_code_failure(code: bytes, *, most: int) -> Verb[None]:
    yield COUNT_CODE_FAILURE(of=code, most=most)


def rotate_refresh_token(
    grant_id: str, generation: int, now: int, *, kid: str, attempt: str, grace: int, reused: Callable[[], AuditRecord]
) -> Verb[RotationResult]:
    rotated = yield ROTATE(of=grant_id, shown=generation, now=now, kid=kid, by=attempt)
    if rotated:
        return _rotation_result(RotationOutcome.ROTATED, rotated[0])
    newest = yield CURRENT_GENERATION(of=grant_id, now=now)
    if not newest or generation > newest[0].generation:
        return RotationResult(outcome=RotationOutcome.GONE)
    if newest[0].attempt == attempt:
        return _rotation_result(RotationOutcome.ROTATED, newest[0])  # by an earlier run
    # Either way: where the clock went back the window must not stay open until it has caught up (faults I16).
    if generation == newest[0].generation - 1 and abs(now - newest[0].refreshed_at) < grace:
        return _rotation_result(RotationOutcome.REPEATED, newest[0])
    if (yield REVOKE_GRANT(of=grant_id, now=now)):
        yield from add_audit_record(reused())
    return RotationResult(outcome=RotationOutcome.REUSED)


def mark_grant_used(grant_id: str, now: int) -> Verb[None]:
    yield MARK_GRANT_USED(of=grant_id, now=now)


def revoke_grant(grant_id: str, now: int, entry: AuditRecord) -> Verb[bool]:
    if not (yield REVOKE_GRANT(of=grant_id, now=now)):
        return (yield from has_audit_record(entry))
    yield from add_audit_record(entry)
    return True


def revoke_client_tokens(client_id: str, now: int, entry: AuditRecord) -> Verb[int]:
    ended = yield from end_client_grants(client_id, now)
    yield from add_audit_record(entry)
    return ended


def spend_assertion(digest: bytes, client_id: str, now: int, *, ends_at: int, attempt: str) -> Verb[bool]:
    spent = yield SPEND_ASSERTION(
        kind=ASSERTION,
        digest=digest,
        subject=client_id,
        details={"attempt": attempt},
        created_at=now,
        expires_at=ends_at,
        taken_at=now,
    )
    if spent:
        return True
    before = yield ASSERTION_SPENT_BY(of_digest=digest)
    return bool(before) and before[0].details.get("attempt") == attempt


class GrantStorage(SqlStore):
    def __init__(self, runner: Runner, client_cache: ClientCache) -> None:
        super().__init__(runner)
        self._client_cache = client_cache

    async def find_grant_by_code(self, code: bytes) -> GrantHolder | None:
        return await self.runner.read(lambda: find_grant_by_code(code, self._client_cache))

    async def find_live_grant(self, grant_id: str, now: int) -> GrantHolder | None:
        return await self.runner.read(lambda: find_live_grant(grant_id, now, self._client_cache))

    create_grant = inline_write(create_grant, single_statement=create_grant_single_statement)
    count_code_failure = inline_write(count_code_failure)
    mark_grant_used = inline_write(mark_grant_used)
    revoke_grant = inline_write(revoke_grant, repeatable=True)
    revoke_client_tokens = write(revoke_client_tokens)
    add_machine_record = write(add_machine_record)
    revoke_machine_token = write(revoke_machine_token)
    is_machine_token_revoked = read(is_machine_token_revoked)

    async def redeem_code(
        self, code: bytes, now: int, *, generation: int, reused: Callable[[], AuditRecord]
    ) -> RedeemOutcome:
        return await self._write_with_attempt_id(
            partial(redeem_code, code, now, generation=generation, reused=reused)
        )

    async def rotate(
        self, grant_id: str, generation: int, now: int, *, kid: str, grace: int, reused: Callable[[], AuditRecord]
    ) -> RotationResult:
        return await self._write_with_attempt_id(
            partial(rotate_refresh_token, grant_id, generation, now, kid=kid, grace=grace, reused=reused)
        )

    async def spend_assertion(self, digest: bytes, client_id: str, now: int, *, ends_at: int) -> bool:
        return await self._write_with_attempt_id(partial(spend_assertion, digest, client_id, now, ends_at=ends_at))

    async def _write_with_attempt_id(self, verb: Callable[..., Verb[T]]) -> T:
        """Run a verb that writes no record under an id of its own, by which a second run recognizes the first."""
        make = partial(verb, attempt=new_request_id())
        return await self.runner.write(make, inline=True, single_statement=make, repeatable=True)


def _rotation_result(turn: RotationOutcome, row: Row) -> RotationResult:
    return RotationResult(outcome=turn, generation=row.generation, refreshed_at=row.refreshed_at, kid=row.refresh_kid)


def _holder_from_row(row: Row, client_cache: ClientCache | None) -> Verb[GrantHolder]:
    client_id = row.grant.client_id
    client = (
        yield from client_cache.client_at_version(client_id, row.client_version, row.client_rev)
        if client_cache
        else client_by_id(client_id)
    )
    return GrantHolder(
        grant=row.grant,
        client=client,
        user=row.user,
        keys_version=row.keys_version,
        project_id=row.client_project_id or "",
    )
