"""Applications in the console: the same permissions and commands as in the API."""

import re
from html import unescape
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gatehouse.permissions.model.facts import ApplicationModel
from tests.support.browser import PASSWORD, HttpBrowser, hidden_fields
from tests.support.console import ADA, DEV, MAX, OLGA, PIA, PROJECT, SHOP, WIKI, ConsoleBrowsers
from tests.support.images import png
from tests.support.service import RunningService
from tests.support.tokens import application_private_key

APPLICATIONS = "/console/applications"
PAGE = f"{APPLICATIONS}/{SHOP}"
SETTINGS = f"{PAGE}/settings"
TABS = (
    "",
    "/rules",
    "/roles",
    "/users",
    "/connect",
    "/clients",
    "/versions",
    "/settings",
)  # the first of their sections
SECTIONS = (*TABS, "/matrix", "/access_keys", "/public_keys", "/service_tokens", "/api", "/sites")
FOR_ADMINISTRATORS = {"/service_tokens", "/sites"}
SHOWN = re.compile(r'<pre id="secret"[^>]*><code>([^<]+)</code>')
RULE = {"section": "private_data", "description": "", "value": "", "protected": ""}


async def model_of(studio: RunningService, application_id: int = SHOP) -> ApplicationModel:
    return (await studio.services.storage.permissions.application_models([application_id]))[application_id]


def secret_on(page: Any) -> str:
    match = SHOWN.search(page.text)
    assert match is not None, page.text
    return unescape(match[1])


def rule_of(model: ApplicationModel, *path: str) -> Any:
    node: Any = model.schema.private_data
    for segment in path:
        node = node[segment]
    return node


async def confirm_password(browser_client: HttpBrowser) -> None:
    """Follow the redirect of a stale proof and confirm the password."""
    await browser_client.follow()
    await browser_client.post("/confirm", password=PASSWORD)
    await browser_client.follow()


@pytest.mark.parametrize(
    ("user_id", "listed", "tabs", "sections"),
    [
        (ADA, "Central Shop Wiki", TABS, {*SECTIONS}),
        (OLGA, "Shop Wiki", TABS, {*SECTIONS} - FOR_ADMINISTRATORS),
        (
            DEV,
            "Shop",
            ("", "/rules", "/roles", "/connect", "/access_keys", "/versions", "/settings"),
            {"", "/rules", "/matrix", "/roles", "/connect", "/access_keys", "/public_keys", "/versions", "/settings"},
        ),
        (MAX, "Shop", ("", "/users", "/connect", "/settings"), {"", "/users", "/connect", "/settings"}),
        (PIA, "", (), set[str]()),
    ],
)
async def test_everyone_finds_the_applications_and_tabs_their_rights_open(
    console_browsers: ConsoleBrowsers, user_id: str, listed: str, tabs: tuple[str, ...], sections: set[str]
) -> None:
    browser_client = await console_browsers(user_id)
    page = await browser_client.get(APPLICATIONS)
    assert [name for name in ("Central", "Shop", "Wiki") if f">{name}</a>" in page.text] == listed.split()
    shop = await browser_client.get(PAGE)
    assert shop.status_code == (200 if tabs else 403)
    assert (f'<a href="/console/projects/{PROJECT}">Mind Games</a>' in shop.text) == (user_id in (ADA, OLGA))
    row = shop.text.partition('<nav class="tabs"')[2].partition("</nav>")[0]
    assert tuple(re.findall(rf'<li><a href="{PAGE}([^"]*)"', row)) == tabs
    for section in SECTIONS:
        page = await browser_client.get(f"{PAGE}{section}")
        assert page.status_code == (200 if section in sections else 403), section


