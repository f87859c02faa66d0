"""A new master key replaces the old one during writes: interrupted, repeated, never undoing a change (R-24)."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import delete

from gatehouse.app import rewrapping
from gatehouse.app.rewrapping import SEALED_COLUMNS, count_under_old_keys, rewrap_all, rewrap_column, rewrap_row
from gatehouse.app.services import Services, open_services
from gatehouse.kernel.clock import SystemClock
from gatehouse.keys.sealing import sealing_key_id
from gatehouse.oauth.model import SecretKind
from gatehouse.permissions.commands.access_keys import new_access_key
from gatehouse.permissions.model.access_key import access_key_purpose
from gatehouse.permissions.model.application import PRIVATE_KEY_PURPOSE
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.audit import audit_events
from tests.support.builders import ORIGIN, a_client, a_record, a_user
from tests.support.command_line import InstallationPaths
from tests.support.permission_builders import create_application

MASTER = "GATEHOUSE__SECURITY__MASTER_KEY"
PREVIOUS = "GATEHOUSE__SECURITY__PREVIOUS_MASTER_KEYS"
OLD = "hJ3oGkP0rVtYw1mXq9Zc5sEdN7uBfLaI2xRkT8vQ4yM"
NEW = "9b1fe07c43d5aa2867f09e3c11d84b6e5a70cf2294be638d0d7715e8fa92c35b"
[CLIENT_SECRETS] = [place for place in SEALED_COLUMNS if place.name == "client_secrets"]


class Interrupted(Exception):
    pass


@pytest.fixture
def url(migrated_url: str) -> str:
    return migrated_url


@asynccontextmanager
async def open_with_keys(url: str, data: Path, *keys: str) -> AsyncIterator[Services]:
    settings = {MASTER: keys[0], PREVIOUS: ",".join(keys[1:])}
    paths = InstallationPaths(
        data=data, url=url, environment={name: value for name, value in settings.items() if value}
    )
    async with open_services(paths.load_settings(), clock=SystemClock(), serving=False) as services:
        yield services


@pytest.fixture
async def services(url: str, tmp_path: Path) -> AsyncIterator[Services]:
    """Three clients and a TOTP secret sealed under the old key; opened with the new key and the old one."""
    async with open_with_keys(url, tmp_path, OLD) as before:
        for client_id in ("a", "b", "c"):
            await before.oauth.clients.commands.create(a_client(client_id), ORIGIN)
        user = a_user()
        sealed = before.core.masters.seal(b"secret", purpose=f"totp:{user.user_id}")
        await before.storage.accounts.create_user(a_user(user_id=user.user_id, sealed_totp=sealed), a_record())
    async with open_with_keys(url, tmp_path, NEW, OLD) as after:
        yield after


async def key_ids(services: Services) -> dict[str, str]:
    return {
        client.client_id: sealing_key_id(client.secrets[0].secret)
        for client in await services.oauth.clients.commands.list()
    }


async def test_everything_moves_once(services: Services) -> None:
    kinds = {"signing_keys": 5, "client_secrets": 3, "totp_factors": 1, "installation": 2}
    assert await count_under_old_keys(services.storage, services.core.masters) == kinds
    progress: list[int] = []
    outcome = await rewrap_all(services, ORIGIN, progress.append)
    assert (outcome.moved, outcome.left) == (kinds, {})
    assert sum(progress) == 11
    assert set((await key_ids(services)).values()) == {services.core.masters.primary_id}
    again = await rewrap_all(services, ORIGIN)
    assert (again.moved, again.left) == ({}, {})


async def test_rewrapping_resumes_where_it_stopped(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrapping, "BATCH", 1)

    def stop(_moved: int) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        await rewrap_column(services, CLIENT_SECRETS, ORIGIN, stop)
    assert sorted((await key_ids(services)).values()).count(services.core.masters.primary_id) == 1
    assert (await count_under_old_keys(services.storage, services.core.masters))["client_secrets"] == 2
    outcome = await rewrap_all(services, ORIGIN)
    assert (outcome.moved["client_secrets"], outcome.left) == (2, {})


def every_secret() -> Verb[Sequence[Row]]:
    """Read from the database itself: clients are cached by version, which resealing does not change."""
    return (yield from CLIENT_SECRETS.read_page(b"none begins like this", None, 100))


async def test_a_secret_replaced_meanwhile_stays(services: Services) -> None:
    primary = rewrapping.primary_key_prefix(services.core.masters)
    rows = await services.storage.runner.snapshot_read(partial(CLIENT_SECRETS.read_page, primary, None, 10))
    moved = [
        moved_row for row in rows if (moved_row := rewrap_row(CLIENT_SECRETS, row, services.core.masters)) is not None
    ]
    fresh = (await services.oauth.clients.commands.list())[0]
    await services.storage.clients.rotate_secret(
        fresh.client_id, services.oauth.clients.commands.stored_secret(fresh, "first"), a_record(), old_ends_at=1
    )
    await services.storage.clients.rotate_secret(
        fresh.client_id, services.oauth.clients.commands.stored_secret(fresh, "second"), a_record(), old_ends_at=1
    )
    before = (await services.storage.clients.client(fresh.client_id)).secrets
    assert {secret.kind for secret in before} == {SecretKind.SEALED}
    await services.storage.runner.write(partial(CLIENT_SECRETS.save_rewrapped, moved, a_record()))
    secrets = {
        (row.client_id, row.slot): row.secret for row in await services.storage.runner.snapshot_read(every_secret)
    }
    assert {secret.slot: secret.secret for secret in before} == {
        slot: held for (client_id, slot), held in secrets.items() if client_id == fresh.client_id
    }


async def test_a_damaged_secret_is_left_counted_and_holds_up_no_other(services: Services) -> None:
    stored = services.oauth.clients.commands.stored_secret(a_client("d"), "text")
    broken = replace(stored, secret=stored.secret[:1] + bytes(8) + stored.secret[9:])
    await services.storage.clients.create_client(replace(a_client("d"), secrets=(broken,)), a_record())
    outcome = await rewrap_all(services, ORIGIN)
    assert outcome.left == {"client_secrets": 1}
    assert outcome.moved["client_secrets"] == 3


async def test_a_former_key_taken_away_too_early_is_noticed_at_the_start(url: str, tmp_path: Path) -> None:
    async with open_with_keys(url, tmp_path, OLD) as services:
        await services.oauth.clients.commands.create(a_client("a"), ORIGIN)
    async with open_with_keys(url, tmp_path, NEW, OLD) as services:
        await rewrap_column(services, CLIENT_SECRETS, ORIGIN, lambda _: None)
    with pytest.raises(rewrapping.WrongMasterKey):
        async with open_with_keys(url, tmp_path, NEW):
            pytest.fail("not all secrets were resealed")


async def test_access_keys_and_private_keys_of_applications_open_under_the_new_key(url: str, tmp_path: Path) -> None:
    async with open_with_keys(url, tmp_path, OLD) as before:
        sealed = before.core.masters.seal(b"private", purpose=PRIVATE_KEY_PURPOSE)
        shop = await create_application(before.storage, sealed_private_key=sealed)
        new = new_access_key(shop.application_id, "ci", masters=before.core.masters, now=before.clock.now())
        await before.storage.application_keys.add_access_key(new.key, [a_record()])
    async with open_with_keys(url, tmp_path, NEW, OLD) as between:
        outcome = await rewrap_all(between, ORIGIN)
        assert (outcome.moved["access_keys"], outcome.moved["applications"], outcome.left) == (1, 1, {})
    async with open_with_keys(url, tmp_path, NEW) as after:
        [key] = await after.storage.application_keys.access_keys(shop.application_id)
        assert after.core.masters.open(key.sealed, purpose=access_key_purpose(key.key_id)).decode() == new.value
        sealed_private_key = (await after.storage.applications.application(shop.application_id)).sealed_private_key
        assert sealed_private_key is not None
        assert after.core.masters.open(sealed_private_key, purpose=PRIVATE_KEY_PURPOSE) == b"private"


async def test_the_head_of_the_audit_log_moves_with_the_master_key(
    services: Services, url: str, tmp_path: Path
) -> None:
    await forget_records_of_builders(services)
    await rewrap_all(services, ORIGIN)
    await services.audit.sealer.seal_all()
    head = (await services.audit.make_verifier().verify()).head
    async with open_with_keys(url, tmp_path, NEW) as after:
        verdict = await after.audit.make_verifier().verify(after.audit.head_exporter.parse_all(head))
    assert verdict.problems == ()
    assert verdict.records > 0


async def forget_records_of_builders(services: Services) -> None:
    """Delete the records that builders made with a different key."""

    def forget() -> Verb[None]:
        yield Statement(lambda: delete(audit_events))()

    await services.storage.runner.write(forget)
