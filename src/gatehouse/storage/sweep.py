"""Removes what has ended. Expiry never depends on it: every reader looks at the time itself.

Tables that grow are swept along an index, a few rows at a time, each time in a transaction of its own: nobody waits
long for it, and however much a pause has left behind, the work gets done.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from sqlalchemy import ColumnElement, Table, bindparam, delete, select, tuple_

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
from gatehouse.storage.runner import Runner
from gatehouse.storage.statements import Ask, Statement, Verb
from gatehouse.storage.tables.accounts import interactions, login_tokens, sessions
from gatehouse.storage.tables.gamesessions import game_sessions, game_watchers
from gatehouse.storage.tables.installation import attempts, once
from gatehouse.storage.tables.oauth import grants as granted

KEPT_AFTER_END: Final = 86_400  # seconds; a second use of something taken is told from an unknown thing
AT_ONCE: Final = 1_000  # rows


def some(table: Table, *conditions: ColumnElement[bool]) -> Statement:
    """Delete a few of the rows that meet them; those another node has in hand are left to it."""
    key = list(table.primary_key.columns)
    chosen = select(*key).where(*conditions).limit(AT_ONCE).with_for_update(skip_locked=True)
    named = key[0] if len(key) == 1 else tuple_(*key)
    return Statement(delete(table).where(named.in_(chosen)).returning(key[0]))


ONCE = some(once, once.c.expires_at <= bindparam("by"))
ATTEMPTS = some(attempts, attempts.c.blocked_until <= bindparam("now"), attempts.c.first_at <= bindparam("by"))
ENDED_SESSIONS = some(sessions, sessions.c.ends_at <= bindparam("by"))
IDLE_SESSIONS = some(sessions, sessions.c.idle_ends_at <= bindparam("by"))
TOKENS = some(login_tokens, login_tokens.c.ends_at <= bindparam("by"))
INTERACTIONS = some(interactions, interactions.c.ends_at <= bindparam("by"))
GAMES = some(game_sessions, game_sessions.c.ends_at <= bindparam("by"))
WATCHERS = some(game_watchers, game_watchers.c.seen_at <= bindparam("by"))
GRANTS = tuple(some(granted, *conditions) for conditions in grants.ENDED)


async def sweep(runner: Runner, now: int) -> None:
    for ask in ended(now):
        while await runner.act(partial(remove_some, ask)) == AT_ONCE:
            pass
    await runner.act(partial(sweep_small, now))


def ended(now: int) -> Iterator[Ask]:
    long_ago = now - KEPT_AFTER_END
    yield ONCE(by=long_ago)
    yield ATTEMPTS(now=now, by=long_ago)
    for statement in (ENDED_SESSIONS, IDLE_SESSIONS, TOKENS, INTERACTIONS, GAMES):
        yield statement(by=now)
    yield WATCHERS(by=now - gamesessions.SILENT)
    yield from (statement(by=long_ago) for statement in GRANTS)


def remove_some(ask: Ask) -> Verb[int]:
    return len((yield ask))


def sweep_small(now: int) -> Verb[None]:
    """Tables that never hold much."""
    yield from device_requests.sweep(now)
    yield from logout_calls.forget_before(now - mail.KEPT)
    yield from mail.forget_before(now - mail.KEPT)
    yield from personal_data.forget_ended(now)
    yield from tallies.forget_before(now - mail.KEPT)
    yield from webhooks.sweep(now)
