"""Contract tests of provision/model.py, and of applying a file atomically, on both databases."""

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import asyncpg
import pytest
from msgspec.structs import replace
from sqlalchemy import bindparam, select, update

from gatehouse.accounts.errors import LoginTaken, UserChanged, UserIdTaken, UserNotFound
from gatehouse.oauth.errors import ClientChanged, ClientNotFound
from gatehouse.permissions.errors import NoAdministratorLeft, VersionConflict
from gatehouse.permissions.model import central
from gatehouse.permissions.model.facts import UserRecord
from gatehouse.provision.model import (
    AddClient,
    AddGroup,
    AddProject,
    AddUser,
    ChangeClient,
    ChangeGroup,
    ChangeProject,
    ChangeRecords,
    ChangeUser,
    Plan,
    ReadScope,
    RemoveUser,
    StoredState,
    Unfit,
)
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.provision import ALLOW_PLANNING, ProvisionStorage
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import totp_factors
from gatehouse.storage.tables.permissions import role_assignments
from tests.support.builders import NOW, a_client, a_client_secret, a_record, a_user
from tests.support.permission_builders import a_group, a_project
from tests.unit.provision.provision_setup import ProvisionSetup, plan_lines, write_all

ANNA = {
    "user_id": "1001",
    "login": "anna@studio.example",
    "nick": "Anna",
    "password": "correct-horse-battery",
    "totp_secret": "JBSWY3DPEHPK3PXP",
    "tags": ["staff"],
    "administrator": True,
}
BOB = {"user_id": "1002", "login": "bob@studio.example", "nick": "Bob", "purchases": ["sky-raiders"]}
WEB = {"client_id": "web", "name": "Web", "redirect_hosts": ["localhost"]}
SHOP = {"client_id": "shop", "name": "Shop", "profile": "oidc", "redirect_uris": ["https://shop.example/cb"]}


@pytest.fixture
async def provisions(storage: Storage) -> ProvisionStorage:
    return await with_application_1(storage)


async def with_application_1(storage: Storage) -> ProvisionStorage:
    await storage.permissions.install_central(central.application(NOW), central.schema(NOW), central.roles())
    return ProvisionStorage(storage.runner, storage.ban_copies)


@pytest.fixture
async def second(sqlite_template: Path, tmp_path: Path) -> AsyncIterator[ProvisionSetup]:
    """A second installation, empty, with the same master key, on either kind of database."""
    copy = tmp_path / "second.db"
    shutil.copy(sqlite_template, copy)
    async with open_storage(f"sqlite:///{copy}", migrate=False) as storage:
        yield ProvisionSetup(ProvisionStorage(storage.runner, storage.ban_copies))


async def read_stored_state(provisions: ProvisionStorage) -> StoredState:
    return await provisions.read_state(ReadScope(all_users=True), NOW)


async def events(storage: Storage) -> Counter[str]:
    return Counter(record.event for record in await storage.audit.unsealed_records(100))


async def test_the_state_is_what_was_carried_out(provisions: ProvisionStorage) -> None:
    user = a_user(tags=frozenset({"staff"}), sealed_totp=b"sealed")
    await write_all(provisions, AddUser(user, administrator=True), AddClient(a_client()))
    assert await read_stored_state(provisions) == StoredState(
        users=(user,), administrators=frozenset({user.user_id}), clients=(a_client(),)
    )


async def test_only_accounts_in_scope_and_administrators_are_read(
    provisions: ProvisionStorage,
) -> None:
    boss, by_id, by_login, other = (a_user() for _ in range(4))
    await write_all(
        provisions,
        AddUser(boss, administrator=True),
        *(AddUser(one, administrator=False) for one in (by_id, by_login, other)),
    )
    scope = ReadScope(
        user_ids=frozenset({by_id.user_id, "5"}), login_keys=frozenset({by_login.login_key or "", "x@y"})
    )
    state = await provisions.read_state(scope, NOW)
    assert {user.user_id for user in state.users} == {boss.user_id, by_id.user_id, by_login.user_id}
    assert state.retired_user_ids == frozenset()


