"""Apply a document once, again, and during other writes; and export it."""

from collections import Counter

import pytest
from msgspec.structs import replace

from gatehouse.accounts.errors import UserChanged
from gatehouse.keys.sealing import MasterKeys
from gatehouse.oauth.model import SecretKind
from gatehouse.provision.document import read_document, write_json, write_yaml
from gatehouse.provision.model import Plan, StoredState, Unfit, Unsettled
from tests.support.builders import NOW, a_client_secret, a_user
from tests.support.keys import MASTER, OTHER_MASTER
from tests.unit.provision.provision_setup import ProvisionSetup, ProvisionsInMemory, plan_lines, provision_setup

STRONG = "Zq8vK2mX4tR9wLp6sYb3nHc7dJf5gTaU"
ANNA = {
    "user_id": "1001",
    "login": "anna@studio.example",
    "nick": "Anna",
    "password": "correct-horse-battery",
    "totp_secret": "JBSWY3DPEHPK3PXP",
    "administrator": True,
}
EVERY_KIND = {
    "users": [ANNA, {"login": "bob@studio.example", "nick": "Böb", "tags": ["x", "a"]}],
    "clients": [
        {"client_id": "raiders", "name": "Game", "redirect_hosts": ["localhost"], "client_secret": STRONG},
        {"client_id": "shop", "name": "S", "profile": "oidc", "redirect_uris": ["https://a.example/cb"]},
        {
            "client_id": "weak",
            "name": "W",
            "profile": "oidc",
            "redirect_uris": ["https://a.example/cb"],
            "client_secret": "weak",
        },
        {"client_id": "spa", "name": "S", "profile": "oidc", "public": True, "redirect_uris": ["https://a.example/"]},
        {"client_id": "none", "name": "N", "redirect_hosts": ["localhost"], "client_secret": None},
    ],
}


async def test_every_change_is_audited_and_the_file_once() -> None:
    setup, store = provision_setup(StoredState(users=(a_user(user_id="7", login="c@x.example"),)))
    await setup.apply(
        users=[ANNA, {"login": "c@x.example", "blocked": True, "administrator": True}],
        clients=[{"client_id": "web", "name": "Web", "redirect_hosts": ["localhost"]}],
    )
    assert Counter((record.event, record.subject) for record in store.records) == Counter(
        [
            ("provision.applied", "installation"),
            ("user.created", "1001"),
            ("user.changed", "7"),
            ("user.blocked", "7"),
            ("role.assigned", "7"),
            ("client.created", "web"),
            ("setup.closed", "installation"),
        ]
    )
    assert store.records[0].details == {"add": 2, "change": 1, "remove": 0}
    changed = next(record for record in store.records if record.event == "user.changed")
    assert changed.details == {"fields": "blocked, administrator"}
    assert {record.actor for record in store.records} == {"test"}


async def test_apply_without_changes_writes_no_audit_record() -> None:
    setup, store = provision_setup()
    await setup.apply(**EVERY_KIND, allow_weak=True)
    before = list(store.records)
    assert plan_lines(await setup.apply(**EVERY_KIND, allow_weak=True)) == []
    assert store.records == before


class UnwritableProvisions(ProvisionsInMemory):
    async def run_file(self, *args: object, **kwargs: object) -> Plan:
        raise AssertionError((args, kwargs))


async def test_file_that_changes_nothing_needs_no_transaction() -> None:
    setup, store = provision_setup()
    await setup.apply(**EVERY_KIND, allow_weak=True)
    assert (
        plan_lines(await ProvisionSetup(UnwritableProvisions(store.stored)).apply(**EVERY_KIND, allow_weak=True))
        == []
    )


async def test_a_plan_changes_nothing() -> None:
    setup, store = provision_setup()
    assert len(plan_lines(await setup.plan(**EVERY_KIND, allow_weak=True))) == 7
    assert (store.stored, store.records) == (StoredState(), [])


async def test_problems_of_all_sections_are_told_together() -> None:
    setup, _ = provision_setup()
    with pytest.raises(Unfit) as error:
        await setup.apply(users=[{"login": "x", "nick": "X"}], clients=[{"client_id": "web"}])
    assert [problem.partition(":")[0] for problem in error.value.problems] == ["users[0].login", "clients[0]"]


class ConcurrentlyChanged(ProvisionsInMemory):
    """A second writer changes the same account just before each of the first writes."""

    def __init__(self, state: StoredState, times: int) -> None:
        super().__init__(state)
        self.times = times

    async def run_file(self, *args: object, **kwargs: object) -> Plan:
        if self.times:
            self.times -= 1
            (user,) = self.stored.users
            self.stored = replace(self.stored, users=(replace(user, version=user.version + 1, country="DE"),))
        return await super().run_file(*args, **kwargs)  # type: ignore[arg-type]


async def test_a_plan_is_made_anew_when_someone_was_faster() -> None:
    store = ConcurrentlyChanged(StoredState(users=(a_user(user_id="1001", nick="Old"),)), times=4)
    plan = await ProvisionSetup(store).apply(users=[{"user_id": "1001", "nick": "New"}])
    assert plan_lines(plan)[0].endswith(" nick")
    assert [(user.nick, user.country) for user in store.stored.users] == [("New", "DE")]


