"""Claims that a client has mapped: what a person has in chosen applications (R3)."""

from gatehouse.accounts.model import User
from gatehouse.oauth.model import ClaimContent, ClaimSource
from gatehouse.permissions.model.rules import ROOT, Scope
from tests.support.builders import a_record
from tests.support.oauth import RelyingPartyClient, an_oidc_client, claims_of, success_body
from tests.support.permission_builders import (
    a_group,
    a_role,
    create_application,
    holdings_with,
    publish,
    set_fields,
)
from tests.support.service import RunningService

CAN_EDIT = {"private_data": {"doc": {"can_edit": {"value": True}}}}


async def a_shop(service: RunningService) -> int:
    """An application of a project with a group that anyone may join."""
    storage = service.services.storage
    project = await publish(storage)
    shop = await create_application(
        storage, a_role("editor", meta=CAN_EDIT), a_role("helper"), name="Shop", project_id=project.project_id
    )
    return shop.application_id


async def a_mapping_client(service: RunningService, number: int) -> RelyingPartyClient:
    claims = {content.value: ClaimSource(application_id=number, told=content) for content in ClaimContent}
    return await an_oidc_client(service, claims=claims)


async def give(service: RunningService, number: int, user: User, **scopes: tuple[str, ...]) -> None:
    places = {Scope(name) if name != "root" else ROOT: holdings_with(*roles) for name, roles in scopes.items()}
    await service.services.storage.user_records.edit_record(
        number, user.user_id, set_fields(scopes=places), service.clock.now()
    )


async def test_roles_groups_and_rules_are_told_in_the_id_token_and_at_userinfo(
    service: RunningService, anna: User
) -> None:
    number = await a_shop(service)
    oidc_client = await a_mapping_client(service, number)
    await service.services.storage.groups.create_group(a_group(users=(anna.user_id,)), [a_record()])
    await give(service, number, anna, root=("editor",), mind_games=("helper",))
    tokens = await oidc_client.tokens(await oidc_client.issue_code(anna))
    for where in (claims_of(tokens["id_token"]), success_body(await oidc_client.userinfo(tokens["access_token"]))):
        assert where["roles"] == ["editor", "mind_games/helper"]
        assert where["groups"] == ["Testers"]
        assert "doc.can_edit" in where["rules"]


async def test_removed_role_is_missing_from_later_claims(service: RunningService, anna: User) -> None:
    number = await a_shop(service)
    oidc_client = await a_mapping_client(service, number)
    await give(service, number, anna, root=("editor",))
    tokens = await oidc_client.tokens(await oidc_client.issue_code(anna))
    assert claims_of(tokens["id_token"])["roles"] == ["editor"]
    await give(service, number, anna)
    assert success_body(await oidc_client.userinfo(tokens["access_token"]))["roles"] == []
    refreshed = success_body(await oidc_client.refresh(tokens["refresh_token"]))
    assert (claims_of(refreshed["id_token"])["roles"], claims_of(refreshed["id_token"])["rules"]) == ([], [])


async def test_an_id_token_with_mapped_claims_is_a_hint_still(service: RunningService, anna: User) -> None:
    oidc_client = await a_mapping_client(service, await a_shop(service))
    tokens = await oidc_client.tokens(await oidc_client.issue_code(anna))
    response = await service.client.get("/proxy/oauth/logout", params={"id_token_hint": tokens["id_token"]})
    assert response.status_code == 200


async def test_an_application_that_never_was_is_held_by_no_one(service: RunningService, anna: User) -> None:
    oidc_client = await a_mapping_client(service, 59_999)
    claims = claims_of((await oidc_client.tokens(await oidc_client.issue_code(anna)))["id_token"])
    assert (claims["roles"], claims["groups"], claims["rules"]) == ([], [], [])
