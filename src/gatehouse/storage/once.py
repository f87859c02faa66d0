"""Things that can be taken once: set-up links now; resets, invitations and codes as they come."""

from collections.abc import Mapping, Sequence

from sqlalchemy import bindparam, delete, insert, select, update

from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.installation import once

_THIS = (once.c.kind == bindparam("of_kind"), once.c.digest == bindparam("of_digest"))
_OPEN = (*_THIS, once.c.taken_at == 0, once.c.expires_at > bindparam("now"))

PUT = Statement(insert(once))
DROP_OTHERS = Statement(
    delete(once).where(once.c.kind == bindparam("of_kind"), once.c.subject == bindparam("of_subject"))
)
DROP = Statement(delete(once).where(*_THIS))
PEEK = Statement(select(once.c.subject, once.c.details).where(*_OPEN))
# The condition is part of the write: of two takers the second one finds no row left to change.
TAKE = Statement(
    update(once).where(*_OPEN).values(taken_at=bindparam("now")).returning(once.c.subject, once.c.details)
)


def put(
    kind: str,
    digest: bytes,
    *,
    subject: str,
    details: Mapping[str, object],
    now: int,
    expires_at: int,
    beside: Sequence[bytes] = (),
) -> Verb[None]:
    """Keep a thing that can be taken until it expires; older ones of the same subject are gone with it.

    `beside`: more of the same by other digests, in the same statement.
    """
    row: dict[str, object] = {"kind": kind, "subject": subject, "details": details}
    row |= {"created_at": now, "expires_at": expires_at, "taken_at": 0}
    yield DROP_OTHERS(of_kind=kind, of_subject=subject)
    yield PUT.many([{"digest": each, **row} for each in (digest, *beside)]) if beside else PUT(digest=digest, **row)


def is_open(kind: str, digest: bytes, now: int) -> Verb[bool]:
    return (yield from find(kind, digest, now)) is not None


def find(kind: str, digest: bytes, now: int) -> Verb[Row | None]:
    """What could be taken now; takes nothing."""
    rows = yield PEEK(of_kind=kind, of_digest=digest, now=now)
    return rows[0] if rows else None


def take(kind: str, digest: bytes, now: int) -> Verb[Row | None]:
    """Mark it taken and return it; None when it was taken, has expired or never was."""
    rows = yield TAKE(of_kind=kind, of_digest=digest, now=now)
    return rows[0] if rows else None
