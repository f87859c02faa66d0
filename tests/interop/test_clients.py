"""Third-party clients, unmodified, sign a person in at the running service through its real pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx2
import pytest

from tests.interop.conftest import TRIES, WHOLE, GatehouseNode, RegisteredClient
from tests.interop.person import LOGIN, PersonInBrowser
from tests.interop.programs import PROGRAMS, Program
from tests.support.capabilities import require_program
from tests.support.oauth import claims_of, header_of
from tests.support.processes import LOOPBACK, WatchedProcess, free_port

RUN: Final = [program for program in PROGRAMS if WHOLE or not program.is_slow]
pytestmark = pytest.mark.parametrize("program", [pytest.param(program, id=program.name) for program in RUN])


@contextmanager
def run_program(program: Program, issuer: str, registered: RegisteredClient, port: int) -> Iterator[str]:
    """Run the program; yield its base URL."""
    environment = {
        "ISSUER": issuer,
        "CLIENT_ID": registered.client_id,
        "CLIENT_SECRET": registered.client_secret,
        "PORT": str(port),
        **(program.environment or {}),
    }
    command = program.command(require_program(program.needs), program.name)
    with WatchedProcess(command, environment=environment) as process:
        process.wait_until_started("^ready", process.stdout)
        yield f"http://{LOOPBACK}:{port}"


def register(gatehouse: GatehouseNode, program: Program, client_id: str) -> tuple[RegisteredClient, int]:
    require_program(program.needs)
    port = free_port()
    home = f"http://{LOOPBACK}:{port}"
    options = () if program.uses_pkce else ("--no-require-pkce",)
    options = (*options, "--id-token-alg", program.alg) if program.alg else options
    after = ("--post-logout-uri", f"{home}/logged-out") if program.logs_out else ()
    return gatehouse.register(client_id, "--redirect-uri", f"{home}{program.callback}", *options, *after), port


def expect_success(page: httpx2.Response) -> dict[str, Any]:
    assert page.status_code == 200, page.text
    body: dict[str, Any] = page.json()
    return body


def test_a_client_signs_in_verifies_reads_refreshes_and_survives_new_keys(
    program: Program, gatehouse: GatehouseNode, person: PersonInBrowser
) -> None:
    registered, port = register(gatehouse, program, program.name)
    gatehouse.publish_new_keys()
    with run_program(program, gatehouse.issuer, registered, port) as home:
        first = expect_success(person.open_address(f"{home}/login"))
        assert first["sub"] == gatehouse.user_id
        assert person.forms == ["password", "decision"]
        assert claims_of(first["id_token"])["aud"] == registered.client_id

        userinfo = expect_success(person.open_address(f"{home}/userinfo"))
        assert userinfo["sub"] == gatehouse.user_id
        assert userinfo["email"] == LOGIN

        refreshed = expect_success(person.open_address(f"{home}/refresh"))
        assert refreshed["sub"] == gatehouse.user_id
        assert refreshed["id_token"] != first["id_token"]

        gatehouse.sign_with_new_keys()
        renewed = refreshed_with_another_key(person, home, refreshed["id_token"])
        if program.fetches_keys_at_once:
            gatehouse.sign_with_new_keys()  # after a theft: without prior publication
            refreshed_with_another_key(person, home, renewed)
        assert person.forms == ["password", "decision"], "the person was asked to sign in again"

        anew = expect_success(person.open_address(f"{home}/login"))
        assert anew["sub"] == gatehouse.user_id

        if program.logs_out:
            logged_out = person.open_address(f"{home}/logout")
            assert str(logged_out.url) == f"{home}/logged-out", logged_out.text
            assert expect_success(logged_out) == {"signed_in": False}
            assert expect_success(person.open_address(f"{home}/login"))["sub"] == gatehouse.user_id
            assert person.forms == ["password", "decision", "password"], "the person was still signed in"


def refreshed_with_another_key(person: PersonInBrowser, home: str, id_token: str) -> str:
    """Refresh until the service uses its new key; return the new id_token."""
    for _ in range(TRIES):
        renewed: str = expect_success(person.open_address(f"{home}/refresh"))["id_token"]
        if header_of(renewed)["kid"] != header_of(id_token)["kid"]:
            return renewed
    raise AssertionError("the service still signs with the old key")


def test_a_client_with_a_wrong_secret_is_refused(
    program: Program, gatehouse: GatehouseNode, person: PersonInBrowser
) -> None:
    registered, port = register(gatehouse, program, f"{program.name}-wrong")
    wrong = RegisteredClient(client_id=registered.client_id, client_secret="a secret of someone else")
    with run_program(program, gatehouse.issuer, wrong, port) as home:
        refusal = person.open_address(f"{home}/login")
        assert refusal.status_code >= 400, refusal.text
        assert program.refused_with in refusal.text
