"""Deletes what has expired. Expiry never depends on it: every reader checks the time itself.

Large tables are swept along an index, a few rows per transaction: no other write waits long, and it catches up after
any pause.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from sqlalchemy import ColumnElement, Table, bindparam, delete, or_, select, tuple_

from gatehouse.accounts.bans.model import earliest_device_use
from gatehouse.storage import gamesessions, mail, nodes, personal_data, tallies, webhooks
from gatehouse.storage.accounts import bans, phones
from gatehouse.storage.oauth import clients, device_requests, grants, logout_calls
from gatehouse.storage.runner import Runner
from gatehouse.storage.statements import BoundStatement, Statement, Verb
from gatehouse.storage.tables.accounts import interactions, login_tokens, sessions, site_sessions, user_devices
from gatehouse.storage.tables.audit import idempotency_keys
from gatehouse.storage.tables.gamesessions import game_sessions, game_watchers
from gatehouse.storage.tables.installation import attempts, once
from gatehouse.storage.tables.invitations import access_invitations
from gatehouse.storage.tables.oauth import grants as granted
from gatehouse.storage.tables.oauth import pushed_requests

RETENTION_AFTER_END: Final = 86_400  # seconds; a second use is distinguished from an unknown secret
BATCH_ROWS: Final = 1_000  # rows


def batch_delete(table: Table, *conditions: ColumnElement[bool]) -> Statement:
    """Delete a few of the matching rows; rows that another node has locked are skipped."""
    key = list(table.primary_key.columns)
    chosen = select(*key).where(*conditions).limit(BATCH_ROWS).with_for_update(skip_locked=True)
    named = key[0] if len(key) == 1 else tuple_(*key)
    return Statement(lambda: delete(table).where(named.in_(chosen)).returning(key[0]))


ONCE = batch_delete(once, once.c.expires_at <= bindparam("by"))
ATTEMPTS = batch_delete(
    attempts, attempts.c.blocked_until <= bindparam("now"), attempts.c.first_at <= bindparam("by")
)
SESSIONS = batch_delete(
    sessions,
    sessions.c.sweep_at <= bindparam("by"),
    or_(sessions.c.idle_ends_at <= bindparam("by"), sessions.c.ends_at <= bindparam("by")),
)
SITE_SESSIONS = batch_delete(site_sessions, site_sessions.c.ends_at <= bindparam("by"))
TOKENS = batch_delete(login_tokens, login_tokens.c.ends_at <= bindparam("by"))
PUSHED_REQUESTS = batch_delete(pushed_requests, pushed_requests.c.ends_at <= bindparam("by"))
INTERACTIONS = batch_delete(interactions, interactions.c.ends_at <= bindparam("by"))
GAMES = batch_delete(game_sessions, game_sessions.c.ends_at <= bindparam("by"))
WATCHERS = batch_delete(game_watchers, game_watchers.c.seen_at <= bindparam("by"))
DEVICES = batch_delete(user_devices, user_devices.c.seen_at <= bindparam("by"))
INVITATIONS = batch_delete(access_invitations, access_invitations.c.expires_at <= bindparam("by"))
IDEMPOTENCY_KEYS = batch_delete(idempotency_keys, idempotency_keys.c.ends_at <= bindparam("by"))
GRANTS = tuple(batch_delete(granted, *conditions) for conditions in grants.SWEEP_CONDITIONS)


async def sweep_expired(runner: Runner, now: int) -> None:
    for statement in expired_deletes(now):
        while await runner.write(partial(delete_batch, statement)) == BATCH_ROWS:
            pass
    await runner.write(partial(sweep_small_tables, now))


def expired_deletes(now: int) -> Iterator[BoundStatement]:
    long_ago = now - RETENTION_AFTER_END
    yield ONCE(by=long_ago)
    yield ATTEMPTS(now=now, by=long_ago)
    for statement in (
        SESSIONS,
        SITE_SESSIONS,
        TOKENS,
        INTERACTIONS,
        PUSHED_REQUESTS,
        GAMES,
        INVITATIONS,
        IDEMPOTENCY_KEYS,
    ):
        yield statement(by=now)
    yield DEVICES(by=earliest_device_use(now))
    yield WATCHERS(by=now - gamesessions.WATCHER_TIMEOUT)
    for statement, parameters in zip(GRANTS, grants.sweep_parameters(long_ago), strict=True):
        yield statement(**parameters)


def delete_batch(statement: BoundStatement) -> Verb[int]:
    return len((yield statement))


def sweep_small_tables(now: int) -> Verb[None]:
    """Sweep the tables that are always small."""
    yield from clients.delete_unused_clients(now - RETENTION_AFTER_END)
    yield from device_requests.sweep_device_requests(now)
    yield from logout_calls.delete_calls_before(now - mail.RETENTION_SECONDS)
    yield from mail.delete_mails_before(now - mail.RETENTION_SECONDS)
    yield from personal_data.delete_ended_requests(now)
    yield from bans.drop_ended_digests(now)
    yield from phones.delete_phone_events(now)
    yield from tallies.delete_counts_before(now - tallies.COUNTS_RETENTION_SECONDS)
    yield from webhooks.sweep_webhooks(now)
    yield from nodes.delete_dead_nodes()
