"""Clients that reach beyond their application are changed by administrators only, in API and console (R3)."""

from typing import Any, Final
from urllib.parse import urlencode

import pytest
from msgspec.structs import fields, replace

from gatehouse.admin.clients import ClientDraft
from gatehouse.oauth.client_document import client_document
from gatehouse.oauth.model import ClaimContent, ClaimSource, Client, ClientProfile
from gatehouse.web.console.applications.client_forms import ClientForm, form_of
from gatehouse.web.pages.forms import CsrfForm
from tests.support.browser import hidden_fields
from tests.support.builders import ORIGIN
from tests.support.console import ADA, OLGA, PIA, SHOP, WIKI, ConsoleBrowsers
from tests.support.oauth import query_of
from tests.support.service import RunningService

FACTOR: Final = "the device"
GOOD: Final = "https://shop.example/callback"
EVIL: Final = "https://evil.example/callback"
ON_WIKI: Final = {"roles": ClaimSource(application_id=WIKI, told=ClaimContent.ROLES)}
KEYS: Final = {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}
ORDINARY: Final = Client(
    client_id="web",
    name="Web shop",
    profile=ClientProfile.OIDC,
    application_id=SHOP,
    redirect_uris=(GOOD,),
    may_exchange=False,
    created_at=0,
)
PRIVILEGED: Final = {
    "first_party": replace(ORDINARY, first_party=True),
    "game_id_token": replace(ORDINARY, game_id_token=True),
    "redirect_hosts": replace(
        ORDINARY, profile=ClientProfile.NATIVE, redirect_uris=(), redirect_hosts=("shop.example",), may_exchange=True
    ),
    "may_exchange in profile oidc": replace(ORDINARY, may_exchange=True),
    "claims of another application": replace(ORDINARY, claims=ON_WIKI),
}
# Model fields that no request can name, and the client's id.
NOT_ON_THE_WIRE: Final = {"removed", "created_at", "rev"}
KEY_FIELD: Final = "client_id"


OTHER: Final = {  # other values of fields whose type does not define them
    "application_id": WIKI,
    "jwks": KEYS,
    "workload_identities": [{"issuer": "https://issuer.example", "subject": "worker", "discovery": True}],
    "claims": {"other": {"application_id": SHOP, "told": "groups"}},
    "token_settings": {"access_seconds": 600},
    "version": 1,
    "logo": "iVBORw0KGgo=",
    "logo_uri": "https://evil.example/logo.png",
}


def other_value(name: str, value: Any) -> Any:
    """A different value for the field, as requests write it; a new field is covered by its type."""
    if name in OTHER:
        return OTHER[name]
    if name == "profile":
        return "native" if value == "oidc" else "oidc"
    if isinstance(value, bool):
        return not value
    assert isinstance(value, str | list), f"OTHER needs a second value for {name}"
    return f"{value}x" if isinstance(value, str) else [*value, EVIL]


class Callers:
    """Olga may save the shop, Ada administers; both use the API."""

    def __init__(self, studio: RunningService) -> None:
        self._studio = studio

    async def save(self, user_id: str, /, **data: object) -> Any:
        return await self.act(user_id, "save", **data)

    async def act(self, user_id: str, action: str, /, **data: object) -> Any:
        user = await self._studio.services.storage.accounts.user(user_id)
        jwt = await self._studio.services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR)
        return await self._studio.client.post(
            "/api/permissions/client",
            json={"action": action, "application_id": SHOP, "data": {"client_id": "web", **data}},
            headers={"Authorization": f"Bearer {jwt}", "Factor": FACTOR},
        )


