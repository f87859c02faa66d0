"""Removes what has expired. Expiry never depends on it: every reader looks at the time itself."""

from typing import Final

from sqlalchemy import and_, bindparam, delete, or_

from gatehouse.storage import (
    device_requests,
    gamesessions,
    grants,
    logout_calls,
    mail,
    personal_data,
    tallies,
    webhooks,
)
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import interactions, login_tokens, sessions
from gatehouse.storage.tables.installation import attempts, once

KEPT_AFTER_END: Final = 86_400  # seconds; a second use of something taken is told from an unknown thing

SWEEP_ONCE = Statement(delete(once).where(once.c.expires_at <= bindparam("ended_by")))
SWEEP_ATTEMPTS = Statement(
    delete(attempts).where(
        and_(attempts.c.blocked_until <= bindparam("now"), attempts.c.first_at <= bindparam("ended_by"))
    )
)
SWEEP_SESSIONS = Statement(
    delete(sessions).where(or_(sessions.c.ends_at <= bindparam("now"), sessions.c.idle_ends_at <= bindparam("now")))
)
SWEEP_TOKENS = Statement(delete(login_tokens).where(login_tokens.c.ends_at <= bindparam("now")))
SWEEP_INTERACTIONS = Statement(delete(interactions).where(interactions.c.ends_at <= bindparam("now")))


def sweep(now: int) -> Verb[None]:
    yield SWEEP_ONCE(ended_by=now - KEPT_AFTER_END)
    yield SWEEP_ATTEMPTS(now=now, ended_by=now - KEPT_AFTER_END)
    yield SWEEP_SESSIONS(now=now)
    yield SWEEP_TOKENS(now=now)
    yield SWEEP_INTERACTIONS(now=now)
    yield from grants.sweep(now - KEPT_AFTER_END)
    yield from device_requests.sweep(now)
    yield from gamesessions.sweep(now)
    yield from logout_calls.forget_before(now - mail.KEPT)
    yield from mail.forget_before(now - mail.KEPT)
    yield from personal_data.forget_ended(now)
    yield from tallies.forget_before(now - mail.KEPT)
    yield from webhooks.sweep(now)
