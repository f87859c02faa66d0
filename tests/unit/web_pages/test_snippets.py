"""Snippets have the values of their client, and their files are what their readers parse."""

import configparser
import json
import re
import shlex
import subprocess
import tomllib
from hashlib import sha1 as sha1_of
from importlib.resources import files
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

import pytest
from msgspec.structs import replace

from gatehouse.oauth.model import Client, ClientProfile
from gatehouse.web.console.applications.environment import Variable, environment_file
from gatehouse.web.console.applications.snippets import (
    BY_NAME,
    CLIENT_KINDS,
    FOLDER,
    SNIPPETS,
    SnippetKind,
    example_site,
    render_snippet,
)
from tests.support.guides import programs_of, texts_of

ISSUER: Final = "https://sso.studio.example"
REDIRECT: Final = "https://wiki.example/callback?a=b'c"
NOW: Final = 1_800_000_000
TAGS: Final = re.compile(r"</?span[^>]*>")


def sha1(text: str) -> str:
    return sha1_of(text.encode(), usedforsecurity=False).hexdigest()


def a_client(profile: ClientProfile = ClientProfile.OIDC, *, public: bool = False) -> Client:
    return Client(
        client_id="wiki",
        name="Wiki",
        profile=profile,
        redirect_uris=(REDIRECT,),
        scopes=("openid", "email", "trust"),
        public=public,
        created_at=NOW,
    )


def texts(name: str, client: Client | None = None, *, issuer: str = ISSUER) -> dict[str, str]:
    rendered = render_snippet(BY_NAME[name], client, application_id=50_001, base_url=issuer)
    return {file.name: file.text for file in rendered}


def test_every_template_belongs_to_a_snippet() -> None:
    folder = Path(str(files("gatehouse.web").joinpath(FOLDER)))
    stored = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert stored == {f"{snippet.name}/{file}.j2" for snippet in SNIPPETS for file in snippet.files}


@pytest.mark.parametrize(
    ("client", "fitting"),
    [
        (a_client(), {SnippetKind.WEB, SnippetKind.PRODUCT, SnippetKind.ANY}),
        (a_client(public=True), {SnippetKind.PAGE, SnippetKind.ANY}),
        (a_client(ClientProfile.NATIVE), {SnippetKind.NATIVE}),
    ],
    ids=["confidential", "public", "native"],
)
def test_snippets_that_fit_a_client_have_its_values(client: Client, fitting: set[SnippetKind]) -> None:
    shown = [one for one in SNIPPETS if one.kind in CLIENT_KINDS and one.fits(client)]
    assert {one.kind for one in shown} == fitting
    for snippet in shown:
        whole = "\n".join(texts(snippet.name, client).values())
        assert ISSUER in whole, snippet.name
        assert "wiki" in whole, snippet.name
        assert "trust" not in whole, snippet.name
        assert not client.public or "SECRET" not in whole, snippet.name
        assert snippet.callback in whole or snippet.name in {"django", "nextjs", "spring", "aspnet", "grafana"} | {
            "gitea",
            "nextcloud",
        }, "these build the redirect URI themselves"


def test_code_in_colors_is_the_same_code() -> None:
    for snippet in SNIPPETS:
        for file in render_snippet(snippet, None, application_id=50_001, base_url=ISSUER):
            assert file.highlighted.striptags() == " ".join(file.text.split()), (snippet.name, file.name)
            colored = TAGS.sub("", str(file.highlighted))
            assert "<" not in colored, "what is code must be escaped"


@pytest.mark.parametrize(
    ("name", "client", "proof"),
    [
        ("shell", a_client(), ["-u", "wiki:hidden"]),
        ("shell", a_client(public=True), ["-d", "client_id=wiki"]),
        (
            "native",
            a_client(ClientProfile.NATIVE),
            ["-H", f"Authorization: Bearer {sha1(f'{REDIRECT}hidden')}"],
        ),
    ],
    ids=["confidential", "public", "native"],
)
def test_a_shell_asks_for_what_the_client_has(name: str, client: Client, proof: list[str], tmp_path: Path) -> None:
    """Run the real shell without the network and randomness."""
    stubs = "curl() { printf '%s\\n' \"$@\"; }\nopenssl() { cat >/dev/null </dev/null; echo made; }\n"
    (tmp_path / ".env").write_text(environment_file({Variable.CLIENT_SECRET: "hidden"}))
    (tmp_path / "sign_in.sh").write_text(stubs + texts(name, client)["sign_in.sh"])
    done = subprocess.run(
        ["/bin/sh", "-eu", "sign_in.sh"], cwd=tmp_path, input="c\n", capture_output=True, text=True, check=True
    )
    address, *arguments = done.stdout.splitlines()
    parameters = parse_qs(address.partition("?")[2])
    assert (parameters["redirect_uri"], parameters["scope"], parameters["client_id"]) == (
        [REDIRECT],
        ["openid email"],
        ["wiki"],
    )
    assert arguments[:2] == ["-s", f"{ISSUER}/proxy/oauth/token"]
    assert arguments[2:4] == proof
    assert {"code=c", f"redirect_uri={REDIRECT}"} <= set(arguments)


