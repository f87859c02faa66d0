"""A backup is read from one snapshot, and restored completely or not at all."""

import base64
from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

import pytest

from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.errors import Conflict
from gatehouse.storage.archive import ArchiveEnd, ArchiveRows, BackupDamaged
from gatehouse.storage.backup import (
    CHUNK_ROWS,
    EPHEMERAL_TABLES,
    TABLES,
    DatabaseNotEmpty,
    RestoreFence,
    dump_rows,
    restore_rows,
)
from gatehouse.storage.database import Storage
from tests.support.builders import NOW, ORIGIN, RECORDER, a_client, a_record, a_setup_link, a_user
from tests.support.permission_builders import install_central, model_version, publish

# Add a new table here after deciding whether anything in it could end between backup and restore. If so, it needs a
# fence (storage/backup.py).
RESTORED_AS_IT_WAS = frozenset(
    {
        *("application_schemas", "applications", "attempts", "audit_events", "audit_refusals", "audit_seals"),
        *(
            "client_secrets",
            "email_secrets",
            "identities",
            "passkeys",
            "phone_events",
            "role_assignments",
            "roles",
            "signing_keys",
        ),
        *("totp_factors", "user_ids", "user_purchases", "user_records", "user_tags"),
        *("ban_digests", "bans", "images", "retired_device_keys", "user_aliases", "user_devices", "usernames"),
        *("application_ids", "group_members", "groups", "project_names", "project_services", "projects"),
        "grant_keys",
        *("object_holders", "objects"),
        *("access_invitations", "imported_people", "saved_views"),  # the inviter's right is checked again
        "last_seen",
        *("accepted_terms", "protected_sites", "stored_settings"),
        "schema_versions",
        *("scope_records", "access_keys", "application_keys"),  # stored secrets, like those of clients
        *("webhooks", "webhook_deliveries"),  # sent again: receivers drop duplicates by id
        *("gdpr_calls", "gdpr_requests"),  # called again: removing twice is harmless for applications
        # What was issued to them, or is one, ends by the installation's epoch (storage/epoch.py).
        *(
            "access_invitations",
            "client_origins",
            "clients",
            "installation_epoch",
            "once",
            "service_accounts",
            "service_tokens",
            "users",
        ),
    }
)
FENCED = frozenset({"installation", "projects", "recovery_codes"})

CLOSING = ArchiveEnd(counts={}, sha256="", mac="")
Held = dict[str, list[tuple[Any, ...]]]


async def contents(storage: Storage) -> Held:
    contents_by_table: Held = {}

    def put(table: str, rows: Sequence[Any]) -> None:
        assert len(rows) <= CHUNK_ROWS
        contents_by_table.setdefault(table, []).extend(map(tuple, rows))

    await storage.runner.snapshot_read(partial(dump_rows, put))
    return contents_by_table


def chunks(contents_by_table: Held) -> Generator[ArchiveRows, None, ArchiveEnd]:
    for table, rows in contents_by_table.items():
        yield ArchiveRows(table=table, rows=tuple(tuple(map(json_value, row)) for row in rows))
    return CLOSING


def json_value(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


async def restore(storage: Storage, contents_by_table: Held, *, replace: bool = False, now: int = NOW) -> ArchiveEnd:
    entry = a_record(AuditEvent.RESTORED, subject="installation")
    return await storage.runner.write(
        partial(restore_rows, partial(chunks, contents_by_table), RestoreFence(now=now), entry, replace=replace)
    )


def column(contents_by_table: Held, table: str, name: str) -> list[Any]:
    index = TABLES[table].columns.index(name)
    return [row[index] for row in contents_by_table.get(table, [])]


def test_every_table_has_a_restore_policy() -> None:
    assert TABLES.keys() == RESTORED_AS_IT_WAS | FENCED | EPHEMERAL_TABLES


async def test_every_row_is_read_exactly_once_over_many_chunks(storage: Storage) -> None:
    tags = frozenset(f"tag-{number:04}" for number in range(2 * CHUNK_ROWS + 1))
    users = [a_user(tags=tags), a_user(tags=frozenset({"ä", "tag-0000"}), sealed_totp=b"\x00\xff", meta={"a": "ü"})]
    for user in users:
        await storage.accounts.create_user(user, a_record())
    contents_by_table = await contents(storage)
    assert len(column(contents_by_table, "user_tags", "tag")) == 2 * CHUNK_ROWS + 3
    assert set(column(contents_by_table, "user_tags", "tag")) == tags | {"ä"}
    assert set(column(contents_by_table, "users", "user_id")) == {user.user_id for user in users}


async def test_restore_brings_back_the_rows_of_the_backup(storage: Storage) -> None:
    user = a_user(tags=frozenset({"x"}), sealed_totp=b"\x00\xff", meta={"a": 'ü "quoted"'}, email_verified=True)
    await storage.accounts.create_user(user, a_record(login="anna@studio.example"))
    await storage.clients.create_client(a_client(), a_record())
    before = await contents(storage)
    await storage.accounts.create_user(a_user(), a_record())
    assert await restore(storage, before, replace=True) == CLOSING
    after = await contents(storage)
    for table in before.keys() - {"audit_events", "installation"}:
        assert after[table] == before[table], table
    assert set(before["audit_events"]) < set(after["audit_events"])
    restored = await storage.accounts.user(user.user_id)
    assert (restored.meta, restored.tags, restored.sealed_totp) == (user.meta, user.tags, user.sealed_totp)
    assert (await storage.clients.client("web")).secrets == a_client().secrets


async def test_a_database_that_holds_anything_is_left_alone_unless_told(storage: Storage) -> None:
    await storage.installation.set_value("base_url", "https://login.studio.example")
    before = await contents(storage)
    with pytest.raises(DatabaseNotEmpty, match="installation"):
        await restore(storage, {"user_ids": [("1",)]})
    assert await contents(storage) == before


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ({"user_ids": [("1",), ("1",)]}, Conflict),
        ({"user_ids": [("1",)], "role_assignments": [(1, "1", "", "", "", "none", None, 0, 0)]}, Conflict),
        ({"user_ids": [("1",)], "roles": [(9, "r", "r", "", False, False, None, "", 0, "", "{}", 1, 0)]}, Conflict),
    ],
)
async def test_rows_that_cannot_be_leave_everything_as_it_was(
    storage: Storage, rows: Held, error: type[Exception]
) -> None:
    await storage.accounts.create_user(a_user(), a_record())
    before = await contents(storage)
    with pytest.raises(error):
        await restore(storage, rows, replace=True)
    assert await contents(storage) == before