class FormSender:
    """A browser in the console that submits the whole client form, with single fields changed."""

    def __init__(self, studio: RunningService, browser_client: Any) -> None:
        self._studio = studio
        self._browser = browser_client
        self.page = f"/console/applications/{SHOP}/clients/web"

    async def save(self, **changes: object) -> Any:
        form = form_of(await self._studio.services.oauth.clients.commands.get("web"))
        form_values = {name: getattr(form, name) for name in form_fields()} | changes
        return await self.post(self.page, **form_values)

    async def post(self, path: str, **form_values: Any) -> Any:
        guard = hidden_fields((await self._browser.get(self.page)).text)["csrf"]
        form_values = {
            name: list(value) if isinstance(value, tuple) else str(value)
            for name, value in form_values.items()
            if value != ""
        }
        return await self._browser.client.post(path, data={"csrf": guard, **form_values})


def form_fields() -> list[str]:
    return [name for name in ClientForm.__struct_fields__ if name not in CsrfForm.__struct_fields__]


async def create_client(studio: RunningService, client: Client) -> Client:
    await studio.services.oauth.clients.commands.create(client, ORIGIN)
    return await studio.services.oauth.clients.commands.get(client.client_id)


@pytest.mark.parametrize("privilege", PRIVILEGED)
async def test_cl_01_the_right_to_save_changes_no_field_of_a_privileged_client_over_the_api(
    studio: RunningService, privilege: str
) -> None:
    callers, stored = Callers(studio), await create_client(studio, PRIVILEGED[privilege])
    on_wire = {field.name for field in fields(Client)} - NOT_ON_THE_WIRE
    assert on_wire <= set(ClientDraft.__struct_fields__)
    record = client_document(stored) | {
        "version": stored.version,
        "secrets": [],
        "created": "",
        "logo": "",
        "logo_uri": "",
    }
    for name in sorted(set(ClientDraft.__struct_fields__) - {KEY_FIELD}):
        for value in (record[name], other_value(name, record[name])):
            response = await callers.save(OLGA, **{name: value})
            assert (response.status_code, privilege in response.json()["error"]) == (403, True), (name, response.text)
    for action in ("save", "rotate", "delete"):
        response = await callers.act(OLGA, action)
        assert (response.status_code, privilege in response.json()["error"]) == (403, True), response.text
    assert await studio.services.oauth.clients.commands.get("web") == stored, "nothing may have changed"
    assert (await callers.act(OLGA, "get")).status_code == 200
    assert (await callers.act(OLGA, "revoke")).status_code == 200, "ending sign-ins does not change the client"
    for action in ("save", "rotate", "delete"):
        assert (await callers.act(ADA, action)).status_code == 200


@pytest.mark.parametrize("privilege", PRIVILEGED)
async def test_cl_01_the_right_to_save_changes_no_field_of_a_privileged_client_in_the_console(
    studio: RunningService, console_browsers: ConsoleBrowsers, privilege: str
) -> None:
    olga, ada = FormSender(studio, await console_browsers(OLGA)), FormSender(studio, await console_browsers(ADA))
    stored = await create_client(studio, PRIVILEGED[privilege])
    form = form_of(stored)
    for name in form_fields():
        before = getattr(form, name)
        changed = before + 1 if isinstance(before, int) else (*before, "trust") if isinstance(before, tuple) else "x"
        for value in (before, changed):
            response = await olga.save(**{name: value})
            assert (response.status_code, privilege in response.text) == (403, True), name
    for act in ("rotate", "remove"):
        assert (await olga.post(f"{olga.page}/{act}")).status_code == 403
    page = await (await console_browsers(OLGA)).get(olga.page)
    assert (page.status_code, privilege in page.text, "<fieldset disabled>" in page.text) == (200, True, True)
    assert not [act for act in ("rotate", "remove") if f'href="{olga.page}/{act}"' in page.text]
    assert await studio.services.oauth.clients.commands.get("web") == stored, "nothing may have changed"
    assert (await ada.save(client_name="Renamed")).status_code == 303
    assert (await ada.post(f"{ada.page}/rotate")).status_code == 200
    assert (await ada.post(f"{ada.page}/remove")).status_code == 303


