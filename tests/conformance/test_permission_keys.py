"""Contract tests of ApplicationKeyStore and ServiceAccountStore."""

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from gatehouse.accounts.errors import UserIdTaken, UserNotFound
from gatehouse.accounts.model import AccountKind
from gatehouse.permissions.errors import (
    AccessKeyNotFound,
    ApplicationNotFound,
    KeyNotFound,
    LimitReached,
    NameTaken,
    ProjectNotFound,
    RoleNotFound,
)
from gatehouse.permissions.model.application import ApplicationKey, KeySource
from gatehouse.permissions.model.limits import MAX_CUSTOM_KEYS
from gatehouse.permissions.model.rules import ROOT
from gatehouse.permissions.model.service_token import ServiceToken
from gatehouse.storage.database import Storage
from gatehouse.storage.epoch import raise_epoch
from tests.support.builders import NOW, a_record
from tests.support.permission_builders import (
    P,
    a_person,
    a_project,
    a_service_account,
    a_user_record,
    an_access_key,
    create_application,
    holdings_with,
    install_central,
    publish,
    set_fields,
    set_project_fields,
)

ANNA = "1000000001"
SHOP = 50_001
TOKEN = ServiceToken(jti="jti", application_id=SHOP, comment="build", created_at=NOW, ends_at=NOW + 9)


def a_public_key(kid: str = "k1", **fields: Any) -> ApplicationKey:
    key = ApplicationKey(kid=kid, application_id=SHOP, source=KeySource.CUSTOM, pem="pem", created_at=NOW)
    return replace(key, **fields)


async def find_token(seeded_storage: Storage) -> ServiceToken | None:
    stored = await seeded_storage.application_keys.service_token("jti")
    return None if stored is None else stored.token


@pytest.fixture
async def seeded_storage(storage: Storage) -> Storage:
    await install_central(storage)
    await a_person(storage)
    await publish(storage)
    await create_application(storage, "guest", project_id="mind_games")
    return storage


REMOVALS = pytest.mark.parametrize("what", ["application", "project"])


async def remove(storage: Storage, what: str) -> None:
    if what == "application":
        await storage.applications.edit_application(SHOP, set_fields(removed=True))
    else:
        await storage.projects.edit_project("mind_games", set_project_fields(removed=True))


# -- access keys --------------------------------------------------------------------------------------


async def test_access_keys_are_listed_oldest_first_and_found_by_digest(seeded_storage: Storage) -> None:
    young, old = an_access_key("young", created_at=NOW + 5), an_access_key("old", comment="first", last_used=7)
    for key in (young, old):
        await seeded_storage.application_keys.add_access_key(key, [a_record()])
    assert await seeded_storage.application_keys.access_keys(SHOP) == [old, young]
    assert await seeded_storage.application_keys.access_key_by_digest(b"old") == old
    assert await seeded_storage.application_keys.access_key_by_digest(b"other") is None
    assert await seeded_storage.application_keys.access_keys(1) == []


async def test_two_access_keys_at_most(seeded_storage: Storage) -> None:
    for name in ("a", "b"):
        await seeded_storage.application_keys.add_access_key(an_access_key(name), ())
    with pytest.raises(LimitReached):
        await seeded_storage.application_keys.add_access_key(an_access_key("c"), ())
    await seeded_storage.application_keys.delete_access_key(SHOP, "a", ())
    await seeded_storage.application_keys.add_access_key(an_access_key("c"), ())
    assert {key.key_id for key in await seeded_storage.application_keys.access_keys(SHOP)} == {"b", "c"}


async def test_an_access_key_of_another_application_is_not_found(seeded_storage: Storage) -> None:
    await seeded_storage.application_keys.add_access_key(an_access_key(), ())
    other = await create_application(seeded_storage, name="Other")
    for application_id, key_id in ((other.application_id, "key"), (SHOP, "nothing")):
        with pytest.raises(AccessKeyNotFound):
            await seeded_storage.application_keys.delete_access_key(application_id, key_id, ())
    assert len(await seeded_storage.application_keys.access_keys(SHOP)) == 1


async def test_the_use_of_a_key_is_remembered_once_in_a_while_and_never_goes_back(seeded_storage: Storage) -> None:
    await seeded_storage.application_keys.add_access_key(an_access_key(), ())

    async def use_key(now: int, not_before: int) -> int:
        await seeded_storage.application_keys.record_access_key_use("key", now, not_before)
        return (await seeded_storage.application_keys.access_keys(SHOP))[0].last_used

    assert await use_key(NOW, NOW - 60) == NOW
    assert await use_key(NOW + 60, NOW) == NOW  # a later use is already stored
    assert await use_key(NOW + 61, NOW + 1) == NOW + 61
    assert await use_key(NOW + 30, NOW + 90) == NOW + 61


