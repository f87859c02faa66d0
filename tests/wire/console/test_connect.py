"""Connect, the kinds of a new application, and the file of a new secret."""

import asyncio
import json
import re
import shutil
from collections.abc import Mapping
from html import unescape
from pathlib import Path

import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from gatehouse.keys.model import Algorithm
from gatehouse.oauth.model import ClientProfile
from gatehouse.web.console.applications.schema_changes import rules_of
from gatehouse.web.console.applications.snippets import BY_NAME, SNIPPETS, render_snippet
from tests.support.browser import HttpBrowser, hidden_fields
from tests.support.console import ADA, DEV, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers, apply_document
from tests.support.oauth import an_oidc_client, claims_of
from tests.support.service import RunningService
from tests.support.studio import FACTOR

APPLICATIONS = "/console/applications"
CONNECT = f"{APPLICATIONS}/{SHOP}/connect"
ENVIRONMENT = re.compile(r'<textarea id="environment"[^>]*>([^<]*)</textarea>')
TYPED = {"name": "Forum", "description": "", "project_id": PROJECT}


def environment_on(page: str) -> Mapping[str, str]:
    match = ENVIRONMENT.search(page)
    assert match is not None, page
    lines = unescape(match[1]).splitlines()
    return {name: value.strip("'") for name, _, value in (line.partition("=") for line in lines)}