@pytest.mark.parametrize("privilege", PRIVILEGED)
async def test_cl_01_the_right_to_save_gives_no_client_a_privilege(
    studio: RunningService, console_browsers: ConsoleBrowsers, privilege: str
) -> None:
    wished = PRIVILEGED[privilege]
    callers, olga = Callers(studio), FormSender(studio, await console_browsers(OLGA))
    stored = await create_client(studio, replace(ORDINARY, profile=wished.profile))
    record = client_document(replace(wished, redirect_uris=(GOOD,)))
    response = await callers.save(OLGA, **record)
    assert (response.status_code, privilege in response.json()["error"]) == (403, True)
    response = await callers.act(OLGA, "create", **record | {"client_id": "new"})
    assert (response.status_code, privilege in response.json()["error"]) == (403, True)
    form = form_of(replace(wished, redirect_uris=(GOOD,)))
    form_values = {name: getattr(form, name) for name in form_fields()}
    response = await olga.save(**form_values)
    assert (response.status_code, privilege in response.text) == (403, True)
    response = await olga.post(f"/console/applications/{SHOP}/new_client", **form_values | {"client_id": "new"})
    assert (response.status_code, privilege in response.text) == (403, True)
    assert await studio.services.oauth.clients.commands.list() == [stored], "nothing may have changed"


async def test_cl_02_the_right_to_save_ends_when_an_administrator_makes_a_client_first_party(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    callers, olga = Callers(studio), FormSender(studio, await console_browsers(OLGA))
    stored = await create_client(studio, replace(ORDINARY, profile=ClientProfile.NATIVE, may_exchange=True))
    assert (await callers.save(OLGA, name="By API", redirect_uris=[GOOD, EVIL])).status_code == 200
    assert (await callers.act(OLGA, "rotate")).status_code == 200
    assert (await callers.save(OLGA, may_exchange=False)).status_code == 403, "as R3 says"
    assert (await olga.save(client_name="By console", redirect_uris=GOOD)).status_code == 303
    assert (await olga.post(f"{olga.page}/rotate")).status_code == 200
    now = await studio.services.oauth.clients.commands.get("web")
    assert (now.name, now.redirect_uris, now.may_exchange) == ("By console", (GOOD,), True)
    ahead = await olga.save(client_name="Ahead", version=now.version + 1)
    assert ahead.status_code == 409, "a future version must not replace a concurrent save"

    assert (await callers.save(ADA, first_party=True)).status_code == 200
    after = await studio.services.oauth.clients.commands.get("web")
    assert (await callers.save(OLGA, name="By API")).status_code == 403
    assert (await callers.act(OLGA, "rotate")).status_code == 403
    assert (await olga.save(client_name="By console")).status_code == 403
    assert (await olga.post(f"{olga.page}/rotate")).status_code == 403
    assert await studio.services.oauth.clients.commands.get("web") == after
    assert stored.version < after.version


async def test_cl_01_no_code_reaches_an_address_that_a_project_owner_gave_a_first_party_client(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await create_client(studio, PRIVILEGED["first_party"])
    taken = await Callers(studio).save(OLGA, redirect_uris=[GOOD, EVIL])
    pia = await console_browsers(PIA)

    async def open_authorize(redirect_uri: str) -> Any:
        parameters = {
            "response_type": "code",
            "client_id": "web",
            "redirect_uri": redirect_uri,
            "scope": "openid email",
            "prompt": "none",
        }
        return await pia.get(f"/proxy/oauth/authorize?{urlencode(parameters)}")

    response = await open_authorize(EVIL)
    assert (response.status_code, "location" in response.headers) == (400, False), response.headers
    assert taken.status_code == 403
    response = await open_authorize(GOOD)
    assert response.headers["location"].startswith(GOOD)
    assert "code" in query_of(response.headers["location"]), "the person is signed in without a prompt"