@REMOVALS
async def test_no_key_of_a_removed_application_or_project_is_valid(seeded_storage: Storage, what: str) -> None:
    await seeded_storage.application_keys.add_access_key(an_access_key(), ())
    await seeded_storage.application_keys.add_application_key(a_public_key(), ())
    await seeded_storage.application_keys.add_service_token(TOKEN, ())
    await remove(seeded_storage, what)
    assert await seeded_storage.application_keys.access_key_by_digest(b"key") is None
    assert await seeded_storage.application_keys.application_keys(SHOP) == []
    assert await seeded_storage.application_keys.application_key("k1") is None
    assert await seeded_storage.application_keys.service_token("jti") is None


async def test_no_key_is_added_to_an_unknown_application(seeded_storage: Storage) -> None:
    async def expect_refusal(application_id: int) -> None:
        for attempt in (
            seeded_storage.application_keys.add_access_key(an_access_key(application_id=application_id), ()),
            seeded_storage.application_keys.add_application_key(a_public_key(application_id=application_id), ()),
            seeded_storage.application_keys.add_service_token(replace(TOKEN, application_id=application_id), ()),
        ):
            with pytest.raises(ApplicationNotFound):
                await attempt

    await expect_refusal(99)
    await remove(seeded_storage, "application")
    await expect_refusal(SHOP)


# -- public keys and tokens ---------------------------------------------------------------------------


async def test_public_keys_are_found_by_application_and_kid(seeded_storage: Storage) -> None:
    await seeded_storage.application_keys.add_application_key(a_public_key("k2", created_at=NOW + 1), ())
    await seeded_storage.application_keys.add_application_key(a_public_key("k1"), ())
    assert [key.kid for key in await seeded_storage.application_keys.application_keys(SHOP)] == ["k1", "k2"]
    assert await seeded_storage.application_keys.application_key("k1") == a_public_key("k1")
    assert await seeded_storage.application_keys.application_key("k3") is None
    assert await seeded_storage.application_keys.application_keys(99) == []


async def test_ten_custom_keys_at_most_beside_the_services_own(seeded_storage: Storage) -> None:
    own = a_public_key("own", source=KeySource.SERVICE_META)
    await seeded_storage.applications.edit_application(SHOP, set_fields(service_key=own))
    for number in range(MAX_CUSTOM_KEYS):
        await seeded_storage.application_keys.add_application_key(a_public_key(f"k{number}"), ())
    with pytest.raises(LimitReached):
        await seeded_storage.application_keys.add_application_key(a_public_key("one more"), ())
    await seeded_storage.application_keys.delete_application_key(SHOP, "k0", ())
    await seeded_storage.application_keys.add_application_key(a_public_key("one more"), ())


async def test_an_unknown_key_is_not_found(seeded_storage: Storage) -> None:
    await seeded_storage.application_keys.add_application_key(a_public_key(), ())
    with pytest.raises(KeyNotFound):
        await seeded_storage.application_keys.delete_application_key(1, "k1", ())
    with pytest.raises(KeyNotFound):
        await seeded_storage.application_keys.delete_application_key(SHOP, "k2", ())
    with pytest.raises(KeyNotFound):
        await seeded_storage.application_keys.revoke_service_token(50_001, "jti", ())


async def test_a_service_token_is_live_until_it_is_revoked(seeded_storage: Storage) -> None:
    await seeded_storage.application_keys.add_service_token(TOKEN, ())
    assert await find_token(seeded_storage) == TOKEN
    await seeded_storage.application_keys.revoke_service_token(50_001, "jti", ())
    assert await find_token(seeded_storage) == replace(TOKEN, revoked=True)
    assert await seeded_storage.application_keys.service_token("other") is None


async def test_service_tokens_are_listed_oldest_first_revoked_ones_too(seeded_storage: Storage) -> None:
    young = replace(TOKEN, jti="young", created_at=NOW + 5)
    for token in (young, TOKEN):
        await seeded_storage.application_keys.add_service_token(token, ())
    await seeded_storage.application_keys.revoke_service_token(50_001, "jti", ())
    assert await seeded_storage.application_keys.service_tokens(SHOP) == [replace(TOKEN, revoked=True), young]
    assert await seeded_storage.application_keys.service_tokens(1) == []


async def test_a_service_token_issued_before_the_epoch_is_not_found(seeded_storage: Storage) -> None:
    await seeded_storage.application_keys.add_service_token(TOKEN, ())
    assert await find_token(seeded_storage) == TOKEN
    await seeded_storage.runner.write(partial(raise_epoch, NOW * 1_000))
    assert await seeded_storage.application_keys.service_token("jti") is None