async def test_a_file_that_turns_out_damaged_at_its_end_leaves_everything_as_it_was(storage: Storage) -> None:
    await storage.accounts.create_user(a_user(), a_record())
    before = await contents(storage)

    def damaged_rows() -> Generator[ArchiveRows, None, ArchiveEnd]:
        yield ArchiveRows(table="user_ids", rows=(("1",),))
        raise BackupDamaged("at the end")

    verb = partial(restore_rows, damaged_rows, RestoreFence(now=NOW), a_record(AuditEvent.RESTORED), replace=True)
    with pytest.raises(BackupDamaged):
        await storage.runner.write(verb)
    assert await contents(storage) == before


async def test_every_revocation_epoch_after_a_restore_is_above_any_issued_one(storage: Storage) -> None:
    """R3: a token issued after the backup has a rev from before the restore, even when clocks ran ahead."""
    old, recent, ahead = a_user(rev=0), a_user(rev=(NOW - 5) * 1_000), a_user(rev=(NOW + 7_200) * 1_000)
    for user in (old, recent, ahead):
        await storage.accounts.create_user(user, a_record())
    before = await contents(storage)
    blocked = [
        await storage.accounts.set_blocked(user.user_id, a_record(), blocked=True, now=NOW + 30)
        for user in (old, recent, ahead)
    ]
    await restore(storage, before, replace=True, now=NOW + 1)
    for user in blocked:
        assert (await storage.accounts.user(user.user_id)).rev > user.rev


async def test_restore_spends_one_time_codes_and_drops_ephemeral_rows(storage: Storage) -> None:
    await storage.accounts.put_setup_link(a_setup_link(b"link"), a_record())
    before = await contents(storage)
    before["recovery_codes"] = [("1000000001", b"unused", 0), ("1000000001", b"used", NOW - 9)]
    before["login_tokens"] = [(b"token", *(1 for _ in TABLES["login_tokens"].columns[1:]))]
    await restore(storage, before, replace=True)
    after = await contents(storage)
    assert sorted(column(after, "recovery_codes", "used_at")) == [NOW - 9, NOW]
    assert not await storage.accounts.setup_link_is_open(b"link", NOW)
    assert not after.keys() & EPHEMERAL_TABLES


async def test_the_record_of_the_cut_commits_with_it_and_numbers_go_on(storage: Storage) -> None:
    refusals = [(number, f"r{number}", NOW, "e", "why", "s", "", "{}", "{}") for number in (3, 7)]
    await restore(storage, {"audit_refusals": refusals})
    assert [record.event for record in await storage.audit.unsealed_records(9)] == ["installation.restored"]
    refusal = RECORDER.refusal("game.poll", ORIGIN, reason="no", subject="s")
    await storage.audit.add_refusal(refusal, max_refusals=100)
    assert column(await contents(storage), "audit_refusals", "position") == [3, 7, 8]


async def test_no_version_of_a_project_is_reused_after_a_restore(storage: Storage) -> None:
    await install_central(storage)
    await publish(storage)
    before, names = await contents(storage), TABLES["projects"].columns
    (row,) = before["projects"]
    for stored, restored in ((7, NOW * 1_000), (NOW * 1_000 + 5, NOW * 1_000 + 5)):
        changed = dict(zip(names, row, strict=True)) | {"model_version": stored}
        await restore(storage, before | {"projects": [tuple(changed.values())]}, replace=True)
        assert await model_version(storage) == restored


async def test_a_timeline_is_left_to_the_database_it_belongs_to(storage: Storage) -> None:
    await restore(storage, {"installation": [("timeline", "7"), ("base_url", "https://login.studio.example")]})
    assert await storage.installation.value("timeline") is None
    assert await storage.installation.value("base_url") == "https://login.studio.example"