def test_files_are_what_their_readers_parse() -> None:
    for name, file in (
        ("flask", "app.py"),
        ("fastapi", "app.py"),
        ("django", "settings.py"),
        ("permissions", "app.py"),
    ):
        compile(texts(name, a_client())[file], file, "exec")
    proxy = tomllib.loads(texts("oauth2-proxy", a_client())["oauth2-proxy.cfg"])
    assert (proxy["oidc_issuer_url"], proxy["client_id"]) == (ISSUER, "wiki")
    assert proxy["redirect_url"] == "https://wiki.example/oauth2/callback"
    found = dict(re.findall(r"(redirect_uri|scope): (\".*\"),", texts("express", a_client())["app.mjs"]))
    assert {name: json.loads(text) for name, text in found.items()} == {
        "redirect_uri": REDIRECT,
        "scope": "openid email",
    }
    grafana = configparser.ConfigParser(interpolation=None)
    grafana.read_string(texts("grafana", a_client())["grafana.ini"])
    assert grafana["auth.generic_oauth"]["api_url"] == f"{ISSUER}/proxy/oauth/userinfo"


def test_plain_http_is_allowed_by_name_only() -> None:
    for issuer, is_plain in ((ISSUER, False), ("http://localhost:8080", True)):
        assert ("allowInsecureRequests" in texts("express", issuer=issuer)["app.mjs"]) is is_plain
        assert ("RequireHttpsMetadata" in texts("aspnet", issuer=issuer)["Program.cs"]) is is_plain


@pytest.mark.parametrize(("name", "block"), [("nginx", "nginx"), ("caddy", "caddyfile")])
def test_proxies_are_configured_as_in_the_guide_that_tests_run(name: str, block: str) -> None:
    assert [f"{text}\n" for text in texts(name).values()] == texts_of("protect-a-site", block)


def test_every_proxy_of_the_guide_names_host_and_application_literally() -> None:
    shown = [one for one in programs_of("protect-a-site") if one.section.startswith("3.")]
    assert [one.language for one in shown] == ["nginx", "caddyfile", "yaml"]
    for kind, block in ((one.language, one.text) for one in shown):
        assert re.search(r"/proxy/auth\?\S*\bapplication_id=50001\b", block), kind
        hosts = re.findall(r"X-Forwarded-Host:? (\S+?);?$", block, flags=re.MULTILINE)
        assert set(hosts) == {"wiki.example"}, kind
        assert not re.search(r"\$(http_host|host)\b", block), kind


@pytest.mark.parametrize(
    ("origins", "site"),
    [
        (["http://localhost:3000", "https://shop.example:8443", "https://wiki.example"], "shop.example:8443"),
        (["http://localhost:3000", "https://[::1]:3000"], "wiki.example"),
        ([], "wiki.example"),
    ],
)
def test_proxies_are_shown_with_the_first_site_that_fits(origins: list[str], site: str) -> None:
    assert example_site(origins) == site
    host, _, port = site.partition(":")
    (nginx,) = render_snippet(BY_NAME["nginx"], None, application_id=50_002, base_url=ISSUER, site=site)
    assert f"listen {port or 443} ssl;\n    server_name {host};" in nginx.text
    assert nginx.text.count(f" {site};") == 3 + (not port)
    assert "/proxy/auth?application_id=50002;" in nginx.text
    (caddy,) = render_snippet(BY_NAME["caddy"], None, application_id=50_002, base_url=ISSUER, site=site)
    assert caddy.text.startswith(f"{site} {{\n")
    assert caddy.text.count(f"X-Forwarded-Host {site}\n") == 2


def test_gitea_is_set_up_as_in_the_guide_that_tests_run() -> None:
    _, command = texts_of("connect-gitea", "console")
    (settings,) = texts_of("connect-gitea", "ini")
    shown = texts("gitea", replace(a_client(), client_id="gitea"))
    words = shlex.split(shown["add.sh"].partition("set +a\n")[2].replace("\\\n", " "))
    assert words == shlex.split(command.removeprefix("$ ").replace("\\\n", " "))
    assert f"{shown['app.ini']}\n" == settings


def test_permissions_are_checked_as_in_the_guide_that_tests_run() -> None:
    program = texts_of("connect-a-python-app", "python")[0].removesuffix("\n")
    filled_in = re.sub(r"  # https://.*", "", program.replace('os.environ["GATEHOUSE_URL"]', f'"{ISSUER}"'))
    shown = texts("permissions")["app.py"]
    assert shown == filled_in.replace('int(os.environ["GATEHOUSE_APPLICATION"])', "50001")
