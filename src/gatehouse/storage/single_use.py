"""Secrets that can be used once: links, invitations, resets and codes."""

from collections.abc import Mapping
from types import MappingProxyType

from sqlalchemy import and_, bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import Insert, insert

from gatehouse.storage.epoch import CURRENT_EPOCH
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.installation import once

THIS_SECRET = (once.c.kind == bindparam("of_kind"), once.c.digest == bindparam("of_digest"))
# A restore or promotion ends it (R3): it may have been used already.
IS_OPEN = and_(once.c.taken_at == 0, once.c.expires_at > bindparam("now"), once.c.epoch == CURRENT_EPOCH)


def insert_single_use() -> Insert:
    values = {column.name: bindparam(column.name, type_=column.type) for column in once.c if column.name != "epoch"}
    return insert(once).values(values | {"epoch": CURRENT_EPOCH})


INSERT_SECRET = Statement(insert_single_use)
DROP_SECRETS_OF_SUBJECT = Statement(
    lambda: delete(once).where(once.c.kind == bindparam("of_kind"), once.c.subject == bindparam("of_subject"))
)
DROP_SECRET = Statement(lambda: delete(once).where(*THIS_SECRET))
FIND_OPEN_OF_SUBJECT = Statement(
    lambda: (
        select(once.c.digest)
        .where(
            once.c.kind == bindparam("of_kind"),
            once.c.subject == bindparam("of_subject"),
            IS_OPEN,
        )
        .limit(1)
    )
)
FIND_OPEN_SECRET = Statement(lambda: select(once.c.subject, once.c.details).where(*THIS_SECRET, IS_OPEN))
# The condition is part of the write: of two takers the second one finds no row left to change.
TAKE_SECRET = Statement(
    lambda: (
        update(once)
        .where(*THIS_SECRET, IS_OPEN)
        .values(taken_at=bindparam("now"))
        .returning(once.c.subject, once.c.details)
    )
)
# Of two that bring one secret the second finds the row of the first.
MARK_USED = Statement(lambda: insert_single_use().on_conflict_do_nothing().returning(once.c.digest))


def put_single_use(
    kind: str,
    digest: bytes,
    *,
    subject: str,
    details: Mapping[str, object],
    now: int,
    expires_at: int,
    more: Mapping[bytes, Mapping[str, object]] = MappingProxyType({}),
) -> Verb[None]:
    """Store a secret that can be used until it expires; older ones of the same subject are deleted.

    `more`: further secrets of that subject, with their details, written in the same statement.
    """
    row: dict[str, object] = {"kind": kind, "subject": subject}
    row |= {"created_at": now, "expires_at": expires_at, "taken_at": 0}
    yield DROP_SECRETS_OF_SUBJECT(of_kind=kind, of_subject=subject)
    yield (
        INSERT_SECRET.bulk([{"digest": key, "details": its, **row} for key, its in {digest: details, **more}.items()])
        if more
        else INSERT_SECRET(digest=digest, details=details, **row)
    )


def single_use_is_open(kind: str, digest: bytes, now: int) -> Verb[bool]:
    return (yield from find_single_use(kind, digest, now)) is not None


def find_single_use(kind: str, digest: bytes, now: int) -> Verb[Row | None]:
    """Return the secret if it could be used now, without using it."""
    rows = yield FIND_OPEN_SECRET(of_kind=kind, of_digest=digest, now=now)
    return rows[0] if rows else None


def has_open_secret(kind: str, subject: str, now: int) -> Verb[bool]:
    """Whether a secret of the subject could be used now."""
    return bool((yield FIND_OPEN_OF_SUBJECT(of_kind=kind, of_subject=subject, now=now)))


def take_single_use(kind: str, digest: bytes, now: int) -> Verb[Row | None]:
    """Mark the secret as used and return it; None when it was used, has expired or never existed."""
    rows = yield TAKE_SECRET(of_kind=kind, of_digest=digest, now=now)
    return rows[0] if rows else None


def mark_used(kind: str, digest: bytes, *, now: int, expires_at: int) -> Verb[bool]:
    """Record the use of a secret that was not stored when it was issued; False if it was used before."""
    rows = yield MARK_USED(
        kind=kind,
        digest=digest,
        subject="",
        details={},
        created_at=now,
        expires_at=expires_at,
        taken_at=now,
    )
    return bool(rows)