async def test_everything_is_carried_out_or_nothing(provisions: ProvisionStorage, storage: Storage) -> None:
    person = a_user(login="kept@studio.example")
    await write_all(provisions, AddUser(person, administrator=False))
    before = await read_stored_state(provisions)
    with pytest.raises(LoginTaken):
        await write_all(
            provisions,
            ChangeUser(replace(person, nick="New", tags=frozenset({"x"})), administrator=True, ends_tokens=True),
            AddClient(a_client()),
            AddUser(a_user(), administrator=False),
            AddUser(a_user(login="KEPT@studio.example"), administrator=False),
            records=[a_record()],
        )
    assert await read_stored_state(provisions) == before
    assert await storage.audit.unsealed_records(10) == []


async def test_a_record_that_was_changed_meanwhile_stops_everything(provisions: ProvisionStorage) -> None:
    user, client = a_user(), a_client()
    await write_all(provisions, AddUser(user, administrator=False), AddClient(client))
    await write_all(
        provisions,
        ChangeUser(replace(user, nick="First"), administrator=None, ends_tokens=False),
        ChangeClient(replace(client, name="First")),
    )
    for stale, error in (
        (ChangeUser(replace(user, nick="Second"), administrator=None, ends_tokens=False), UserChanged),
        (RemoveUser(user), UserChanged),
        (ChangeClient(replace(client, name="Second")), ClientChanged),
    ):
        with pytest.raises(error):
            await write_all(provisions, stale)
    state = await read_stored_state(provisions)
    assert [user.nick for user in state.users] == ["First"]
    assert [client.name for client in state.clients] == ["First"]


async def test_record_that_was_changed_meanwhile_stops_everything(provisions: ProvisionStorage) -> None:
    """Whatever it is about: each change names the record that it replaces."""
    user, group, project = a_user(), a_group(), a_project()
    await write_all(provisions, AddUser(user, administrator=False), AddProject(project), AddGroup(group))
    before = UserRecord(application_id=1, user_id=user.user_id)
    login = replace(before, login={"first": 1})
    await write_all(
        provisions,
        ChangeProject(project, replace(project, description="First")),
        ChangeGroup(group, replace(group, description="First")),
        ChangeRecords((before,), (login,)),
    )
    for stale in (
        ChangeProject(project, replace(project, description="Second")),
        ChangeGroup(group, replace(group, description="Second")),
        ChangeRecords((before,), (replace(before, login={"second": 2}),)),
    ):
        with pytest.raises(VersionConflict):
            await write_all(provisions, stale)


async def test_a_secret_that_is_rotated_meanwhile_is_not_lost(provisions: ProvisionStorage, storage: Storage) -> None:
    client = a_client()
    await write_all(provisions, AddClient(client))
    await storage.clients.rotate_secret("web", a_client_secret(secret=b"2"), a_record(), old_ends_at=NOW + 60)
    with pytest.raises(ClientChanged):
        await write_all(provisions, ChangeClient(replace(client, name="New")))
    assert len((await storage.clients.client("web")).secrets) == 2


async def test_a_removed_account_is_gone_with_all_it_had_and_its_id_stays_spent(
    provisions: ProvisionStorage, storage: Storage
) -> None:
    boss = a_user()
    person = a_user(tags=frozenset({"a"}), purchases=frozenset({"b"}), sealed_totp=b"x")
    await write_all(provisions, AddUser(boss, administrator=True), AddUser(person, administrator=True))
    await write_all(provisions, RemoveUser(person))
    with pytest.raises(UserNotFound):
        await storage.accounts.user(person.user_id)
    assert await storage.permissions.root_roles(1, person.user_id, NOW) == []
    scope = ReadScope(user_ids=frozenset({person.user_id, boss.user_id}))
    assert (await provisions.read_state(scope, NOW)).retired_user_ids == {person.user_id}
    with pytest.raises(UserIdTaken):
        await write_all(provisions, AddUser(person, administrator=False))
    await write_all(
        provisions, AddUser(replace(person, user_id="77"), administrator=False)
    )  # nothing is left to conflict with