async def test_apply_gives_up_after_repeated_conflicts_and_changes_nothing() -> None:
    store = ConcurrentlyChanged(StoredState(users=(a_user(user_id="1001", nick="Old"),)), times=5)
    with pytest.raises(Unsettled, match=UserChanged.public):
        await ProvisionSetup(store).apply(users=[{"user_id": "1001", "nick": "New"}])
    assert [user.nick for user in store.stored.users] == ["Old"]


async def test_an_export_applied_to_its_own_installation_changes_nothing() -> None:
    setup, _ = provision_setup()
    await setup.apply(**EVERY_KIND, allow_weak=True)
    document = await setup.export()
    assert plan_lines(await setup.plan(**document, prune=True)) == []
    assert plan_lines(await setup.plan(**await setup.export(secrets=False), prune=True)) == []


async def test_an_export_makes_an_equal_installation_under_the_same_master_key() -> None:
    setup, store = provision_setup()
    await setup.apply(**EVERY_KIND, allow_weak=True)
    document = await setup.export()
    second, copy = provision_setup()
    await second.apply(**document)
    assert await second.export() == document
    assert [user.password_hash for user in copy.stored.users] == [user.password_hash for user in store.stored.users]
    assert plan_lines(await second.plan(**EVERY_KIND)) == []


@pytest.mark.parametrize(("write", "suffix"), [(write_yaml, ".yaml"), (write_json, ".json")])
async def test_an_export_survives_being_written_down(write, suffix: str) -> None:  # noqa: ANN001
    setup, _ = provision_setup()
    await setup.apply(**EVERY_KIND, allow_weak=True)
    document = await setup.export()
    assert read_document(write(document).encode(), suffix) == document


async def test_an_export_holds_no_secret_in_the_clear() -> None:
    setup, store = provision_setup()
    await setup.apply(**EVERY_KIND, allow_weak=True)
    hashes = [user.password_hash or "-" for user in store.stored.users]
    text = write_yaml(await setup.export())
    assert not [secret for secret in (STRONG, "JBSWY3DP", "correct-horse", "$argon2", *hashes[:1]) if secret in text]
    assert text.count("sealed:") == 5
    bare = write_yaml(await setup.export(secrets=False))
    assert not [name for name in ("sealed", "password", "totp_secret", "client_secret") if name in bare]


async def test_an_export_takes_both_secrets_of_a_rotation_along() -> None:
    setup, store = provision_setup()
    await setup.apply(clients=EVERY_KIND["clients"][1:2])  # type: ignore[index]
    (client,) = store.stored.clients
    ending = a_client_secret(secret=b"old", expires_at=NOW + 60)
    ended = a_client_secret(secret=b"older", expires_at=NOW)
    newest = a_client_secret(slot=2, secret=b"new", created_at=NOW + 1)
    store.stored = StoredState(clients=(replace(client, secrets=(ended, ending, newest)),))
    document = await setup.export()
    second, copy = provision_setup()
    await second.apply(**document)
    assert copy.stored.clients[0].secrets == (ending, newest)
    assert {secret.kind for secret in copy.stored.clients[0].secrets} == {SecretKind.SHA256}
    assert plan_lines(await setup.plan(**document)) == []


async def test_another_master_key_refuses_the_secrets_of_an_export() -> None:
    setup, _ = provision_setup()
    await setup.apply(**EVERY_KIND, allow_weak=True)
    document = await setup.export()
    other = ProvisionSetup(ProvisionsInMemory(), masters=MasterKeys(OTHER_MASTER))
    with pytest.raises(Unfit) as error:
        await other.apply(**document)
    assert len(error.value.problems) == 5
    assert error.value.problems[0] == (
        "users[0].password: was encrypted with a master key that is not configured here"
    )
    rotated = ProvisionSetup(ProvisionsInMemory(), masters=MasterKeys(OTHER_MASTER, [MASTER]))
    assert len(plan_lines(await rotated.apply(**document))) == 7


async def test_a_sealed_password_opens_for_its_own_account_only() -> None:
    setup, _ = provision_setup()
    await setup.apply(users=[ANNA])
    (record,) = (await setup.export())["users"]  # type: ignore[attr-defined]
    with pytest.raises(Unfit, match="was encrypted for another record"):
        await setup.plan(
            users=[{"user_id": "1", "login": "eve@x.example", "nick": "E", "password": record["password"]}]
        )


async def test_progress_is_shown_in_entries_planned_and_applied() -> None:
    setup, _ = provision_setup()
    people = [{"login": f"{number}@x.example", "nick": "N"} for number in range(20)]
    await setup.apply(users=people, clients=EVERY_KIND["clients"][:2])  # type: ignore[index]
    planned = [reached for work, reached, total in setup.progress if (work, total) == ("Planning, entries", 22)]
    assert planned == [16, 20, 20, 22, 22]  # in batches of 16, and after each section
    applied = [("Applying, records", reached, 22) for reached in (20, 20, 22, 22)]  # written, and after each section
    assert setup.progress[len(planned) :] == applied
