"""Single sign-on beside oidc-provider, django-oauth-toolkit, Keycloak and Ory Hydra, in one run (goals P1 to P7).

The contenders run side by side, all pinned to the same core, one busy at a time; rounds alternate between them, and
what counts is the ratio. Each has a client with a secret, a person who is signed in already, no consent to ask for,
email and nickname in the id_token, and a refresh token that rotates with each use.
"""

import base64
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_urlsafe
from statistics import median
from typing import Final
from urllib.parse import quote

import httpx2
import msgspec
from bench.figures import RATIO, ROUNDS, Figure
from bench.load_oauth import OAuthLoad
from bench.machine import on_core
from bench.server import CONNECTIONS, Program, request_rate
from tests.interop.person import LOGIN, NICK, PASSWORD, PersonInBrowser
from tests.interop.toolchains import PYTHON_PEER as DJANGO
from tests.interop.toolchains import find_downloaded_node, find_peer, find_python_peer
from tests.support.processes import WatchedProcess, free_port, inherited_environment, run_command
from tools.client_deps import PEER_PROGRAM, PYTHON_PEER_PROGRAM
from tools.install import ensure_installed

SECONDS: Final = 1.5
PATIENT_SECONDS: Final = 5.0  # for a server that takes a good part of a second when sixteen ask at once
REQUEST_TIMEOUT: Final = 60.0  # for the first token of a server that has just started
REDIRECT: Final = "http://127.0.0.1:9/callback"  # no one is there, and no one goes
SECRET: Final = token_urlsafe(32)  # of the peer's client
SCOPE: Final = "openid email profile offline_access"
CODE: Final = re.compile(r"[?&]code=([^&]+)")
OURS: Final = "Gatehouse"
PEER: Final = "oidc-provider"
PYTHON_PEER: Final = "django-oauth-toolkit"
KEYCLOAK: Final = "Keycloak"
HYDRA: Final = "Ory Hydra"
WALKS: Final = ("flow", "exchange", "refresh")
ANSWERS: Final = {"flow": 2, "refresh": 1}  # of one round, in which two tokens are signed
WORKS: Final = (
    ("flow RS256", "flow", "RS256"),
    ("flow ES256", "flow", "ES256"),
    ("exchange RS256", "exchange", "RS256"),
    ("refresh RS256", "refresh", "RS256"),
    ("refresh ES256", "refresh", "ES256"),
    ("userinfo", "userinfo", "RS256"),
    ("introspection", "introspection", "RS256"),
    ("discovery", "discovery", "RS256"),
    ("JWKS", "JWKS", "RS256"),
)

