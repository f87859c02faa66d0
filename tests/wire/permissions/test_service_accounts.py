"""Service accounts: create, use, list and revoke at serviceAccount (R1)."""

from base64 import b64encode
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gatehouse.permissions.model.facts import Assignment
from gatehouse.permissions.model.rules import End, Scope
from gatehouse.permissions.store import EditResult
from tests.support.permission_builders import a_user_record, set_project_fields
from tests.support.studio import OTHER_USER, PROJECT, Person, Studio, create_person, own_record

MANAGER = "1000000003"


def account_request(action: str, **data: object) -> dict[str, object]:
    return {"action": action, "data": data}


async def create_account(studio: Studio, by: Person | None = None, **data: object) -> Any:
    ask = account_request("save", **{"project_id": PROJECT, "name": "ci", **data})
    return (await studio.expect_ok("serviceAccount", ask, (by or studio.owner).headers))["data"]


async def list_accounts(studio: Studio) -> Any:
    ask = account_request("get", project_id=PROJECT)
    return (await studio.expect_ok("serviceAccount", ask, studio.owner.headers))["data"]


def bearer_headers(account: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {account['jwt']}"}


async def a_manager(studio: Studio, role: str | Assignment = "project_administrator") -> Person:
    someone = await create_person(studio.service, MANAGER)
    record = a_user_record(MANAGER, {Scope(PROJECT): [role]})
    await studio.service.services.storage.user_records.edit_record(
        1, MANAGER, lambda _: EditResult(record, ()), studio.service.clock.now()
    )
    return someone


async def test_service_account_jwt_is_shown_once_and_needs_no_factor(studio: Studio) -> None:
    account = await create_account(studio, comment="builds", roles=["app_developer"])
    assert account["jwt_expired"] == studio.service.clock.now() + 90 * 86_400
    assert (account["name"], account["comment"], account["created_by"]) == ("ci", "builds", studio.owner.user_id)
    [listed] = await list_accounts(studio)
    assert listed == {name: value for name, value in account.items() if not name.startswith("jwt")}
    assert listed["roles"] == ["app_developer"]
    own = await studio.expect_ok("meta/data", own_record(studio.shop), bearer_headers(account))
    assert own["user_id"] == account["user_id"]


async def test_service_account_reads_everyone_in_project_applications_and_writes_nothing(studio: Studio) -> None:
    account = await create_account(studio)
    ask = {"action": "get", "application_id": studio.shop.application_id, "data": {"user_id": OTHER_USER}}
    assert (await studio.expect_ok("meta/data", ask, bearer_headers(account)))["user_id"] == OTHER_USER
    elsewhere = {
        **ask,
        "application_id": studio.other.application_id,
        "data": {"user_id": OTHER_USER, "type": "roles"},
    }
    await studio.expect_error(403, "meta/data", elsewhere, bearer_headers(account))
    saved = {**ask, "action": "save", "data": {"user_id": OTHER_USER, "roles": []}}
    await studio.expect_error(403, "meta/data", saved, bearer_headers(account))


async def test_a_revoked_one_is_refused_at_once(studio: Studio) -> None:
    account = await create_account(studio)
    removed = account_request("delete", user_id=account["user_id"])
    assert await studio.expect_ok("serviceAccount", removed, studio.owner.headers) == {"status": "OK"}
    await studio.expect_error(401, "meta/data", own_record(studio.shop), bearer_headers(account))
    assert [account["revoked"] for account in await list_accounts(studio)] == [True]
    await studio.expect_ok("serviceAccount", removed, studio.owner.headers)
    assert (await list_accounts(studio))[0]["version"] == 2


async def test_service_account_is_refused_once_its_project_is_removed(studio: Studio) -> None:
    account = await create_account(studio)
    await studio.service.services.storage.projects.edit_project(PROJECT, set_project_fields(removed=True))
    await studio.expect_error(401, "meta/data", own_record(studio.shop), bearer_headers(account))
    again = account_request("save", project_id=PROJECT, name="two")
    await studio.expect_error(403, "serviceAccount", again, studio.owner.headers)


async def test_only_project_managers_create_list_and_revoke_service_accounts(studio: Studio) -> None:
    account = await create_account(studio)
    for ask in (
        account_request("save", project_id=PROJECT, name="two"),
        account_request("get", project_id=PROJECT),
        account_request("get", project_id="nowhere"),
        account_request("delete", user_id=account["user_id"]),
        account_request("delete", user_id=OTHER_USER),
    ):
        await studio.expect_error(403, "serviceAccount", ask, studio.other_user.headers)


async def test_service_account_gets_no_role_its_creator_cannot_assign(studio: Studio) -> None:
    manager = await a_manager(studio)
    await create_account(studio, manager, roles=["project_administrator"])
    for roles in (["project_owner"], ["administrator"]):
        ask = account_request("save", project_id=PROJECT, name="two", roles=roles)
        assert (await studio.post("serviceAccount", ask, manager.headers)).status_code in (400, 403)
    assert [account["name"] for account in await list_accounts(studio)] == ["ci"]


async def test_service_account_cannot_own_a_project(studio: Studio) -> None:
    ask = account_request("save", project_id=PROJECT, name="two", roles=["project_owner"])
    assert "cannot own" in await studio.expect_error(403, "serviceAccount", ask, studio.owner.headers)
    account = await create_account(studio)
    users = {account["user_id"]: {"roles": ["project_owner"]}}
    later = {"action": "save", "data": {"id": PROJECT, "users": users}}
    assert "cannot own" in await studio.expect_error(403, "project/membership", later, studio.owner.headers)


async def test_service_account_is_accepted_only_from_its_ip_ranges(studio: Studio) -> None:
    near = await create_account(studio, ip_ranges=["127.0.0.0/8"])
    far = await create_account(studio, name="far", ip_ranges=["10.0.0.0/8"])
    await studio.expect_ok("meta/data", own_record(studio.shop), bearer_headers(near))
    await studio.expect_error(403, "meta/data", own_record(studio.shop), bearer_headers(far))
    ask = account_request("save", project_id=PROJECT, name="two", ip_ranges=["10.0.0.1/8"])
    assert "ip_ranges[0]" in await studio.expect_error(400, "serviceAccount", ask, studio.owner.headers)


async def test_service_account_with_a_public_key_must_sign_each_request(studio: Studio) -> None:
    key = generate_private_key(65_537, 2048)
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    account = await create_account(studio, public_key=pem)
    body = msgspec.json.encode(own_record(studio.shop))
    sign = b64encode(key.sign(body, PKCS1v15(), SHA256())).decode()
    for signature, status in ((sign, 200), (sign[::-1], 401), (None, 401)):
        headers = {**bearer_headers(account), "Content-Type": "application/json"}
        headers |= {} if signature is None else {"Request-Sign": signature}
        response = await studio.service.client.post("/api/permissions/meta/data", content=body, headers=headers)
        assert response.status_code == status


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({"name": ""}, "data.name"),
        ({"name": "a\nb"}, "data.name"),
        ({"days": 366}, "data.days"),
        ({"days": 0}, "data.days"),
        ({"public_key": "no key"}, "data.public_key"),
        ({"groups": {"0" * 24: {"roles": ["group_manager"]}}}, "no groups with the ID"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
async def test_a_malformed_one_is_refused_by_name(studio: Studio, data: dict[str, object], place: str) -> None:
    ask = account_request("save", **{"project_id": PROJECT, "name": "ci", **data})
    assert place in await studio.expect_error(400, "serviceAccount", ask, studio.owner.headers)


async def test_names_are_unique_in_a_project(studio: Studio) -> None:
    await create_account(studio)
    ask = account_request("save", project_id=PROJECT, name="ci")
    await studio.expect_error(409, "serviceAccount", ask, studio.owner.headers)


async def test_no_vouching_service_creates_or_revokes_service_accounts(studio: Studio) -> None:
    """Its JWT would open what the vouching service cannot reach (R6)."""
    account = await create_account(studio)
    headers = {"Authorization": f"Bearer {studio.owner.jwt}", "Service-Jwt": await studio.service_jwt()}
    for ask in (
        account_request("save", project_id=PROJECT, name="two", roles=["project_administrator"]),
        account_request("save", project_id=PROJECT, name="two"),
        account_request("delete", user_id=account["user_id"]),
    ):
        await studio.expect_error(403, "serviceAccount", ask, headers)
    assert (
        len((await studio.expect_ok("serviceAccount", account_request("get", project_id=PROJECT), headers))["data"])
        == 1
    )


async def test_service_account_expires_with_the_right_of_its_creator(studio: Studio) -> None:
    now, role = studio.service.clock.now(), "project_administrator"
    maker = await a_manager(studio, Assignment(role=role, end=End(expired=now + 60)))
    account = await create_account(studio, maker, roles=[role])
    assert (account["roles"], account["jwt_expired"]) == ([{"name": role, "expired": now + 60}], now + 60)
    later = account_request("save", project_id=PROJECT, name="two", roles=[{"name": role, "expired": now + 61}])
    await studio.expect_error(403, "serviceAccount", later, maker.headers)
    await studio.service.clock.advance(60)
    await studio.expect_error(401, "meta/data", own_record(studio.shop), bearer_headers(account))
