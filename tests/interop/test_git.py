"""Debian's git-credential-oauth: a public client with PKCE on any loopback port (RFC 8252)."""

import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import httpx2

from tests.interop.conftest import GatehouseNode
from tests.interop.person import PersonInBrowser
from tests.interop.toolchains import find_git_credential_oauth
from tests.support.capabilities import Capability, require_program
from tests.support.processes import inherited_environment

HELPER: Final = Capability(name="git-credential-oauth", find=cache(find_git_credential_oauth), optional=True)
TIMEOUT: Final = 30


def test_git_gets_an_access_token_for_a_password(
    gatehouse: GatehouseNode, person: PersonInBrowser, tmp_path: Path
) -> None:
    helper = require_program(HELPER)
    gatehouse.register("git", "--redirect-uri", "http://127.0.0.1", "--public")
    environment = git_environment(gatehouse.issuer, tmp_path)
    with subprocess.Popen(
        [str(helper), "get"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(f"protocol=http\nhost={gatehouse.issuer.removeprefix('http://')}\n\n")
        process.stdin.close()
        address = next(word for line in process.stderr for word in line.split() if word.startswith("http"))
        assert person.open_address(address).status_code == 200
        assert process.stdout is not None
        answer = dict(line.rstrip("\n").split("=", 1) for line in process.stdout)
        assert process.wait(TIMEOUT) == 0, process.stderr.read()

    userinfo = httpx2.get(
        f"{gatehouse.issuer}/proxy/oauth/userinfo", headers={"Authorization": f"Bearer {answer['password']}"}
    )
    assert userinfo.json()["sub"] == gatehouse.user_id


def git_environment(issuer: str, home: Path) -> Mapping[str, str]:
    """Settings for the service as a git host, without a browser: the helper also prints the URL."""
    settings = {
        "oauthClientId": "git",
        "oauthScopes": "openid",
        "oauthAuthURL": "/proxy/oauth/authorize",
        "oauthTokenURL": "/proxy/oauth/token",
    }
    lines = [f"\t{name} = {value}" for name, value in settings.items()]
    (home / ".gitconfig").write_text("\n".join((f'[credential "{issuer}"]', *lines, "")))
    return inherited_environment({"HOME": str(home), "BROWSER": "true"})