@pytest.mark.both_databases
async def test_list_names_the_type_of_each_application_and_shows_its_logo(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    new: dict[str, dict[str, str]] = {
        "game": {},
        "web": {"redirect_uris": "https://web.example/cb"},
        "page": {"redirect_uris": "https://page.example/cb"},
        "machine": {},
        "product": {"product": "grafana", "app_url": "https://grafana.example"},
        "empty": {},
    }
    for kind, fields in new.items():
        await ada.get(f"{APPLICATIONS}/new/{kind}")
        await ada.post(f"{APPLICATIONS}/new/{kind}", name=f"A {kind}", **fields)
    rows = (await ada.get(f"{APPLICATIONS}?format=csv&q=A ")).text.splitlines()[1:]
    assert {row.split(",")[1]: row.split(",")[2] for row in rows if row.split(",")[1].startswith("A ")} == {
        f"A {kind}": kind for kind in new
    }
    page = (await ada.get(APPLICATIONS)).text
    for words in ("Game", "Web application", "Single-page or mobile app", "API or server", "Existing product"):
        assert f">{words}</td>" in page, words
    assert 'src="/images/' not in page
    await ada.get(f"{PAGE}/settings")
    assert ada.page is not None
    csrf = hidden_fields(ada.page.text)["csrf"]
    sent = await ada.client.post(f"{PAGE}/settings/logo", data={"csrf": csrf}, files={"logo": ("a.png", png("navy"))})
    assert sent.status_code == 303, sent.text
    assert '<img class="avatar square" src="/images/' in (await ada.get(APPLICATIONS)).text


async def test_an_application_is_made_in_a_project_or_alone_by_who_may(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga, ada = await console_browsers(OLGA), await console_browsers(ADA)
    chooser = await olga.get(f"{APPLICATIONS}/new?project_id={PROJECT}")
    assert f'href="{APPLICATIONS}/new/game?project_id={PROJECT}"' in chooser.text
    page = await olga.get(f"{APPLICATIONS}/new/empty?project_id={PROJECT}")
    assert f'value="{PROJECT}"' in page.text
    refusal = await olga.post(f"{APPLICATIONS}/new/empty", name="Forum", project_id="")
    assert refusal.status_code == 403
    await olga.post(f"{APPLICATIONS}/new/empty", name="Forum", project_id="mg")
    assert "Application created." in (await olga.follow()).text
    await ada.get(f"{APPLICATIONS}/new/empty")
    await ada.post(f"{APPLICATIONS}/new/empty", name="Lone", project_id="")
    homes = {(await model_of(studio, number)).application.project_id for number in (50003, 50004)}
    assert homes == {PROJECT, None}
    assert (await (await console_browsers(MAX)).get(f"{APPLICATIONS}/new")).status_code == 403
    file = await olga.get(f"{APPLICATIONS}?format=csv&q=for")
    assert file.text.splitlines() == [
        "id,name,type,description,project,roles,clients,removed",
        f"50003,Forum,empty,,{PROJECT},0,0,no",
    ]


async def test_settings_are_saved_as_fields_and_a_stale_save_overwrites_nothing(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga, ada = await console_browsers(OLGA), await console_browsers(ADA)
    for browser_client in (olga, ada):
        await browser_client.get(SETTINGS)
    fields = {
        "name": "Shop",
        "description": "of Ada",
        "project_id": PROJECT,
        "restricted_domains": "studio.example\r\nplayers.example",
        "game_enabled": "no",
        "code_match": "",
        "data_sources": "https://a.example/fetch https://a.example/remove",
        "char_sources": "",
    }
    await ada.post(SETTINGS, **fields)
    assert "<p>Saved</p>" in (await ada.follow()).text
    stored = (await model_of(studio)).application
    assert stored.settings == {
        "restricted_domains": ["studio.example", "players.example"],
        "game": {"enabled": False},
        "gdpr": {"data_sources": [{"fetch": "https://a.example/fetch", "remove": "https://a.example/remove"}]},
    }
    stale = await olga.post(SETTINGS, **fields | {"description": "of Olga", "game_enabled": "yes"})
    assert stale.status_code == 409
    assert "Someone else changed this" in stale.text
    assert (await model_of(studio)).application == stored
    half = await olga.post(SETTINGS, **fields | {"data_sources": "https://a.example/only"})
    assert (half.status_code, "two URLs per line" in half.text) == (400, True)
    await olga.post(SETTINGS, **fields | {"data_sources": "", "restricted_domains": "", "game_enabled": ""})
    assert (await model_of(studio)).application.settings == {}
    await ada.get(SETTINGS)
    await ada.post(SETTINGS, **fields | {"project_id": ""})
    assert (await model_of(studio)).application.project_id is None


async def test_a_service_is_described_by_who_may_publish_one(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, olga = await console_browsers(ADA), await console_browsers(OLGA)
    assert 'name="service_name"' not in (await olga.get(SETTINGS)).text
    assert (await olga.post(f"{SETTINGS}/service", service_name="Shop")).status_code == 403
    pem = public_pem()
    await ada.get(SETTINGS)
    service = {"service_name": "Shop", "service_tags": "money\r\nsafe", "config_schema": "", "public_key": pem}
    await ada.post(f"{SETTINGS}/service", **service, private_key="a private text")
    stored = (await model_of(studio)).application
    assert (stored.service_meta["name"], stored.service_meta["tags"]) == ("Shop", ["money", "safe"])
    assert stored.service_key is not None
    assert stored.sealed_private_key is not None
    await ada.get(SETTINGS)
    await ada.post(f"{SETTINGS}/service", **service, remove_private_key="yes")
    application = (await model_of(studio)).application
    assert (application.service_key, application.sealed_private_key) == (stored.service_key, None)


async def test_removing_an_application_says_what_breaks_and_wants_a_fresh_proof(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga = await console_browsers(OLGA)
    await studio.clock.advance(601)
    await olga.get(f"{PAGE}/remove")
    await confirm_password(olga)
    assert olga.page is not None
    assert "<strong>3</strong> people lose" in olga.page.text  # those with a role in it, and its developers
    assert (await olga.post(f"{PAGE}/remove", name="shop")).status_code == 400
    await olga.post(f"{PAGE}/remove", name="Shop")
    assert (await model_of(studio)).application.removed
    assert (await (await console_browsers(MAX)).get(f"{PAGE}/remove")).status_code == 403


@pytest.mark.parametrize(
    ("page", "path", "typed"),
    [
        (f"{PAGE}/access_keys", f"{PAGE}/access_keys", {"comment": "Nightly import"}),
        (f"{PAGE}/new_client", f"{PAGE}/new_client", {"client_id": "shop-web", "client_name": "Shop"}),
        (f"{PAGE}/users", f"{PAGE}/users/apply", {"edits": "[]"}),
    ],
    ids=["access key", "client", "staged"],
)
async def test_a_form_that_a_proof_came_between_says_afterwards_that_it_was_not_saved(
    studio: RunningService, console_browsers: ConsoleBrowsers, page: str, path: str, typed: dict[str, str]
) -> None:
    olga, notice = await console_browsers(OLGA), "Nothing is saved yet"
    await olga.get(page)
    await studio.clock.advance(601)
    await olga.post(path, **typed)
    await confirm_password(olga)
    assert olga.page is not None
    assert (olga.page.status_code, olga.page.url.path) == (200, page)
    assert notice in olga.page.text
    assert notice not in (await olga.get(page)).text  # shown once


async def test_rules_are_changed_with_a_look_at_who_gains_and_who_loses(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga, dev = await console_browsers(OLGA), await console_browsers(DEV)
    await olga.get(f"{PAGE}/rules/new")
    await olga.post(f"{PAGE}/rules/new", **RULE | {"path": "user.warn", "description": "Be stern"})
    assert "Be stern" in (await olga.follow()).text
    twice = await olga.get(f"{PAGE}/rules/new")
    twice = await olga.post(f"{PAGE}/rules/new", **RULE | {"path": "user.warn.twice"})
    assert (twice.status_code, 'value="user.warn.twice"' in twice.text) == (400, True)

    kick = f"{PAGE}/rules/private_data.user.kick"
    await olga.get(kick)
    response = await olga.post(kick, protected="yes", description="Throw someone out", value="")
    assert (response.status_code, "moderator" in response.text) == (409, True)

    await olga.get(f"{PAGE}/rules/private_data.user.mute")
    review = await olga.post(f"{PAGE}/rules/private_data.user.mute", value="yes", description="", protected="")
    assert "4 people gain" in review.text  # Pia has it already
    assert (await model_of(studio)).schema.version == 2, "nothing may be saved yet"
    await olga.post(f"{PAGE}/rules/private_data.user.mute")
    assert rule_of(await model_of(studio), "user", "mute")["value"] is True

    loses = await olga.get(f"{kick}/remove")
    assert re.search(r"Pia\s*<small>", loses.text)
    unseen = await dev.get(f"{kick}/remove")
    assert "Pia" not in unseen.text
    assert "You cannot see people's access here" in unseen.text
    await olga.post(f"{kick}/remove")
    stale = await dev.post(f"{kick}/remove")
    assert stale.status_code == 404
    left = await model_of(studio)
    assert "kick" not in str(left.schema.private_data)
    assert left.roles["moderator"].meta == {"private_data": {"user": {"mute": {"value": True}}}}
    rows = (await olga.get(f"{PAGE}/rules?format=csv&q=user.")).text.splitlines()
    assert rows[1:] == [
        "private_data.user.mute,private_data,yes,no,,1",
        "private_data.user.warn,private_data,no,no,Be stern,0",
    ]

    await olga.get(f"{PAGE}/rules/login")
    await olga.post(f"{PAGE}/rules/login", cannot="yes")
    assert "No one can sign in" in (await olga.follow()).text


async def test_a_version_is_compared_and_restored_as_an_ordinary_save(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga = await console_browsers(OLGA)
    first = await model_of(studio)
    exported = (await olga.get(f"{PAGE}/rules/export")).text
    changed = exported.replace('"Handles money"', '"Counts money"').replace('"moderator"', '"sheriff"')
    await olga.get(f"{PAGE}/rules/import")
    review = await olga.post(f"{PAGE}/rules/import", document=changed)
    assert "role added" in review.text
    assert "Pia" in review.text  # loses the role
    await olga.post(f"{PAGE}/rules/import")
    assert (await model_of(studio)).roles.keys() == {"beta", "cashier", "sheriff"}

    response = await olga.get(f"{PAGE}/versions")
    assert "1 role added" in response.text
    assert "1 role deleted" in response.text
    assert "Olga" in response.text
    compared = await olga.get(f"{PAGE}/versions/compare?old=2&new=1")
    for words in ("Version 1 to version 2", "Handles money", "Counts money", "private_data.user.kick"):
        assert words in compared.text

    page = await olga.get(f"{PAGE}/versions/1/restore")
    assert "Restore version 1?" in page.text
    stale = page
    await olga.post(f"{PAGE}/versions/1/restore")
    now = await model_of(studio)
    assert (now.schema.version, {role.name: role.meta for role in now.roles.values()}) == (
        3,
        {role.name: role.meta for role in first.roles.values()},
    )
    assert now.roles["beta"].condition == first.roles["beta"].condition
    olga.page = stale
    assert (await olga.post(f"{PAGE}/versions/2/restore")).status_code == 409, "a concurrent save must be detected"
    assert (await olga.get(f"{PAGE}/versions/compare?old=1&new=9")).status_code == 404
    broken = await olga.get(f"{PAGE}/rules/import")
    broken = await olga.post(f"{PAGE}/rules/import", document="{")
    assert (broken.status_code, "Enter a schema as JSON" in broken.text) == (400, True)


async def test_a_key_is_shown_once_works_and_is_refused_when_removed(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, pia = await console_browsers(ADA), await console_browsers(PIA)
    login_body = {"login": "pia@players.example", "password": PASSWORD, "app_id": SHOP, "factor": "one"}
    jwt = (await studio.client.post("/proxy/api/login", json=login_body)).json()["jwt"]
    question = {"action": "get", "application_id": SHOP, "jwt": jwt, "data": {"type": "list_short"}}

    async def status_with_key(value: str) -> int:
        bearer = {"Authorization": f"Bearer {value}"}
        response = await studio.client.post("/api/permissions/meta/data", json=question, headers=bearer)
        return response.status_code

    await ada.get(f"{PAGE}/access_keys")
    created = await ada.post(f"{PAGE}/access_keys", comment="the server")
    value = secret_on(created)
    assert unescape(created.text).count(value) == 3, "by itself, in the .env file, and where it is used"
    assert await status_with_key(value) == 200
    listed = await ada.get(f"{PAGE}/access_keys")
    assert value not in listed.text
    await ada.post(f"{PAGE}/access_keys", comment="another")
    await ada.get(f"{PAGE}/access_keys")
    assert (await ada.post(f"{PAGE}/access_keys", comment="a third")).status_code == 409
    (key, _) = await studio.services.storage.application_keys.access_keys(SHOP)
    assert "the server" in (await ada.get(f"{PAGE}/access_keys/{key.key_id}/remove")).text
    await ada.post(f"{PAGE}/access_keys/{key.key_id}/remove")
    assert await status_with_key(value) == 401
    assert (await pia.get(f"{PAGE}/access_keys")).status_code == 403

    await ada.get(f"{PAGE}/public_keys")
    await ada.post(f"{PAGE}/public_keys", public_key=public_pem().replace("\n", "\r\n"))
    (public,) = await studio.services.storage.application_keys.application_keys(SHOP)
    await ada.get(f"{PAGE}/public_keys/{public.kid}/remove")
    await ada.post(f"{PAGE}/public_keys/{public.kid}/remove")
    assert not await studio.services.storage.application_keys.application_keys(SHOP)

    await ada.get(f"{PAGE}/service_tokens")
    token = secret_on(await ada.post(f"{PAGE}/service_tokens", comment="nightly", days="30"))
    headers = {"Service-JWT": token, "Authorization": f"Bearer {jwt}"}
    plain = {"action": "get", "data": {"type": "list_short"}}
    assert (await studio.client.post("/api/permissions/meta/data", json=plain, headers=headers)).status_code == 200
    (issued,) = await studio.services.storage.application_keys.service_tokens(SHOP)
    await ada.get(f"{PAGE}/service_tokens/{issued.jti}/revoke")
    await ada.post(f"{PAGE}/service_tokens/{issued.jti}/revoke")
    assert (await studio.client.post("/api/permissions/meta/data", json=plain, headers=headers)).status_code == 401
    await ada.follow()
    secret = secret_on(await ada.post(f"{PAGE}/service_tokens/email_secret"))
    login = await studio.client.post("/proxy/api/login", json=login_body | {"with_email": secret})
    assert login.json()["login"] == "pia@players.example"
    page = await ada.get(f"{PAGE}/service_tokens")
    (taken,) = re.findall(rf'href="({PAGE}/service_tokens/email_secret/[0-9a-f]+/revoke)"', page.text)
    await ada.get(taken)
    await ada.post(taken)
    login = await studio.client.post("/proxy/api/login", json=login_body | {"with_email": secret})
    assert "login" not in login.json()
    assert (await ada.get(taken)).status_code == 404


async def test_form_gives_a_new_client_the_algorithm_of_its_profile_and_an_existing_one_its_own(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    clients = studio.services.oauth.clients.commands
    redirects = {
        "oidc": ("redirect_uris", "https://shop.example/callback"),
        "native": ("redirect_hosts", "localhost"),
    }

    async def algorithm_after(path: str, **typed: str) -> str:
        await ada.get(path)
        name, value = redirects[typed["client_id"].partition("-")[0]]
        page = await ada.post(path, client_name="Shop", scopes="openid", **{name: value}, **typed)
        assert page.status_code < 400, page.text
        return (await clients.get(typed["client_id"])).token_settings.id_token_alg.value

    create = f"{PAGE}/new_client"
    form = (await ada.get(create)).text
    assert '<option value="" selected>Default (ES256; native: RS256)</option>' in form
    for profile, typed, alg in (("oidc", "", "ES256"), ("native", "", "RS256"), ("oidc", "RS256", "RS256")):
        client_id = f"{profile}-{typed}".lower().strip("-")
        typed_fields = {"client_id": client_id, "kind": {"oidc": "web"}.get(profile, profile), "id_token_alg": typed}
        assert await algorithm_after(create, **typed_fields) == alg, client_id
        page = f"{PAGE}/clients/{client_id}"
        assert f"<option selected>{alg}</option>" in (await ada.get(page)).text
        assert await algorithm_after(page, client_id=client_id, id_token_alg="") == alg, "not named"
        assert await algorithm_after(page, client_id=client_id, id_token_alg="EdDSA") == "EdDSA"


@pytest.mark.both_databases
async def test_clients_are_managed_by_who_may_save_and_reach_no_further(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga, ada = await console_browsers(OLGA), await console_browsers(ADA)
    clients = studio.services.oauth.clients.commands
    page = await olga.get(f"{PAGE}/new_client")
    assert "first_party" not in page.text
    assert f"Example: roles={SHOP}:roles adds" in page.text, "an ID, not a number with commas"
    fields: dict[str, Any] = {
        "client_id": "shop-web",
        "client_name": "Shop",
        "redirect_uris": "https://shop.example/callback",
        "scopes": ["openid", "email"],
        "claims": f"roles={SHOP}:roles",
    }
    wrong = await olga.post(f"{PAGE}/new_client", **fields | {"redirect_uris": "shop.example"}, kind="web")
    assert (wrong.status_code, "a redirect URI must be https" in wrong.text) == (400, True)
    reserved = fields | {"redirect_uris": "https://shop.example/callback?code=x"}
    wrong = await olga.post(f"{PAGE}/new_client", **reserved, kind="web")
    assert (wrong.status_code, "the query parameter code is reserved" in wrong.text) == (400, True)
    await olga.get(f"{PAGE}/new_client")
    secret = secret_on(await olga.post(f"{PAGE}/new_client", **fields, kind="web"))
    created = await clients.get("shop-web")
    assert (created.application_id, created.first_party, created.may_exchange, created.scopes) == (
        SHOP,
        False,
        False,
        ("openid", "email"),
    )
    client_path = f"{PAGE}/clients/shop-web"
    assert (await olga.get(f"{APPLICATIONS}/{WIKI}/clients/shop-web")).status_code == 404
    page = await olga.get(client_path)
    assert secret not in page.text
    refusal = await olga.post(client_path, **fields | {"claims": "roles=1:roles"})
    assert refusal.status_code == 403, "claims of a different application"
    await ada.get(client_path)
    await olga.get(client_path)
    await olga.post(client_path, **fields | {"client_name": "The Shop"})
    stale = await ada.post(client_path, **fields | {"client_name": "Ada's"}, first_party="yes")
    assert (stale.status_code, "The Shop" in stale.text) == (409, True)
    await olga.get(client_path)
    await olga.post(client_path, **fields | {"client_name": "Our Shop"})
    assert (await clients.get("shop-web")).name == "Our Shop"

    await olga.get(f"{client_path}/rotate")
    newer = secret_on(await olga.post(f"{client_path}/rotate"))
    for either in (secret, newer):
        response = await studio.client.post(
            "/proxy/oauth/token",
            data={"grant_type": "authorization_code", "code": "x", "redirect_uri": "https://shop.example/callback"},
            auth=("shop-web", either),
        )
        assert response.json()["error"] == "invalid_grant", "the client is accepted, the code is not"
    connect = await olga.get(f"{PAGE}/connect?client=shop-web&snippet=django")
    assert "https://shop.example/oidc/callback/" in connect.text  # the program has it, the client does not
    assert "This client does not have the redirect URI" in connect.text
    assert newer not in connect.text
    await olga.get(f"{client_path}/remove")
    await olga.post(f"{client_path}/remove")
    assert "No clients yet" in (await olga.follow()).text
    assert (await (await console_browsers(DEV)).get(client_path)).status_code == 403


def public_pem() -> str:
    key = application_private_key().public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
