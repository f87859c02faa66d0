"""Requests with an Idempotency-Key: each is carried out once, and its answer is kept for a day."""

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.permissions.model.idempotency import CallerKey, EarlierRequest
from gatehouse.storage.runner import SqlStore, write
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.audit import idempotency_keys

_THIS_KEY = (
    idempotency_keys.c.user_id == bindparam("of"),
    idempotency_keys.c.through == bindparam("by"),
    idempotency_keys.c.key_digest == bindparam("digest"),
)
DROP_EXPIRED_KEY = Statement(
    lambda: delete(idempotency_keys).where(*_THIS_KEY, idempotency_keys.c.ends_at <= bindparam("now"))
)
# Of two requests at once the second one finds the row of the first.
CLAIM_KEY = Statement(
    lambda: insert(idempotency_keys).on_conflict_do_nothing().returning(idempotency_keys.c.key_digest)
)
FIND_KEY = Statement(
    lambda: select(idempotency_keys.c.request_digest, idempotency_keys.c.sealed_answer).where(*_THIS_KEY)
)
KEEP_ANSWER = Statement(lambda: update(idempotency_keys).where(*_THIS_KEY).values(sealed_answer=bindparam("answer")))
RELEASE_KEY = Statement(
    lambda: delete(idempotency_keys).where(*_THIS_KEY, idempotency_keys.c.sealed_answer.is_(None))
)


def _key_parameters(key: CallerKey) -> dict[str, object]:
    return {"of": key.user_id, "by": key.through, "digest": key.digest}


def claim_key(key: CallerKey, request_digest: bytes, now: int, ends_at: int) -> Verb[EarlierRequest | None]:
    """Claim the key for this request; return the earlier request that has it already."""
    yield DROP_EXPIRED_KEY(**_key_parameters(key), now=now)
    claimed = yield CLAIM_KEY(
        user_id=key.user_id,
        through=key.through,
        key_digest=key.digest,
        request_digest=request_digest,
        sealed_answer=None,
        ends_at=ends_at,
    )
    if claimed:
        return None
    (row,) = yield FIND_KEY(**_key_parameters(key))
    return EarlierRequest(request_digest=row.request_digest, sealed_answer=row.sealed_answer)


def keep_answer(key: CallerKey, sealed_answer: bytes) -> Verb[None]:
    yield KEEP_ANSWER(**_key_parameters(key), answer=sealed_answer)


def release_key(key: CallerKey) -> Verb[None]:
    """Make the key usable again: its request was refused, and nothing was done."""
    yield RELEASE_KEY(**_key_parameters(key))


class IdempotencyStorage(SqlStore):
    claim_key = write(claim_key)
    keep_answer = write(keep_answer)
    release_key = write(release_key)
