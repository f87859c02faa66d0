"""oauth2-proxy in front of a page."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final
from urllib.parse import urlencode

import httpx2

from tests.interop.conftest import TRIES, GatehouseNode, RegisteredClient
from tests.interop.person import LOGIN, PersonInBrowser
from tests.interop.toolchains import find_oauth2_proxy
from tests.support.capabilities import Capability, require_program
from tests.support.nginx import wait_until_listening
from tests.support.oauth import claims_of, header_of
from tests.support.processes import LOOPBACK, WatchedProcess, free_port

PROXY: Final = Capability(name="oauth2-proxy", find=cache(find_oauth2_proxy), optional=True)
PAGE: Final = "Authenticated"  # what its upstream `static://200` says
ID_TOKEN: Final = "{id_token}"  # the proxy writes the person's there


@contextmanager
def serve_proxy(gatehouse: GatehouseNode, registered: RegisteredClient, port: int) -> Iterator[WatchedProcess]:
    settings = {
        "http-address": f"{LOOPBACK}:{port}",
        "upstream": "static://200",
        "provider": "oidc",
        "oidc-issuer-url": gatehouse.issuer,
        "client-id": registered.client_id,
        "client-secret": registered.client_secret,
        "redirect-url": f"http://{LOOPBACK}:{port}/oauth2/callback",
        "scope": "openid email profile offline_access",
        "code-challenge-method": "S256",
        "insecure-oidc-skip-nonce": "false",
        "email-domain": "*",
        "insecure-oidc-allow-unverified-email": "true",  # that of a new account is not
        "cookie-secret": "0123456789abcdef0123456789abcdef",
        "cookie-secure": "false",
        "cookie-refresh": "1ms",  # with the first request of each second
        "skip-provider-button": "true",
        "set-xauthrequest": "true",
        "set-authorization-header": "true",
        "pass-access-token": "true",
        "whitelist-domain": gatehouse.issuer.removeprefix("http://"),
    }
    command = (str(require_program(PROXY)), *(f"--{name}={value}" for name, value in settings.items()))
    with WatchedProcess(command) as process:
        wait_until_listening(port, process)
        yield process


def register(gatehouse: GatehouseNode, client_id: str) -> tuple[RegisteredClient, int]:
    require_program(PROXY)
    port = free_port()
    home = f"http://{LOOPBACK}:{port}"
    options = ("--redirect-uri", f"{home}/oauth2/callback", "--post-logout-uri", f"{home}/ping")
    return gatehouse.register(client_id, *options), port


def read_id_token(person: PersonInBrowser, home: str) -> str:
    """Let the proxy refresh and authenticate a request as it does for nginx; return the id_token it then has."""
    answer = person.client.get(f"{home}/oauth2/auth")
    assert answer.status_code == 202, answer.text
    assert answer.headers["x-auth-request-email"] == LOGIN
    return answer.headers["authorization"].removeprefix("Bearer ")


def test_oauth2_proxy_signs_in_refreshes_survives_new_keys_and_logs_out(
    gatehouse: GatehouseNode, person: PersonInBrowser
) -> None:
    registered, port = register(gatehouse, "oauth2-proxy")
    home = f"http://{LOOPBACK}:{port}"
    with serve_proxy(gatehouse, registered, port) as process:
        assert person.client.get(f"{home}/oauth2/auth").status_code == 401
        assert person.open_address(f"{home}/page").text == PAGE, process.output()
        assert person.forms == ["password", "decision"]

        id_token = read_id_token(person, home)
        claims = claims_of(id_token)
        assert (claims["sub"], claims["aud"]) == (gatehouse.user_id, registered.client_id)
        gatehouse.sign_with_new_keys()
        assert any(key_of(read_id_token(person, home)) != key_of(id_token) for _ in range(10 * TRIES))

        logged_out = log_out(gatehouse, person, home)
        assert str(logged_out.url) == f"{home}/ping"
        assert person.client.get(f"{home}/oauth2/auth").status_code == 401
        assert person.open_address(f"{home}/page").text == PAGE
        assert person.forms == ["password", "decision", "password"], "the person was still signed in"


def key_of(id_token: str) -> str:
    return str(header_of(id_token)["kid"])


def log_out(gatehouse: GatehouseNode, person: PersonInBrowser, home: str) -> httpx2.Response:
    endpoint = person.client.get(f"{gatehouse.issuer}/.well-known/openid-configuration").json()[
        "end_session_endpoint"
    ]
    target = f"{endpoint}?id_token_hint={ID_TOKEN}&{urlencode({'post_logout_redirect_uri': f'{home}/ping'})}"
    return person.open_address(f"{home}/oauth2/sign_out?{urlencode({'rd': target})}")


def test_oauth2_proxy_with_a_wrong_secret_lets_no_one_in(gatehouse: GatehouseNode, person: PersonInBrowser) -> None:
    registered, port = register(gatehouse, "oauth2-proxy-wrong")
    wrong = RegisteredClient(client_id=registered.client_id, client_secret="a secret of someone else")
    with serve_proxy(gatehouse, wrong, port) as process:
        page = person.open_address(f"http://{LOOPBACK}:{port}/page")
        assert page.status_code == 500
        process.wait_for_line("invalid_client", process.stderr)