async def test_a_removed_client_is_gone_and_its_id_stays_spent(
    provisions: ProvisionStorage, storage: Storage
) -> None:
    await write_all(provisions, AddClient(a_client()))
    await write_all(provisions, ChangeClient(a_client(removed=True)))
    with pytest.raises(ClientNotFound):
        await storage.clients.client("web")
    state = await read_stored_state(provisions)
    assert (state.clients, state.removed_client_ids) == ((), {"web"})


@pytest.mark.parametrize(
    "act",
    [
        RemoveUser,
        lambda user: ChangeUser(user, administrator=False, ends_tokens=False),
        lambda user: ChangeUser(replace(user, blocked=True), administrator=None, ends_tokens=True),
    ],
)
async def test_the_last_administrator_who_can_sign_in_is_never_lost(provisions: ProvisionStorage, act) -> None:  # noqa: ANN001
    last = a_user()
    await write_all(provisions, AddUser(last, administrator=True), AddUser(a_user(blocked=True), administrator=True))
    with pytest.raises(NoAdministratorLeft):
        await write_all(provisions, act(last))
    assert last.user_id in (await read_stored_state(provisions)).administrators
    heir = a_user()
    await write_all(provisions, act(last), AddUser(heir, administrator=True))
    assert heir.user_id in (await read_stored_state(provisions)).administrators


