"""Keeps grants: one row for each sign-in to a client (oauth/store.py)."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from sqlalchemy import and_, bindparam, case, exists, literal_column, not_, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import Record
from gatehouse.kernel.ids import new_request_id
from gatehouse.oauth.model import Grant, Holder
from gatehouse.oauth.store import Taking, Turn, Turned
from gatehouse.storage.accounts import WHOLE_USER, whole_user
from gatehouse.storage.audit import is_recorded, record
from gatehouse.storage.grant_at_once import begin_at_once
from gatehouse.storage.keys import KEYS_VERSION
from gatehouse.storage.oauth import LIVE, SERVES, KnownClients, client_of
from gatehouse.storage.rows import Part, columns_of
from gatehouse.storage.runner import Runner, Stored, act, brief_act
from gatehouse.storage.statements import Ask, Row, Statement, Verb
from gatehouse.storage.tables.accounts import sessions, users
from gatehouse.storage.tables.installation import once
from gatehouse.storage.tables.oauth import clients, consents, grants

T = TypeVar("T")
ASSERTION: Final = "client_assertion"  # the kind of single-use thing the id of a private_key_jwt is

_LASTS = and_(grants.c.revoked_at == 0, grants.c.ends_at > bindparam("now"))
_SAME_PERSON = exists().where(
    users.c.user_id == grants.c.user_id, users.c.rev == grants.c.rev, users.c.blocked.is_(False)
)
_SAME_CLIENT = exists().where(clients.c.client_id == grants.c.client_id, LIVE, SERVES)
_ALIVE = and_(_LASTS, _SAME_PERSON, _SAME_CLIENT)

INSERT = Statement(insert(grants))
STILL_GOOD = Statement(
    select(users.c.user_id)
    .where(users.c.user_id == bindparam("of"), users.c.rev == bindparam("rev"), users.c.blocked.is_(False))
    .with_for_update(read=True)  # a revocation under way waits, or has won already
)

STILL_SIGNED_IN = Statement(  # the same person, and this session
    select(users.c.user_id, sessions.c.session_id)
    .where(
        users.c.user_id == bindparam("of"),
        users.c.rev == bindparam("rev"),
        users.c.blocked.is_(False),
        sessions.c.session_id == bindparam("session"),
    )
    .with_for_update(read=True)
)
ALLOWED = Statement(
    select(consents.c.scopes)
    .where(consents.c.user_id == bindparam("of"), consents.c.client_id == bindparam("to"))
    .with_for_update(read=True)  # a withdrawal under way waits, and then revokes this grant too
)


def _holders() -> Any:  # noqa: ANN401 - a select of everything
    """The grant, its user and the versions of its client and of the keys in one round trip."""
    return (
        WHOLE_USER.join(grants, grants.c.user_id == users.c.user_id)
        .join(clients, clients.c.client_id == grants.c.client_id)
        .add_columns(
            *(column.label(f"grant_{column.name}") for column in grants.c),
            clients.c.version.label("client_version"),
            KEYS_VERSION,
        )
    )


BY_CODE = Statement(_holders().where(grants.c.code == bindparam("of")))
BY_ID = Statement(
    _holders().where(
        grants.c.grant_id == bindparam("of"),
        _LASTS,
        users.c.rev == grants.c.rev,
        users.c.blocked.is_(False),
        LIVE,
        SERVES,
    )
)
# The conditions are part of the write: of two takers the second one finds no row left to change.
TAKE_CODE = Statement(
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
REVOKE_TAKEN = Statement(
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
CODE_TAKEN = Statement(
    select(grants.c.code_taken_at, grants.c.revoked_at, grants.c.attempt).where(grants.c.code == bindparam("of"))
)
FAIL_CODE = Statement(
    update(grants)
    .where(grants.c.code == bindparam("of"), grants.c.code_taken_at == 0)
    .values(
        code_failures=grants.c.code_failures + 1,
        code_ends_at=case((grants.c.code_failures + 1 >= bindparam("most"), 0), else_=grants.c.code_ends_at),
    )
)
ROTATE = Statement(
    update(grants)
    .where(grants.c.grant_id == bindparam("of"), grants.c.generation == bindparam("shown"), _ALIVE)
    .values(generation=grants.c.generation + 1, refreshed_at=bindparam("now"), attempt=bindparam("by"))
    .returning(grants.c.generation, grants.c.refreshed_at)
)
NEWEST = Statement(
    select(grants.c.generation, grants.c.refreshed_at, grants.c.attempt).where(
        grants.c.grant_id == bindparam("of"), _ALIVE
    )
)
REVOKE = Statement(
    update(grants)
    .where(grants.c.grant_id == bindparam("of"), _ALIVE)
    .values(revoked_at=bindparam("now"))
    .returning(grants.c.grant_id)
)
REVOKE_CLIENT = Statement(
    update(grants)
    .where(grants.c.client_id == bindparam("of"), _LASTS)
    .values(revoked_at=bindparam("now"))
    .returning(grants.c.grant_id)
)
SPEND_ASSERTION = Statement(insert(once).on_conflict_do_nothing().returning(once.c.digest))
SPENT_BY = Statement(select(once.c.details).where(once.c.kind == ASSERTION, once.c.digest == bindparam("of_digest")))
# Its client wants to hear of the end of a session that goes on, however long ago its tokens ended.
_IS_TO_BE_TOLD = and_(
    exists().where(sessions.c.session_id == grants.c.session_id),
    exists().where(clients.c.client_id == grants.c.client_id, clients.c.backchannel_logout_uri != ""),
)
LOOKED_BACK: Final = 86_400  # seconds; a code that was never asked for and not swept by then ends with its grant
# What a sweep removes, each by an index of its own.
ENDED: Final = (
    (grants.c.ends_at <= bindparam("by"), not_(_IS_TO_BE_TOLD)),
    (grants.c.revoked_at > literal_column("0"), grants.c.revoked_at <= bindparam("by")),  # as its index says it
    # Nobody came for its code; codes live for minutes. What tells them from all others changes with the exchange, and
    # an index on that would make every exchange dearer.
    (
        grants.c.created_at <= bindparam("by"),
        grants.c.created_at > bindparam("by") - LOOKED_BACK,
        grants.c.code.is_not(None),
        grants.c.code_taken_at == 0,
    ),
)


def begin(grant: Grant, entry: Record, *, in_session: bool = False, consented: bool = False) -> Verb[bool]:
    if not (yield still_good(grant, in_session=in_session)):
        return False
    if consented and not (yield from is_allowed(grant)):
        return False
    yield from add_grant(grant)
    yield from record(entry)
    return True


def still_good(grant: Grant, *, in_session: bool) -> Ask:
    if in_session:
        return STILL_SIGNED_IN(of=grant.user_id, rev=grant.rev, session=grant.session_id)
    return STILL_GOOD(of=grant.user_id, rev=grant.rev)


def is_allowed(grant: Grant) -> Verb[bool]:
    rows = yield ALLOWED(of=grant.user_id, to=grant.client_id)
    return bool(rows) and set(grant.scopes) <= set(rows[0].scopes)


def add_grant(grant: Grant) -> Verb[None]:
    """Part of every verb that makes a grant."""
    yield INSERT(**columns_of(grant))


def by_code(code: bytes, known: KnownClients) -> Verb[Holder | None]:
    rows = yield BY_CODE(of=code)
    return (yield from _holder(rows[0], known)) if rows else None


def by_id(grant_id: str, now: int, known: KnownClients | None = None) -> Verb[Holder | None]:
    """Within a transaction, whose states may never be committed, without what is known."""
    rows = yield BY_ID(of=grant_id, now=now)
    return (yield from _holder(rows[0], known)) if rows else None


def take_code(code: bytes, now: int, *, generation: int, attempt: str, reused: Callable[[], Record]) -> Verb[Taking]:
    if (yield TAKE_CODE(of=code, now=now, first=generation, by=attempt)):
        return Taking.TAKEN
    if (yield REVOKE_TAKEN(of=code, now=now, by=attempt)):
        yield from record(reused())
        return Taking.REUSED
    found = yield CODE_TAKEN(of=code)
    if found and found[0].attempt == attempt and not found[0].revoked_at:
        return Taking.TAKEN  # by an earlier run
    return Taking.REUSED if found and found[0].code_taken_at else Taking.GONE


def fail_code(code: bytes, *, most: int) -> Verb[None]:
    yield FAIL_CODE(of=code, most=most)


def turn(
    grant_id: str, generation: int, now: int, *, attempt: str, grace: int, reused: Callable[[], Record]
) -> Verb[Turned]:
    rotated = yield ROTATE(of=grant_id, shown=generation, now=now, by=attempt)
    if rotated:
        return _turned(Turn.ROTATED, rotated[0])
    newest = yield NEWEST(of=grant_id, now=now)
    if not newest or generation > newest[0].generation:
        return Turned(turn=Turn.GONE)
    if newest[0].attempt == attempt:
        return _turned(Turn.ROTATED, newest[0])  # by an earlier run
    # Either way: where the clock went back the window must not stay open until it has caught up (faults I16).
    if generation == newest[0].generation - 1 and abs(now - newest[0].refreshed_at) < grace:
        return _turned(Turn.REPEATED, newest[0])
    if (yield REVOKE(of=grant_id, now=now)):
        yield from record(reused())
    return Turned(turn=Turn.REUSED)


def revoke(grant_id: str, now: int, entry: Record) -> Verb[bool]:
    if not (yield REVOKE(of=grant_id, now=now)):
        return (yield from is_recorded(entry))
    yield from record(entry)
    return True


def revoke_client(client_id: str, now: int, entry: Record) -> Verb[int]:
    ended = yield REVOKE_CLIENT(of=client_id, now=now)
    yield from record(entry)
    return len(ended)


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
    before = yield SPENT_BY(of_digest=digest)
    return bool(before) and before[0].details.get("attempt") == attempt


class GrantStorage(Stored):
    def __init__(self, runner: Runner, known: KnownClients) -> None:
        super().__init__(runner)
        self._known = known

    async def by_code(self, code: bytes) -> Holder | None:
        return await self.runner.look(lambda: by_code(code, self._known))

    async def by_id(self, grant_id: str, now: int) -> Holder | None:
        return await self.runner.look(lambda: by_id(grant_id, now, self._known))

    begin = brief_act(begin, at_once=begin_at_once)
    fail_code = brief_act(fail_code)
    revoke = brief_act(revoke, repeatable=True)
    revoke_client = act(revoke_client)

    async def take_code(self, code: bytes, now: int, *, generation: int, reused: Callable[[], Record]) -> Taking:
        return await self._marked(partial(take_code, code, now, generation=generation, reused=reused))

    async def turn(
        self, grant_id: str, generation: int, now: int, *, grace: int, reused: Callable[[], Record]
    ) -> Turned:
        return await self._marked(partial(turn, grant_id, generation, now, grace=grace, reused=reused))

    async def spend_assertion(self, digest: bytes, client_id: str, now: int, *, ends_at: int) -> bool:
        return await self._marked(partial(spend_assertion, digest, client_id, now, ends_at=ends_at))

    async def _marked(self, verb: Callable[..., Verb[T]]) -> T:
        """Run a verb that writes no record under an id of its own, by which a second run recognizes the first."""
        make = partial(verb, attempt=new_request_id())
        return await self.runner.act(make, brief=True, at_once=make, repeatable=True)


def _turned(turn: Turn, row: Row) -> Turned:
    return Turned(turn=turn, generation=row.generation, refreshed_at=row.refreshed_at)


def _holder(row: Row, known: KnownClients | None) -> Verb[Holder]:
    grant = GRANT_PART.of(row)
    client_id = grant.client_id
    client = yield from known.at(client_id, row.client_version) if known else client_of(client_id)
    return Holder(grant=grant, client=client, user=USER_PART.of(row), keys_version=row.keys_version)


def whole_grant(fields: dict[str, Any]) -> Grant:
    fields["scopes"] = tuple(fields["scopes"])
    fields["wanted_claims"] = tuple(fields["wanted_claims"])
    return Grant(**fields)


USER_PART: Final = Part(whole_user, WHOLE_USER.exported_columns)
GRANT_PART: Final = Part(whole_grant, grants.c, after=USER_PART)
