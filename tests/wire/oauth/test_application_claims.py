"""Scopes `groups`, `roles` and `permissions`: what a person holds in the client's application (R9)."""

from typing import Any

from gatehouse.accounts.model import User
from gatehouse.oauth.mapped_claims import MAX_APPLICATION_CLAIMS
from gatehouse.permissions.model.rules import ROOT
from tests.support.browser import HttpBrowser
from tests.support.builders import a_record
from tests.support.oauth import RelyingPartyClient, an_oidc_client, claims_of, success_body
from tests.support.permission_builders import a_group, a_role, create_application, holdings_with, publish, set_fields
from tests.support.service import RunningService

SCOPES = ("openid", "offline_access", "groups", "roles", "permissions")
CAN_EDIT = {"private_data": {"doc": {"can_edit": {"value": True}}}}
LONG_ROLES = tuple(f"role-{number:03}-{'x' * 40}" for number in range(MAX_APPLICATION_CLAIMS // 48))


async def an_application_client(
    service: RunningService, user: User, *roles: str, **fields: Any
) -> RelyingPartyClient:
    """A client of an application where the person is in a group and has these roles."""
    storage = service.services.storage
    project = await publish(storage)
    given = (a_role(name, meta=CAN_EDIT) if name == "editor" else a_role(name) for name in roles)
    shop = await create_application(storage, *given, name="Shop", project_id=project.project_id)
    await storage.groups.create_group(a_group(users=(user.user_id,)), [a_record()])
    await storage.user_records.edit_record(
        shop.application_id, user.user_id, set_fields(scopes={ROOT: holdings_with(*roles)}), service.clock.now()
    )
    return await an_oidc_client(service, application_id=shop.application_id, **({"scopes": SCOPES} | fields))


async def claims_at_both(client: RelyingPartyClient, user: User, *scopes: str) -> list[dict[str, Any]]:
    """The claims of the id_token, and those of userinfo."""
    tokens = await client.tokens(await client.issue_code(user, scopes=scopes))
    return [claims_of(tokens["id_token"]), success_body(await client.userinfo(tokens["access_token"]))]


async def test_each_scope_gives_its_claim_in_id_token_and_userinfo(service: RunningService, anna: User) -> None:
    client = await an_application_client(service, anna, "editor")
    held = {"groups": ["Testers"], "roles": ["editor"], "permissions": ["doc.can_edit"]}
    for claims in await claims_at_both(client, anna, *SCOPES):
        assert {name: claims[name] for name in held} == held
        assert "claims_omitted" not in claims
    for claims in await claims_at_both(client, anna, "openid", "roles"):
        assert {name: claims[name] for name in held if name in claims} == {"roles": ["editor"]}


async def test_refreshed_id_token_and_userinfo_have_what_the_person_holds_then(
    service: RunningService, anna: User
) -> None:
    client = await an_application_client(service, anna, "editor")
    tokens = await client.tokens(await client.issue_code(anna, scopes=SCOPES))
    await service.services.storage.user_records.edit_record(
        client.client.application_id or 0, anna.user_id, set_fields(scopes={}), service.clock.now()
    )
    assert success_body(await client.userinfo(tokens["access_token"]))["permissions"] == []
    refreshed = success_body(await client.refresh(tokens["refresh_token"]))
    assert (claims_of(refreshed["id_token"])["roles"], claims_of(refreshed["id_token"])["permissions"]) == ([], [])


async def test_tk_32_claims_over_six_kilobytes_are_left_out_and_named(service: RunningService, anna: User) -> None:
    client = await an_application_client(service, anna, *LONG_ROLES)
    for claims in await claims_at_both(client, anna, *SCOPES):
        assert (claims["groups"], claims["permissions"], claims["claims_omitted"]) == (["Testers"], [], ["roles"])
        assert "roles" not in claims


async def test_tk_32_client_without_the_scope_never_gets_the_claim(service: RunningService, anna: User) -> None:
    client = await an_application_client(service, anna, "editor", scopes=("openid", "roles"))
    code = await client.sign_in(anna.login or "", scope=" ".join(SCOPES))
    tokens = await client.tokens(code)
    assert tokens["scope"] == "openid roles"
    assert claims_of(tokens["id_token"]).keys() & {"groups", "permissions"} == set()


async def test_consent_page_names_groups_roles_and_permissions_in_words(
    service: RunningService, anna: User, signed_in_browser: HttpBrowser
) -> None:
    client = await an_application_client(service, anna, "editor", first_party=False)
    await signed_in_browser.get(client.authorize_path(scope=" ".join(SCOPES)))
    page = (await signed_in_browser.follow()).text
    for words in ("your groups in this", "your roles in this", "what you may do in this"):
        assert words in page