async def test_last_of_many_concurrent_administrator_removals_is_refused(
    provisions: ProvisionStorage,
) -> None:
    everyone = [a_user() for _ in range(6)]
    await write_all(provisions, *(AddUser(user, administrator=True) for user in everyone))
    await asyncio.gather(
        *(read_stored_state(provisions) for _ in everyone)
    )  # a connection for each: they start together
    answers = await asyncio.gather(
        *(write_all(provisions, RemoveUser(user)) for user in everyone), return_exceptions=True
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["NoAdministratorLeft", *["NoneType"] * 5]


async def test_administrator_removal_waits_for_a_concurrent_one(migrated_postgres_url: str) -> None:
    """On PostgreSQL; SQLite has one writer at a time."""
    both = [a_user(), a_user()]
    async with open_storage(migrated_postgres_url, migrate=False) as storage:
        provisions = await with_application_1(storage)
        await write_all(provisions, *(AddUser(user, administrator=True) for user in both))
        other = await asyncpg.connect(migrated_postgres_url)
        async with other.transaction():
            await other.execute("SELECT 1 FROM roles WHERE application_id = 1 AND name = 'administrator' FOR UPDATE")
            removing = asyncio.create_task(write_all(provisions, RemoveUser(both[0])))
            while not await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                assert not removing.done()
            await other.execute("DELETE FROM role_assignments WHERE user_id = $1", both[1].user_id)
        await other.close()
        with pytest.raises(NoAdministratorLeft):
            await removing


async def test_the_role_is_given_again_after_it_has_expired(provisions: ProvisionStorage, storage: Storage) -> None:
    user = a_user()
    await write_all(provisions, AddUser(user, administrator=True))
    await storage.runner.write(partial(expire_roles, NOW - 1))
    assert (await read_stored_state(provisions)).administrators == frozenset()
    await write_all(provisions, ChangeUser(user, administrator=True, ends_tokens=False))
    assert (await read_stored_state(provisions)).administrators == {user.user_id}


EXPIRE = Statement(
    lambda: update(role_assignments).values(expired=bindparam("at")).returning(role_assignments.c.user_id)
)


def expire_roles(at: int) -> Verb[None]:
    yield EXPIRE(at=at)


async def test_tokens_end_only_when_the_change_ends_them(provisions: ProvisionStorage, storage: Storage) -> None:
    user = a_user()
    await write_all(provisions, AddUser(user, administrator=False))
    await write_all(provisions, ChangeUser(replace(user, nick="New"), administrator=None, ends_tokens=False))
    account = await storage.accounts.user(user.user_id)
    assert account.rev == 0
    await write_all(provisions, ChangeUser(replace(account, blocked=True), administrator=None, ends_tokens=True))
    blocked = await storage.accounts.user(user.user_id)
    assert blocked.blocked
    assert blocked.rev >= NOW * 1_000


async def test_an_unchanged_totp_secret_keeps_count_of_the_codes_it_has_seen(
    provisions: ProvisionStorage, storage: Storage
) -> None:
    user = a_user(sealed_totp=b"first")
    await write_all(provisions, AddUser(user, administrator=False))
    await storage.runner.write(partial(see_step, 55))
    await write_all(provisions, ChangeUser(replace(user, nick="New"), administrator=None, ends_tokens=False))
    assert await storage.runner.read(last_step) == 55
    await write_all(
        provisions, ChangeUser(replace(user, sealed_totp=b"second", version=2), administrator=None, ends_tokens=True)
    )
    assert await storage.runner.read(last_step) == 0
    assert (await storage.accounts.user(user.user_id)).sealed_totp == b"second"


SEE = Statement(lambda: update(totp_factors).values(last_step=bindparam("step")).returning(totp_factors.c.user_id))
LAST_STEP = Statement(lambda: select(totp_factors.c.last_step))


def see_step(step: int) -> Verb[None]:
    yield SEE(step=step)


def last_step() -> Verb[int]:
    rows = yield LAST_STEP()
    step: int = rows[0].last_step
    return step


# -- applying files -----------------------------------------------------------------------------------


async def test_a_file_is_applied_once_and_changes_nothing_the_second_time(
    provisions: ProvisionStorage, storage: Storage
) -> None:
    bench = ProvisionSetup(provisions)
    document = {"users": [ANNA, BOB], "clients": [WEB, SHOP]}
    assert len(plan_lines(await bench.apply(**document))) == 4
    before, records_before = await read_stored_state(provisions), await events(storage)
    assert records_before == {"provision.applied": 1, "user.created": 2, "client.created": 2, "setup.closed": 1}
    assert plan_lines(await bench.apply(**document)) == []
    assert await read_stored_state(provisions) == before
    assert await events(storage) == records_before


async def test_a_file_whose_last_record_is_bad_changes_nothing(
    provisions: ProvisionStorage, storage: Storage
) -> None:
    bench = ProvisionSetup(provisions)
    with pytest.raises(Unfit, match=r"clients\[1\]: a client needs a redirect URI or host"):
        await bench.apply(users=[ANNA, BOB], clients=[WEB, {**SHOP, "redirect_uris": []}])
    assert await read_stored_state(provisions) == StoredState()
    assert await storage.audit.unsealed_records(10) == []
    assert not await storage.accounts.setup_is_closed()


async def test_file_may_be_planned_for_a_minute_between_two_statements(migrated_postgres_url: str) -> None:
    """On PostgreSQL, which ends other idle writes after seconds."""

    def idle_limit() -> Verb[str]:
        rows = yield ALLOW_PLANNING()
        limit: str = rows[0].idle_limit
        return limit

    async with open_storage(migrated_postgres_url, migrate=False) as storage:
        assert await storage.runner.write(idle_limit) in {"60s", "1min"}


async def test_making_an_administrator_closes_setup(provisions: ProvisionStorage, storage: Storage) -> None:
    bench = ProvisionSetup(provisions)
    await bench.apply(users=[BOB])
    assert not await storage.accounts.setup_is_closed()
    await bench.apply(users=[{**BOB, "administrator": True}])
    assert await storage.accounts.setup_is_closed()
    await bench.apply(users=[ANNA])
    assert (await events(storage))["setup.closed"] == 1


async def test_an_export_makes_an_equal_installation(
    provisions: ProvisionStorage, storage: Storage, second: ProvisionSetup
) -> None:
    bench = ProvisionSetup(provisions)
    await bench.apply(users=[ANNA, BOB], clients=[WEB, SHOP])
    await storage.clients.rotate_secret(
        "web", bench.clients.stored_secret(a_client(), "next"), a_record(), old_ends_at=NOW + 60
    )
    document = await bench.export()
    assert plan_lines(await bench.apply(**document, prune=True)) == []
    await second.apply(**document)
    assert await second.export() == document


async def test_pruning_leaves_the_last_administrator_application_1_and_the_keys(
    provisions: ProvisionStorage, storage: Storage
) -> None:
    bench = ProvisionSetup(provisions)
    await bench.apply(users=[ANNA, BOB], clients=[WEB, SHOP])
    plan = await bench.apply(users=[], clients=[], prune=True)
    assert plan.spared == ("user anna@studio.example is kept as the last administrator",)
    assert plan_lines(plan) == ["remove user bob@studio.example", "remove client shop", "remove client web"]
    assert await storage.permissions.root_roles(1, "1001", NOW) == ["administrator"]
    assert plan_lines(await bench.apply(users=[], clients=[], prune=True)) == []


class BarrierStorage(ProvisionStorage):
    """Waits before its first write until all have made their plan."""

    def __init__(self, storage: Storage, gate: asyncio.Barrier) -> None:
        super().__init__(storage.runner, storage.ban_copies)
        self._gate: asyncio.Barrier | None = gate

    async def run_file(self, *args: object, **kwargs: object) -> Plan:
        gate, self._gate = self._gate, None
        if gate is not None:
            await gate.wait()
        return await super().run_file(*args, **kwargs)


async def test_two_who_apply_one_file_at_once_both_succeed_and_make_everything_once(
    provisions: ProvisionStorage, storage: Storage, migrated_url: str
) -> None:
    gate = asyncio.Barrier(2)
    document = {"users": [{key: value for key, value in ANNA.items() if key != "user_id"}], "clients": [WEB, SHOP]}
    async with open_storage(migrated_url, migrate=False) as other:
        plans = await asyncio.gather(
            *(ProvisionSetup(BarrierStorage(one, gate)).apply(**document) for one in (storage, other))
        )
    assert sorted(len(plan.changes) for plan in plans) == [0, 3]
    state = await read_stored_state(provisions)
    assert [user.login for user in state.users] == ["anna@studio.example"]
    assert await events(storage) == {
        "provision.applied": 1,
        "user.created": 1,
        "client.created": 2,
        "setup.closed": 1,
    }


class ChangedStorage(ProvisionStorage):
    """Another writer changes an account after the file was read and before it is written."""

    def __init__(self, storage: Storage, change: ChangeUser) -> None:
        super().__init__(storage.runner, storage.ban_copies)
        self._change: ChangeUser | None = change

    async def run_file(self, *args: object, **kwargs: object) -> Plan:
        change, self._change = self._change, None
        if change is not None:
            await write_all(self, change)
        return await super().run_file(*args, **kwargs)


async def test_account_that_a_file_would_leave_is_planned_again_when_it_changed_meanwhile(
    provisions: ProvisionStorage, storage: Storage
) -> None:
    await ProvisionSetup(provisions).apply(users=[BOB])
    bob = await storage.accounts.user("1002")
    change = ChangeUser(replace(bob, nick="Other"), administrator=None, ends_tokens=False)
    await ProvisionSetup(ChangedStorage(storage, change)).apply(users=[BOB], clients=[WEB])
    assert (await storage.accounts.user("1002")).nick == BOB["nick"]


async def test_changes_of_different_fields_that_meet_are_both_kept(
    provisions: ProvisionStorage, storage: Storage, migrated_url: str
) -> None:
    await ProvisionSetup(provisions).apply(users=[BOB])
    gate = asyncio.Barrier(2)
    async with open_storage(migrated_url, migrate=False) as other:
        await asyncio.gather(
            ProvisionSetup(BarrierStorage(storage, gate)).apply(users=[{"user_id": "1002", "nick": "Bobby"}]),
            ProvisionSetup(BarrierStorage(other, gate)).apply(users=[{"user_id": "1002", "tags": ["new"]}]),
        )
    bob = await storage.accounts.user("1002")
    assert (bob.nick, bob.tags) == ("Bobby", {"new"})
