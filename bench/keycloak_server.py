"""Keycloak in production mode on PostgreSQL, as a contender of the single sign-on benchmark.

One node without a cluster, set up by `keycloak/realm.json`, pinned to the core of the other servers.
"""

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Final

import httpx2
from bench.machine import on_core
from bench.single_sign_on import KEYCLOAK as NAME
from bench.single_sign_on import REDIRECT, REQUEST_TIMEOUT, SECRET, SLOW_SECONDS, Contender
from tests.interop.person import LOGIN, NICK, PASSWORD
from tests.interop.toolchains import KEYCLOAK, find_keycloak
from tests.support.processes import LOOPBACK, DidNotStart, WatchedProcess, free_port
from tests.support.tls import NO_TRUST_STORE
from tools.client_deps import KEYCLOAK_PROGRAM
from tools.install import ensure_installed

REALM: Final = "/realms/bench"
START_SECONDS: Final = 600.0  # an empty database gets its tables first
POLL_SECONDS: Final = 0.5
WARM_UP: Final = ("flow", "refresh", "userinfo", "discovery", "JWKS")
WARM_UP_ROUNDS: Final = 6
LOGIN_FORM: Final = re.compile(r'<form [^>]*action="([^"]+)"')
OPTIONS: Final = (
    "--import-realm",
    "--http-enabled=true",
    f"--http-host={LOOPBACK}",
    "--cache=local",
    "--log-level=WARN",
    "--db-username=postgres",
    "--db-password=unused",
)


def has_keycloak() -> bool:
    ensure_installed(KEYCLOAK_PROGRAM)
    return find_keycloak() is not None


@contextmanager
def keycloak(database_url: str) -> Iterator[Contender]:
    """Start Keycloak on an empty database and yield it when it is warm."""
    home = find_keycloak()
    assert home is not None  # noqa: S101 - the caller has checked
    (home / "data" / "import").mkdir(parents=True, exist_ok=True)
    shutil.copy(KEYCLOAK / "realm.json", home / "data" / "import" / "bench-realm.json")
    port = free_port()
    origin = f"http://localhost:{port}"
    options = [
        *OPTIONS,
        f"--http-port={port}",
        f"--hostname={origin}",
        f"--db-url=jdbc:postgresql://{database_url.rpartition('@')[2]}",
    ]
    with on_core(0):
        process = WatchedProcess(
            [str(home / "bin" / "kc.sh"), "start", "--optimized", *options],
            environment={
                "JAVA_OPTS_KC_HEAP": "-Xms512m -Xmx512m",
                "BENCH_SECRET": SECRET,
                "BENCH_REDIRECT": REDIRECT,
                "BENCH_LOGIN": LOGIN,
                "BENCH_NICK": NICK,
                "BENCH_PASSWORD": PASSWORD,
            },
        )
    with process:
        endpoints = wait_for_discovery(process, f"{origin}{REALM}/.well-known/openid-configuration")
        contender = sign_in(
            Contender(
                name=NAME,
                storage="PostgreSQL",
                alg="RS256",
                issuer=origin,
                port=port,
                client_id="bench",
                secret=SECRET,
                scope="openid email profile",
                seconds=SLOW_SECONDS,
                endpoints=endpoints,
                pids=(java_pid(process),),
            )
        )
        warm_up(contender)
        yield contender


def wait_for_discovery(process: WatchedProcess, address: str) -> dict[str, str]:
    """Return the endpoints once the realm is imported and served."""
    end = time.monotonic() + START_SECONDS
    with httpx2.Client(timeout=REQUEST_TIMEOUT, verify=NO_TRUST_STORE) as client:
        while process.running and time.monotonic() < end:
            with suppress(httpx2.TransportError):
                answer = client.get(address)
                if answer.is_success:
                    return {key: value for key, value in answer.json().items() if isinstance(value, str)}
            time.sleep(POLL_SECONDS)
    raise DidNotStart(f"Keycloak does not serve {address}; its output:\n{process.output()}")


def sign_in(contender: Contender) -> Contender:
    """Send the login form once and keep the cookies of the session."""
    with httpx2.Client(timeout=REQUEST_TIMEOUT, verify=NO_TRUST_STORE) as client:
        page = client.get(contender.authorize_url())
        form = LOGIN_FORM.search(page.text)
        assert form is not None, page.text  # noqa: S101 - a new session
        fields = {"username": LOGIN, "password": PASSWORD}
        answer = client.post(unescape(form[1]), data=fields, headers={"Cookie": cookie_header(client)})
        assert answer.headers.get("location", "").startswith(REDIRECT), answer.text  # noqa: S101
        return replace(contender, cookie=cookie_header(client))


def warm_up(contender: Contender) -> None:
    """Let the JVM compile what is measured: it is several times slower before."""
    contender.access_token()  # loads the code of a flow without a load of requests
    for _ in range(WARM_UP_ROUNDS):
        for work in WARM_UP:
            contender.measure(work)


def cookie_header(client: httpx2.Client) -> str:
    """All cookies, those marked Secure too: browsers send them over HTTP to localhost, httpx2 does not."""
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in client.cookies.jar)


def java_pid(process: WatchedProcess) -> int:
    """The server itself, which is the only child of the script that starts it."""
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