# The least ratio of our rate to that of another server, by work, our storage, the server and its storage.
LEAST: Final = {
    ("flow RS256", "SQLite", PEER, "memory"): 1.6,
    ("flow RS256", "SQLite", PEER, "SQLite"): 3.0,
    ("flow RS256", "PostgreSQL", PEER, "PostgreSQL"): 3.0,
    ("flow RS256", "PostgreSQL", KEYCLOAK, "PostgreSQL"): 5.0,
    ("flow RS256", "PostgreSQL", HYDRA, "PostgreSQL"): 10.0,
    ("flow ES256", "SQLite", PEER, "memory"): 2.2,
    ("flow ES256", "SQLite", PEER, "SQLite"): 3.5,
    ("flow ES256", "PostgreSQL", PEER, "PostgreSQL"): 3.5,
    ("refresh RS256", "SQLite", PEER, "memory"): 1.0,
    ("refresh RS256", "SQLite", PEER, "SQLite"): 2.0,
    ("refresh RS256", "PostgreSQL", PEER, "PostgreSQL"): 1.5,
    ("refresh RS256", "PostgreSQL", KEYCLOAK, "PostgreSQL"): 5.0,
    ("refresh RS256", "PostgreSQL", HYDRA, "PostgreSQL"): 4.0,
    ("refresh ES256", "SQLite", PEER, "memory"): 1.2,
    ("refresh ES256", "SQLite", PEER, "SQLite"): 2.6,
    ("refresh ES256", "PostgreSQL", PEER, "PostgreSQL"): 2.0,
    ("userinfo", "SQLite", PEER, "memory"): 1.2,
    ("userinfo", "SQLite", PEER, "SQLite"): 1.5,
    ("userinfo", "PostgreSQL", PEER, "PostgreSQL"): 2.0,
    ("userinfo", "PostgreSQL", KEYCLOAK, "PostgreSQL"): 1.5,
    ("introspection", "SQLite", PEER, "memory"): 1.2,
    ("introspection", "SQLite", PEER, "SQLite"): 1.5,
    ("introspection", "PostgreSQL", PEER, "PostgreSQL"): 2.0,
    ("introspection", "PostgreSQL", KEYCLOAK, "PostgreSQL"): 2.0,
    ("discovery", "SQLite", PEER, "memory"): 1.0,
    ("JWKS", "SQLite", PEER, "memory"): 1.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A server that is up, with one client of it and the cookie of a person who is signed in."""

    name: str
    storage: str
    alg: str
    issuer: str
    port: int
    client_id: str
    secret: str
    scratch: Path
    cookie: str = ""
    scope: str = SCOPE
    seconds: float = SECONDS
    endpoints: dict[str, str]
    pids: tuple[int, ...] = ()  # the processes of the server

    def sign_in(self) -> "Contender":
        person = PersonInBrowser(self.issuer)
        person.open_address(self.authorize, until=REDIRECT)
        person.open_address(
            self.authorize, until=REDIRECT
        )  # whatever the first one changes of the session is changed now
        cookie = person.client.build_request("GET", self.authorize).headers["cookie"]
        person.client.close()
        return replace(self, cookie=cookie)

    @property
    def authorize(self) -> str:
        query = {
            "client_id": self.client_id,
            "response_type": "code",
            "redirect_uri": REDIRECT,
            "scope": self.scope,
            "nonce": "benchmark",  # Hydra wants eight characters
            "state": "benchmark",
        }
        return f"{self.endpoints['authorization_endpoint']}?{httpx2.QueryParams(query)}"

    @property
    def basic(self) -> str:
        return base64.b64encode(f"{self.client_id}:{self.secret}".encode()).decode()

    def path(self, endpoint: str) -> str:
        return self.endpoints[endpoint].removeprefix(self.issuer)

    def rate(self, work: str) -> float:
        return self._walk(work) if work in WALKS else self._read(work)

    def supports(self, work: str) -> bool:
        return work != "introspection" or "introspection_endpoint" in self.endpoints

    def load(self, kind: str) -> OAuthLoad:
        return OAuthLoad(
            kind=kind,
            host=self.issuer.removeprefix("http://"),
            port=self.port,
            connections=CONNECTIONS,
            seconds=self.seconds,
            authorize=self.authorize.removeprefix(self.issuer),
            cookie=self.cookie,
            token=self.path("token_endpoint"),
            basic=self.basic,
            redirect_uri=REDIRECT,
        )

    def _walk(self, kind: str) -> float:
        return run_load("bench.load_oauth", self.load(kind), self.scratch)

    def _read(self, work: str) -> float:
        if work == "discovery":
            return request_rate(self.port, f"{self.path('issuer')}/.well-known/openid-configuration")
        if work == "JWKS":
            return request_rate(self.port, self.path("jwks_uri"))
        if work == "introspection":
            return self._introspect()
        file = self.scratch / "userinfo.http"
        head = f"GET {self.path('userinfo_endpoint')} HTTP/1.1\r\nHost: localhost\r\nX-Number: {{number}}\r\n"
        file.write_text(f"{head}Authorization: Bearer {self.access_token()}\r\n\r\n", newline="")
        return request_rate(self.port, f"@{file}")

    def _introspect(self) -> float:
        endpoint = httpx2.URL(self.endpoints["introspection_endpoint"])
        body = f"token={quote(self.access_token())}"
        head = (
            f"POST {endpoint.path} HTTP/1.1\r\nHost: localhost\r\nX-Number: {{number}}\r\n"
            f"Authorization: Basic {self.basic}\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        file = self.scratch / "introspection.http"
        file.write_text(head + body, newline="")
        return request_rate(endpoint.port or self.port, f"@{file}")

    def access_token(self) -> str:
        with httpx2.Client(headers={"Cookie": self.cookie}, timeout=REQUEST_TIMEOUT) as client:
            found = CODE.search(client.get(self.authorize).headers["location"])
            assert found is not None  # noqa: S101 - the person is signed in
            fields = {"grant_type": "authorization_code", "code": found[1], "redirect_uri": REDIRECT}
            answer = client.post(
                self.endpoints["token_endpoint"], data=fields, headers={"Authorization": f"Basic {self.basic}"}
            )
        return str(answer.raise_for_status().json()["access_token"])


def run_load(module: str, load: OAuthLoad, scratch: Path) -> float:
    file = scratch / "walk.json"
    file.write_bytes(msgspec.json.encode(load))
    with on_core(1):
        ended = subprocess.run(
            [sys.executable, "-m", module, str(file)], check=True, stdout=subprocess.PIPE, text=True
        )
    return float(ended.stdout)


def has_peer() -> bool:
    ensure_installed(PEER_PROGRAM)
    return find_peer() is not None


def has_python_peer() -> bool:
    ensure_installed(PYTHON_PEER_PROGRAM)
    return find_python_peer() is not None


def on_sqlite(program: Program, scratch: Path) -> Iterator[Figure]:
    with ExitStack() as stack:
        ours = stack.enter_context(
            gatehouse(program, scratch / "sso-sqlite", f"sqlite:///{scratch}/sso.db", "SQLite")
        )
        theirs = [
            stack.enter_context(oidc_provider(scratch, storage, alg, address))
            for storage, address in (("memory", "memory"), ("SQLite", f"sqlite:{scratch}/peer-{{}}.db"))
            for alg in ("RS256", "ES256")
        ]
        if has_python_peer():
            theirs.append(stack.enter_context(django_oauth_toolkit(scratch)))
        yield from compare_all([*ours, *theirs])


def on_postgres(
    program: Program, scratch: Path, urls: Sequence[str], others: Iterable[AbstractContextManager[Contender]] = ()
) -> Iterator[Figure]:
    """`others` are optional contenders on databases of their own, started here."""
    with ExitStack() as stack:
        ours = stack.enter_context(gatehouse(program, scratch / "sso-postgres", urls[0], "PostgreSQL"))
        theirs = [
            stack.enter_context(oidc_provider(scratch, "PostgreSQL", alg, url))
            for alg, url in zip(("RS256", "ES256"), urls[1:], strict=True)
        ]
        theirs += [stack.enter_context(other) for other in others]
        yield from compare_all([*ours, *theirs])


def compare_all(contenders: Sequence[Contender]) -> Iterator[Figure]:
    for name, work, alg in WORKS:
        yield from side_by_side(name, work, [one for one in contenders if one.alg == alg and one.supports(work)])


def side_by_side(name: str, work: str, contenders: Sequence[Contender]) -> Iterator[Figure]:
    """Ratios first: they hold on other machines too."""
    rounds = [[one.rate(work) for one in contenders] for _ in range(ROUNDS)]
    rates = [median(rates) for rates in zip(*rounds, strict=True)]
    us, ours = contenders[0], rates[0]
    for other, rate in zip(contenders[1:], rates[1:], strict=True):
        least = LEAST.get((name, us.storage, other.name, other.storage))
        title = f"{name}, {us.storage}: times {other.name} on {other.storage}"
        yield Figure(name=title, value=ours / rate, unit=RATIO, least=least)
    for one, rate in zip(contenders, rates, strict=True):
        yield Figure(name=f"{name}, {one.name} on {one.storage}", value=rate, unit="/s")


@contextmanager
def gatehouse(
    program: Program,
    data: Path,
    url: str,
    storage: str,
    *,
    pinned: bool = True,
    settings: Mapping[str, str] | None = None,
) -> Iterator[list[Contender]]:
    """One server with two clients, since ours signs for each client as that one wants it."""
    data.mkdir()
    environment = {"GATEHOUSE__DATABASE__URL": url}
    place = ("--dev", "--data", data)
    password = data / "password"
    password.write_text(PASSWORD)
    with program.serving(data, url, pinned=pinned, settings=settings) as server:
        run_command(
            *("user", "create", "--login", LOGIN, "--nick", NICK, "--password-file", password),
            *place,
            environment=environment,
        )
        issuer = f"http://localhost:{server.port}"
        yield [
            discover_contender(
                OURS,
                storage,
                alg,
                issuer,
                data,
                client_id=alg.lower(),
                secret=run_command(
                    *("client", "create", alg.lower(), "--name", alg, "--profile", "oidc", "--first-party"),
                    *("--redirect-uri", REDIRECT, "--id-token-alg", alg),
                    *place,
                    environment=environment,
                ).strip(),
            )
            for alg in ("RS256", "ES256")
        ]


@contextmanager
def oidc_provider(scratch: Path, storage: str, alg: str, address: str) -> Iterator[Contender]:
    home, node = find_peer(), find_downloaded_node()
    assert home is not None  # noqa: S101 - asked before
    assert node is not None  # noqa: S101
    port = free_port()
    as_linked = ("--preserve-symlinks", "--preserve-symlinks-main", "--disable-warning=ExperimentalWarning")
    told = (str(port), address.format(alg), alg, "bench", SECRET, REDIRECT)
    with on_core(0):
        process = WatchedProcess(
            [node[0], *as_linked, str(home / "programs" / "server.mjs"), *told],
            environment=inherited_environment({"NODE_ENV": "production"}),
        )
    with process:
        process.wait_until_started("^ready", process.stdout)
        issuer = f"http://localhost:{port}"
        yield discover_contender(PEER, storage, alg, issuer, scratch, client_id="bench", secret=SECRET)


@contextmanager
def django_oauth_toolkit(scratch: Path) -> Iterator[Contender]:
    """It signs with RS256 only."""
    python = find_python_peer()
    assert python is not None  # noqa: S101 - asked before
    port = free_port()
    told = (str(port), str(scratch / "django.db"), "bench", SECRET, REDIRECT)
    with on_core(0):
        process = WatchedProcess([str(python), "server.py", *told], cwd=DJANGO)
    with process:
        process.wait_until_started("^ready", process.stdout)
        issuer = f"http://localhost:{port}"
        found = discover_contender(PYTHON_PEER, "SQLite", "RS256", issuer, scratch, client_id="bench", secret=SECRET)
        yield replace(found, seconds=PATIENT_SECONDS)


def discover_contender(
    name: str, storage: str, alg: str, issuer: str, scratch: Path, *, client_id: str, secret: str
) -> Contender:
    endpoints = httpx2.get(f"{issuer}/.well-known/openid-configuration").raise_for_status().json()
    return Contender(
        name=name,
        storage=storage,
        alg=alg,
        issuer=issuer,
        port=int(issuer.rpartition(":")[2]),
        client_id=client_id,
        secret=secret,
        scratch=scratch,
        endpoints={key: value for key, value in endpoints.items() if isinstance(value, str)},
    ).sign_in()


def limits(figures: Iterable[Figure]) -> Iterator[Figure]:
    """What the parts that cannot be left out would allow by themselves, each measured in this run."""
    known = {figure.name: figure.value for figure in figures}
    try:
        signed = {alg: known[f"sign a user token, {alg}"] for alg in ("RS256", "ES256", "EdDSA")}
        answer = 1e6 / known[f"GET /healthz, {CONNECTIONS} connections"]
        write = 1e6 / known["the same, 64 callers, SQLite"]
    except KeyError:
        return
    exchange = known.get(f"exchange RS256, {OURS} on SQLite")
    if exchange is not None:
        share = exchange * (signed["RS256"] + signed["EdDSA"] + write + answer) / 1e6
        yield Figure(name="exchange RS256, share of the limit", value=share, unit="", least=0.6)
    for name, ours, other, theirs in LEAST:
        work, _, alg = name.partition(" ")
        peer = known.get(f"{name}, {other} on {theirs}")
        if work in ANSWERS and peer is not None:
            rate = 1e6 / (signed[alg] + signed["EdDSA"] + ANSWERS[work] * answer)
            title = f"{name}, {ours}: signatures and empty answers alone, times {other} on {theirs}"
            yield Figure(name=title, value=rate / peer, unit=RATIO)
