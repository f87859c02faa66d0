"""Apache with Debian's mod_auth_openidc, in front of a page."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from string import Template
from typing import Final

import httpx2
import pytest

from tests.interop.conftest import TRIES, GatehouseNode, RegisteredClient
from tests.interop.person import LOGIN, PersonInBrowser
from tests.interop.toolchains import APACHE, APACHE_MODULES, CLIENTS, find_mod_auth_openidc
from tests.support.capabilities import Capability, require_program
from tests.support.oauth import header_of
from tests.support.postgres import make_server_directory, server_user
from tests.support.processes import LOOPBACK, WatchedProcess, free_port

MODULE: Final = Capability(name="mod_auth_openidc", find=cache(find_mod_auth_openidc), optional=True)
CONFIGURATION: Final = Template((CLIENTS / "mod_auth_openidc" / "apache.conf").read_text())


@pytest.fixture
def apache(gatehouse: GatehouseNode) -> Iterator[str]:
    require_program(MODULE)
    port = free_port()
    registered = gatehouse.register("apache", "--redirect-uri", f"http://{LOOPBACK}:{port}/callback")
    with serve_apache(gatehouse, registered, port):
        yield f"http://{LOOPBACK}:{port}"


@contextmanager
def serve_apache(gatehouse: GatehouseNode, registered: RegisteredClient, port: int) -> Iterator[WatchedProcess]:
    directory = make_server_directory()
    try:
        with WatchedProcess(command(gatehouse, registered, port, directory), user=server_user()) as process:
            process.wait_until_started("resuming normal operations", process.stdout)
            yield process
    finally:
        shutil.rmtree(directory)


def command(gatehouse: GatehouseNode, registered: RegisteredClient, port: int, directory: Path) -> list[str]:
    (directory / "page").write_text("the page")
    settings = {
        "place": directory,
        "modules": APACHE_MODULES,
        "port": port,
        "issuer": gatehouse.issuer,
        "client_id": registered.client_id,
        "client_secret": registered.client_secret,
    }
    configuration = directory / "apache.conf"
    configuration.write_text(CONFIGURATION.substitute(settings))
    return [str(APACHE), "-DFOREGROUND", "-f", str(configuration)]


def test_apache_signs_in_verifies_refreshes_and_survives_new_keys(
    apache: str, gatehouse: GatehouseNode, person: PersonInBrowser
) -> None:
    page = person.open_address(f"{apache}/page")
    assert page.text == "the page"
    assert page.headers["x-sub"] == gatehouse.user_id
    assert page.headers["x-email"] == LOGIN, "the email comes from userinfo"
    assert person.forms == ["password", "decision"]

    gatehouse.sign_with_new_keys()
    refreshed = page
    for _ in range(TRIES):
        token = refreshed.headers["x-access-token"]
        refreshed = person.open_address(f"{apache}/callback?refresh={apache}/page&access_token={token}")
        assert refreshed.text == "the page"
        assert refreshed.headers["x-access-token"] != token
        if key_of(refreshed) != key_of(page):
            break
    assert key_of(refreshed) != key_of(page)

    person.client.cookies.delete("mod_auth_openidc_session")
    anew = person.open_address(f"{apache}/page")
    assert anew.headers["x-sub"] == gatehouse.user_id
    assert person.forms == ["password", "decision"], "the person was asked to sign in again"


def key_of(page: httpx2.Response) -> str:
    return str(header_of(page.headers["x-id-token"])["kid"])


def test_apache_with_a_wrong_secret_lets_no_one_in(gatehouse: GatehouseNode, person: PersonInBrowser) -> None:
    require_program(MODULE)
    port = free_port()
    registered = gatehouse.register("apache-wrong", "--redirect-uri", f"http://{LOOPBACK}:{port}/callback")
    wrong = RegisteredClient(client_id=registered.client_id, client_secret="a secret of someone else")
    with serve_apache(gatehouse, wrong, port) as process:
        page = person.open_address(f"http://{LOOPBACK}:{port}/page")
        assert "the page" not in page.text
        process.wait_for_line("invalid_client", process.stdout)