async def test_every_snippet_is_shown_with_the_values_of_the_installation(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga, dev = await console_browsers(OLGA), await console_browsers(DEV)
    for snippet in SNIPPETS:
        page = (await olga.get(f"{CONNECT}?snippet={snippet.name}")).text
        plain = unescape(re.sub(r"</?span[^>]*>", "", page))
        for file in render_snippet(snippet, None, application_id=SHOP, base_url=studio.base_url):
            assert file.text in plain, (snippet.name, file.name)
        marks = {"run": "Run by our tests", "compiled": "Compiled by our tests", "not_run": "Not run by our tests"}
        assert re.findall(r">(\w+ (?:run )?by our tests)<", page) == [
            marks[snippet.check_of(file)] for file in snippet.files
        ], snippet.name
        for name in snippet.downloads:
            assert f'href="/docs/clients/{name}"' in page
            assert (await studio.client.get(f"/docs/clients/{name}")).status_code == 200
    assert "The values are examples: you cannot see the clients" in (await dev.get(CONNECT)).text


async def test_proxies_are_shown_with_the_site_of_the_application_to_administrators_alone(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(
        studio, f'applications: [{{application_id: {SHOP}, protected_sites: {{"https://shop.example": "a.b"}}}}]'
    )
    ada, olga = await console_browsers(ADA), await console_browsers(OLGA)
    for browser, site in ((ada, "shop.example"), (olga, "wiki.example")):
        page = (await browser.get(f"{CONNECT}?snippet=nginx")).text
        assert f"server_name {site};" in unescape(re.sub(r"</?span[^>]*>", "", page))


async def new_application(browser: HttpBrowser, kind: str, **fields: str) -> str:
    await browser.get(f"{APPLICATIONS}/new/{kind}")
    page = await browser.post(f"{APPLICATIONS}/new/{kind}", **TYPED | fields)
    return (await browser.follow()).text if page.is_redirect else page.text


async def test_each_kind_of_application_comes_with_what_it_needs(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga = await console_browsers(OLGA)
    clients = studio.services.oauth.clients.commands

    page = await new_application(olga, "web", name="Web", redirect_uris="http://localhost:3000/cb")
    values = environment_on(page)
    web = await clients.get(values["OIDC_CLIENT_ID"])
    assert (web.profile, web.public, web.require_pkce, web.redirect_uris) == (
        ClientProfile.OIDC,
        False,
        True,
        ("http://localhost:3000/cb",),
    )
    assert web.token_settings.id_token_alg is Algorithm.ES256
    assert values["OIDC_ISSUER"] == studio.base_url
    token = {"grant_type": "authorization_code", "code": "x", "redirect_uri": "http://localhost:3000/cb"}
    answer = await studio.client.post(
        "/proxy/oauth/token", data=token, auth=(web.client_id, values["OIDC_CLIENT_SECRET"])
    )
    assert answer.json()["error"] == "invalid_grant", "the secret of the file is the client's"

    page = await new_application(olga, "page", name="Page", redirect_uris="https://page.example/cb")
    assert "Application created." in page
    (client_id,) = set(re.findall(r"page-[0-9a-f]{6}", page))
    public = await clients.get(client_id)
    assert (public.public, public.origins) == (True, ("https://page.example",))

    page = await new_application(olga, "product", name="Code", product="gitea", app_url="https://git.example/")
    gitea = await clients.get(environment_on(page)["OIDC_CLIENT_ID"])
    assert gitea.redirect_uris == ("https://git.example/user/oauth2/gatehouse/callback",)
    assert not gitea.require_pkce, "Gitea sends none"

    page = await new_application(olga, "machine", name="Machine")
    values = environment_on(page)
    keys = await studio.services.storage.application_keys.access_keys(int(values["GATEHOUSE_APPLICATION"]))
    assert len(keys) == 1

    page = await new_application(olga, "job", name="Nightly")
    values = environment_on(page)
    nightly = await clients.get(values["OIDC_CLIENT_ID"])
    assert (nightly.machine, nightly.redirect_uris, nightly.scopes) == (True, (), ())
    assert f"{nightly.client_id}:{values['OIDC_CLIENT_SECRET']} -d grant_type=client_credentials" in unescape(page)
    assert values.keys() == {"OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"}

    page = await new_application(olga, "game", name="Game")
    assert "gatehouse_login" in page


async def test_a_bad_redirect_uri_creates_nothing_and_keeps_what_was_typed(
    console_browsers: ConsoleBrowsers,
) -> None:
    olga = await console_browsers(OLGA)
    page = await new_application(olga, "web", name="Broken", redirect_uris="forum.example")
    assert "a redirect URI must be https" in page
    assert 'value="Broken"' in page
    assert "Broken" not in (await olga.get(APPLICATIONS)).text
    page = await new_application(olga, "product", name="Broken", product="nonsense", app_url="https://a.example")
    assert "Choose a product from the list." in page
    assert (await (await console_browsers(PIA)).get(f"{APPLICATIONS}/new")).status_code == 403


async def test_file_of_a_new_secret_is_sent_back_to_its_form_only(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    keys = f"{APPLICATIONS}/{SHOP}/access_keys"
    await ada.get(keys)
    page = await ada.post(keys, comment="the server")
    text = "".join(f"{name}={value}\n" for name, value in environment_on(page.text).items())
    path = f"{APPLICATIONS}/{SHOP}/env"
    assert f'action="{path}"' in page.text
    file = await ada.post(path, text=text.replace("\n", "\r\n"), name=f"application-{SHOP}")
    assert file.text == text
    assert file.headers["content-disposition"] == f'attachment; filename="application-{SHOP}.env"'
    assert file.headers["cache-control"] == "no-store"
    assert (await ada.client.post(path, data={"text": "A=1", "name": "a"})).status_code == 403, "without the token"
    csrf = hidden_fields((await ada.get(keys)).text)["csrf"]
    for wrong in ({"text": "A=1", "name": 'a"; x'}, {"text": "A" * 16_385, "name": "a"}):
        assert (await ada.client.post(path, data={"csrf": csrf, **wrong})).status_code == 400
    pia = await console_browsers(PIA)
    csrf = hidden_fields((await pia.get("/account")).text)["csrf"]
    sent = {"csrf": csrf, "text": "A=1", "name": "a"}
    assert (await pia.client.post(path, data=sent)).status_code == 403


async def test_snippet_that_checks_permissions_runs_as_it_is(
    studio: RunningService, console_browsers: ConsoleBrowsers, tmp_path: Path
) -> None:
    ada = await console_browsers(ADA)
    keys = f"{APPLICATIONS}/{SHOP}/access_keys"
    await ada.get(keys)
    values = environment_on((await ada.post(keys, comment="the server")).text)
    user = await studio.services.storage.accounts.user(PIA)
    jwt = await studio.services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR)
    (check,) = render_snippet(BY_NAME["check"], None, application_id=SHOP, base_url=studio.base_url)
    (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euc",
        check.text,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "JWT": jwt},
        stdout=asyncio.subprocess.PIPE,
    )
    answer, _ = await process.communicate()
    assert b"user.kick" in answer, answer


VERIFIERS = {
    "verify-node": ("node", "node verify.mjs"),
    "verify-go": ("go", "go run main.go"),
    "verify-csharp": ("mcs", "mcs -r:System.Net.Http Verify.cs && timeout 30 mono Verify.exe"),
}


@pytest.mark.parametrize("name", VERIFIERS)
async def test_snippets_that_verify_a_player_tell_the_player_and_refuse_another_device(
    studio: RunningService, console_browsers: ConsoleBrowsers, tmp_path: Path, name: str
) -> None:
    program, command = VERIFIERS[name]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    ada = await console_browsers(ADA)
    keys = f"{APPLICATIONS}/{SHOP}/access_keys"
    await ada.get(keys)
    values = environment_on((await ada.post(keys, comment="the server")).text)
    user = await studio.services.storage.accounts.user(PIA)
    jwt = await studio.services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR)
    (file,) = render_snippet(BY_NAME[name], None, application_id=SHOP, base_url=studio.base_url)
    (tmp_path / file.name).write_text(file.text)
    for factor, expected in ((FACTOR, True), ("another device", False)):
        process = await asyncio.create_subprocess_exec(
            *("bash", "-euc", command),
            cwd=tmp_path,
            env={
                "PATH": "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin",
                "HOME": str(tmp_path),
                **values,
                "JWT": jwt,
                "FACTOR": factor,
            },
            stdout=asyncio.subprocess.PIPE,
        )
        answer, _ = await process.communicate()
        assert (PIA in answer.decode()) is expected, (factor, answer)


async def test_snippet_of_a_machine_gets_a_token_for_the_api_of_its_application(
    studio: RunningService, console_browsers: ConsoleBrowsers, tmp_path: Path
) -> None:
    resource = "https://api.shop.example/matches"
    api = f"{{resource: '{resource}', scopes: {{read: {{title: Read}}}}}}"
    await apply_document(studio, f"applications: [{{application_id: {SHOP}, api: {api}}}]")
    olga = await console_browsers(OLGA)
    await olga.get(f"{APPLICATIONS}/{SHOP}/new_client?kind=machine")
    created = await olga.post(
        f"{APPLICATIONS}/{SHOP}/new_client",
        client_name="Nightly",
        client_id="nightly",
        kind="machine",
        scopes="openid",
        may_exchange="",
    )
    (tmp_path / ".env").write_text("".join(f"{k}={v}\n" for k, v in environment_on(created.text).items()))
    page = (await olga.get(f"{CONNECT}?client=nightly")).text
    assert "Declare the API" in page, "the snippet of a machine comes first"
    plain = unescape(re.sub(r"</?span[^>]*>", "", page))
    command = plain[plain.index("set -a; . ./.env") : plain.index("</code></pre>", plain.index("set -a; . ./.env"))]
    process = await asyncio.create_subprocess_exec(
        "bash", "-euc", command, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, stdout=asyncio.subprocess.PIPE
    )
    answer, _ = await process.communicate()
    body = msgspec.json.decode(answer)
    assert (body["scope"], claims_of(body["access_token"])["aud"]) == ("read", resource)
    await olga.get(f"{APPLICATIONS}/{SHOP}/clients/nightly")
    await olga.post(f"{APPLICATIONS}/{SHOP}/clients/nightly", client_name="Nightly job", kind="machine", version="1")
    saved = await studio.services.oauth.clients.commands.get("nightly")
    assert (saved.name, saved.machine, saved.scopes) == ("Nightly job", True, ())


NEW_CLIENT = f"{APPLICATIONS}/{SHOP}/new_client"
KEY = RSAKey.generate_key(2048, {"kid": "k1", "use": "sig"})
PLATFORM = {
    "issuer": "https://platform.example",
    "subject": "system:serviceaccount:shop:nightly",
    "jwks": {"keys": [KEY.as_dict(private=False)]},
}


async def create_machine(browser: HttpBrowser, identities: str) -> str:
    """Fill in the form of a machine that proves itself with tokens of its platform, and may act for people."""
    await browser.get(f"{NEW_CLIENT}?kind=machine")
    machine = {
        "client_name": "Nightly",
        "client_id": "nightly",
        "kind": "machine",
        "may_exchange": "",
        "may_act": "yes",
    }
    page = await browser.post(NEW_CLIENT, **machine, workload_identities=identities)
    return (await browser.follow()).text if page.is_redirect else page.text


async def test_snippet_of_a_workload_gets_a_token_without_a_secret(
    studio: RunningService, console_browsers: ConsoleBrowsers, tmp_path: Path
) -> None:
    olga = await console_browsers(OLGA)
    assert "OIDC_CLIENT_SECRET" not in await create_machine(olga, json.dumps([PLATFORM]))
    saved = await studio.services.oauth.clients.commands.get("nightly")
    assert (saved.may_act, len(saved.workload_identities), saved.secrets) == (True, 1, ())
    form = (await olga.get(f"{APPLICATIONS}/{SHOP}/clients/nightly")).text
    assert "/rotate" not in form
    page = (await olga.get(f"{CONNECT}?client=nightly")).text
    assert "/docs/guides/workload-identity" in page
    plain = unescape(re.sub(r"</?span[^>]*>", "", page))
    command = plain[plain.index("TOKEN_FILE=/") : plain.index("</code></pre>", plain.index("TOKEN_FILE=/"))]
    now = studio.clock.now()
    claims = {
        "iss": PLATFORM["issuer"],
        "sub": PLATFORM["subject"],
        "aud": studio.base_url,
        "iat": now,
        "exp": now + 60,
    }
    (tmp_path / "token").write_text(jwt.encode({"alg": "RS256", "kid": "k1"}, claims, KEY))
    command = command.replace("/var/run/secrets/gatehouse/token", str(tmp_path / "token"))
    process = await asyncio.create_subprocess_exec(
        "bash", "-euc", command, env={"PATH": "/usr/bin:/bin"}, stdout=asyncio.subprocess.PIPE
    )
    answer, _ = await process.communicate()
    assert msgspec.json.decode(answer)["token_type"] == "Bearer"


async def test_a_workload_identity_that_does_not_fit_is_told_with_its_place_and_nothing_of_it(
    console_browsers: ConsoleBrowsers,
) -> None:
    olga = await console_browsers(OLGA)
    entry = {key: value for key, value in PLATFORM.items() if key != "jwks"}
    for identities, problem in (
        ('[\n  {"issuer": "https://secret.example",\n   "subject": }\n]', "Line 3 is not JSON."),
        ('[{"issuer": "https://secret.example"', "Line 1 is not JSON."),
        ('{"issuer": "https://secret.example"}', "Has the wrong type or length."),
        (json.dumps([{**entry, "claims": {"secret": 7}}]), "workload_identities[0].claims[...]: has the wrong type"),
        (json.dumps([{**PLATFORM, "subjet": "secret"}]), "workload_identities[0]: has an unknown member subjet."),
        (json.dumps([PLATFORM, {"issuer": "https://secret.example"}]), "identities[1]: needs the member subject."),
        (
            json.dumps([PLATFORM, {**entry, "discovery": True, "subject": "secret:*"}]),
            "workload_identities[1].subject: ",
        ),
    ):
        page = await create_machine(olga, identities)
        (told,) = re.findall(r'role="alert"[^>]*>(?:<svg.*?</svg>)?(.*?)</', page, re.DOTALL)
        assert problem in unescape(told), (problem, told)
        assert "secret" not in told, "what was typed may be one"
        assert "https://secret.example" in unescape(page) or "secret" in unescape(page), "it is kept in the form"


async def test_permissions_are_pasted_as_lines_and_a_bad_one_is_named(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga, path = await console_browsers(OLGA), f"{APPLICATIONS}/{SHOP}/rules/several"
    await olga.get(path)
    for lines, problem in (
        ("chat.read\nuser.kick again", "Line 2: user.kick already exists."),
        ("chat.read\n\nchat.read", "Line 3: chat.read already exists"),
        ("chat read\nuser.kick.hard", "Line 2: user.kick.hard is a group of permissions, or below one"),
        ("chät.read", "Line 1: use letters"),
        (" ", "Enter 1 to 500 permissions."),
    ):
        page = await olga.post(path, lines=lines, section="private_data")
        assert page.status_code == 400
        assert problem in unescape(page.text), lines
        assert lines.split("\n")[0].strip() in unescape(page.text), "what was typed is lost"
    await olga.post(path, lines="chat.read Read the chat\r\nchat.write", section="private_data")
    page = (await olga.follow()).text
    assert "Permissions added" in page
    assert "Read the chat" in page
    model = (await studio.services.storage.permissions.application_models([SHOP]))[SHOP]
    added = {str(rule): leaf.value for rule, leaf in rules_of(model).items() if "chat" in rule.path}
    assert added == {"private_data.chat.read": False, "private_data.chat.write": False}


async def test_connect_waits_for_the_first_sign_in_and_shows_what_differs(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    hub = await an_oidc_client(studio, "hub", application_id=SHOP)
    page = f"{CONNECT}?client=hub"
    assert "Waiting for the first sign-in" in (await ada.get(page)).text
    await studio.client.get(hub.authorize_path(redirect_uri="https://hub.example/other?code=private"))
    refused = (await ada.get(page)).text
    assert "A sign-in was refused" in refused
    assert ("https://hub.example/other" in refused, "private" in refused) == (True, False)
    await studio.clock.advance(1)
    await hub.sign_in("pia@players.example")
    assert "The first sign-in arrived" in (await ada.get(page)).text


async def test_rotation_shows_the_one_line_that_changes_and_the_end_of_the_old_secret(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    await an_oidc_client(studio, "hub", application_id=SHOP)
    rotate = f"{APPLICATIONS}/{SHOP}/clients/hub/rotate"
    await ada.get(rotate)
    page = (await ada.post(rotate)).text
    assert list(environment_on(page)) == ["OIDC_CLIENT_SECRET"]
    assert "The old secret works until" in page
