"""Recipes are right for every kind of client."""

import json
import re
import subprocess
import tomllib
from hashlib import sha1 as sha1_of
from itertools import product
from urllib.parse import parse_qs

import pytest

from gatehouse.oauth.model import Client, ClientProfile
from gatehouse.permissions.model.application import Application
from gatehouse.web.console.applications.recipes import client_recipe

ISSUER = "https://sso.studio.example"
REDIRECT = "https://wiki.example/callback?a=b'c"
NOW = 1_800_000_000
PYTHON = ("authlib", "permissions", "game")
CONFIDENTIAL = ("mod_auth_openidc", "oauth2_proxy")
OIDC = ("by_hand", "openid_client", "authlib")


def sha1(text: str) -> str:
    return sha1_of(text.encode(), usedforsecurity=False).hexdigest()


def snippets(client: Client, *, issuer: str = ISSUER, **settings: object) -> dict[str, str]:
    application = Application(application_id=50_001, name="Wiki", settings=settings, created_at=NOW)
    return {recipe.name: recipe.text for recipe in client_recipe(client, application, base_url=issuer)}


def a_client(profile: ClientProfile, *, public: bool = False) -> Client:
    return Client(
        client_id="wiki",
        name="Wiki",
        profile=profile,
        redirect_uris=(REDIRECT,),
        scopes=("openid", "email", "trust"),
        public=public,
        created_at=NOW,
    )


@pytest.mark.parametrize(
    ("profile", "public", "programs"),
    [
        (ClientProfile.OIDC, False, (*OIDC, *CONFIDENTIAL)),
        (ClientProfile.OIDC, True, OIDC),
        (ClientProfile.NATIVE, False, ("native",)),
    ],
)
def test_a_client_gets_the_programs_that_fit_it_with_its_values(
    profile: ClientProfile, *, public: bool, programs: tuple[str, ...]
) -> None:
    recipes = snippets(a_client(profile, public=public))
    assert tuple(recipes) == ("discovery", "environment", *programs, "permissions", "game")
    assert recipes["discovery"] == f"{ISSUER}/.well-known/openid-configuration"
    for name, text in recipes.items():
        assert ISSUER in text, name
        assert "$issuer" not in text, name
        assert ("SECRET" not in text and "secret-you-kept" not in text) or not public, name
        assert "trust" not in text, name
    for name in {*programs, "environment"}:
        assert "wiki" in recipes[name]
    for name in programs:
        assert "S256" in recipes[name], name
    for name in PYTHON:
        if name in recipes:
            compile(recipes[name], name, "exec")


@pytest.mark.parametrize(
    ("profile", "public", "name", "proof"),
    [
        (ClientProfile.OIDC, False, "by_hand", ["-u", "wiki:hidden"]),
        (ClientProfile.OIDC, True, "by_hand", ["-d", "client_id=wiki"]),
        (ClientProfile.NATIVE, False, "native", ["-H", f"Authorization: Bearer {sha1(f'{REDIRECT}hidden')}"]),
    ],
)
def test_a_shell_asks_for_what_the_client_has(
    profile: ClientProfile, *, public: bool, name: str, proof: list[str]
) -> None:
    """Run the real shell without the network and randomness."""
    stubs = "curl() { printf '%s\\n' \"$@\"; }\nopenssl() { cat >/dev/null </dev/null; echo made; }\n"
    script = stubs + "OIDC_CLIENT_SECRET=hidden CODE=c\n" + snippets(a_client(profile, public=public))[name]
    done = subprocess.run(["/bin/sh", "-eu"], input=script, capture_output=True, text=True, check=True)
    address, *arguments = done.stdout.splitlines()
    parameters = parse_qs(address.partition("?")[2])
    assert (parameters["redirect_uri"], parameters["scope"], parameters["client_id"]) == (
        [REDIRECT],
        ["openid email"],
        ["wiki"],
    )
    assert arguments[:2] == ["-s", f"{ISSUER}/proxy/oauth/token"]
    assert arguments[2:4] == proof
    assert f"redirect_uri={REDIRECT}" in arguments


def test_files_are_what_their_readers_parse() -> None:
    recipes = snippets(a_client(ClientProfile.OIDC))
    proxy = tomllib.loads(recipes["oauth2_proxy"])
    assert (proxy["oidc_issuer_url"], proxy["client_id"], proxy["redirect_url"]) == (ISSUER, "wiki", REDIRECT)
    texts = dict(re.findall(r"(redirect_uri|scope): (\".*\"),", recipes["openid_client"]))
    assert {name: json.loads(text) for name, text in texts.items()} == {
        "redirect_uri": REDIRECT,
        "scope": "openid email",
    }


def test_a_game_has_a_recipe_unless_games_are_switched_off_and_plain_http_is_allowed_by_name() -> None:
    client = a_client(ClientProfile.OIDC)
    assert "game" not in snippets(client, game={"enabled": False})
    for issuer, public in product((ISSUER, "http://localhost:8080"), (False, True)):
        script = snippets(a_client(ClientProfile.OIDC, public=public), issuer=issuer)["openid_client"]
        assert ("allowInsecureRequests" in script) is issuer.startswith("http:")
        assert ("oidc.None()" in script) is public