@REMOVALS
async def test_an_application_is_live_until_it_or_its_project_is_removed(seeded_storage: Storage, what: str) -> None:
    keys = seeded_storage.application_keys
    assert (
        await keys.is_application_live(SHOP),
        await keys.is_application_live(1),
        await keys.is_application_live(99),
    ) == (True, True, False)
    await remove(seeded_storage, what)
    assert (await keys.is_application_live(SHOP), await keys.is_application_live(1)) == (False, True)


# -- service accounts ---------------------------------------------------------------------------------


async def test_service_accounts_are_listed_by_name(seeded_storage: Storage) -> None:
    builds = a_service_account("77", "builds", ip_ranges=("10.0.0.0/8",), comment="x", public_key="pem")
    deploys = a_service_account("78", "deploys")
    for account in (deploys, builds):
        await seeded_storage.service_accounts.create_service_account(account, [], [a_record()])
    assert await seeded_storage.service_accounts.service_accounts("mind_games") == [builds, deploys]
    assert await seeded_storage.service_accounts.service_accounts("nothing") == []


async def test_a_service_account_is_a_user_with_what_it_may_do(seeded_storage: Storage) -> None:
    holdings = [a_user_record("77", {P: ["group_manager"]}), a_user_record("77", {ROOT: ["guest"]}, SHOP)]
    await seeded_storage.service_accounts.create_service_account(a_service_account(), holdings, [a_record()])
    user = await seeded_storage.accounts.user("77")
    assert (user.kind, user.login, user.nick, user.password_hash) == (AccountKind.SERVICE, None, "ci", None)
    facts = await seeded_storage.permissions.facts("77", [1, SHOP])
    assert facts is not None
    assert facts.records[1].scopes == {P: holdings_with("group_manager")}
    assert facts.records[SHOP].scopes == {ROOT: holdings_with("guest")}
    assert {record.version for record in facts.records.values()} == {1}


async def test_a_service_account_that_cannot_be_made_leaves_nothing(seeded_storage: Storage) -> None:
    await publish(seeded_storage, a_project("Gone"))
    await seeded_storage.projects.edit_project("gone", set_project_fields(removed=True))
    await seeded_storage.service_accounts.create_service_account(a_service_account("76"), [], ())
    for account, holdings, error in (
        (a_service_account(project_id="nothing"), [], ProjectNotFound),
        (a_service_account(project_id="gone"), [], ProjectNotFound),
        (a_service_account(), [], NameTaken),
        (a_service_account(ANNA, "other"), [], UserIdTaken),
        (a_service_account(name="other"), [a_user_record("77", {ROOT: ["nothing"]})], RoleNotFound),
    ):
        with pytest.raises(error):
            await seeded_storage.service_accounts.create_service_account(account, holdings, ())
    with pytest.raises(UserNotFound):
        await seeded_storage.accounts.user("77")
    await seeded_storage.service_accounts.create_service_account(a_service_account("77", "other"), [], ())


async def test_a_revoked_service_account_has_no_good_token(seeded_storage: Storage) -> None:
    await seeded_storage.service_accounts.create_service_account(a_service_account(), [], ())
    before = await seeded_storage.accounts.user("77")
    await seeded_storage.service_accounts.revoke_service_account("77", NOW, [a_record()])
    (account,) = await seeded_storage.service_accounts.service_accounts("mind_games")
    assert account == a_service_account(revoked=True, version=2)
    assert (await seeded_storage.accounts.user("77")).rev > before.rev
    with pytest.raises(UserNotFound):
        await seeded_storage.service_accounts.revoke_service_account(ANNA, NOW, ())


async def test_records_are_kept_with_what_they_tell_of(seeded_storage: Storage) -> None:
    before = len(await seeded_storage.audit.unsealed_records(100))
    one = [a_record()]
    await seeded_storage.application_keys.add_access_key(an_access_key(), [a_record()])
    await seeded_storage.application_keys.delete_access_key(SHOP, "key", [a_record()])
    await seeded_storage.application_keys.add_application_key(a_public_key(), [a_record()])
    await seeded_storage.application_keys.delete_application_key(SHOP, "k1", [a_record()])
    await seeded_storage.application_keys.add_service_token(TOKEN, [a_record()])
    await seeded_storage.application_keys.revoke_service_token(50_001, "jti", [a_record()])
    await seeded_storage.service_accounts.create_service_account(a_service_account(), [], [a_record()])
    await seeded_storage.service_accounts.revoke_service_account("77", NOW, one)
    assert len(await seeded_storage.audit.unsealed_records(100)) == before + 8
