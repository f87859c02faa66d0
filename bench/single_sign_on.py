"""Single sign-on compared with oidc-provider, django-oauth-toolkit, Keycloak and Ory Hydra (goals P1 to P7, P17).

The contenders run on the same core. Rounds alternate between them, and while one is measured the others are stopped.
Each has a client with a secret, a person who is signed in, no consent page, email and nickname in the id_token, and
refresh tokens that rotate with each use.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from secrets import token_urlsafe
from typing import Final
from urllib.parse import quote

import httpx2
from bench.figures import RATIO, Figure
from bench.load import LoadResult
from bench.load_oauth import OAuthLoad
from bench.machine import on_core
from bench.rounds import Turn, alternate, median_rate, rate_figures, spread_figures, with_results
from bench.server import CONNECTIONS, EMPTY, Program, get_request, measure_requests, post_request, run_load
from tests.interop.person import LOGIN, NICK, PASSWORD, PersonInBrowser
from tests.interop.toolchains import PYTHON_PEER as DJANGO
from tests.interop.toolchains import find_downloaded_node, find_peer, find_python_peer
from tests.support.processes import WatchedProcess, free_port, inherited_environment, run_command
from tools.client_deps import PEER_PROGRAM, PYTHON_PEER_PROGRAM
from tools.install import ensure_installed

SECONDS: Final = 1.5
SLOW_SECONDS: Final = 5.0  # for a server that needs a good part of a second for sixteen flows at once
REQUEST_TIMEOUT: Final = 60.0  # for the first token of a server that has just started
REDIRECT: Final = "http://127.0.0.1:9/callback"  # nothing listens there, and no redirect is followed to it
SECRET: Final = token_urlsafe(32)  # of the client of each peer
SCOPE: Final = "openid email profile offline_access"
NUMBER: Final = "{number}"  # bench/load_oauth.py puts another number there in each request
ANY_NUMBER: Final = "900000000"  # Hydra refuses a state of fewer than eight characters
CODE: Final = re.compile(r"[?&]code=([^&]+)")
FORM: Final = "application/x-www-form-urlencoded"
OURS: Final = "Gatehouse"
PEER: Final = "oidc-provider"
PYTHON_PEER: Final = "django-oauth-toolkit"
KEYCLOAK: Final = "Keycloak"
HYDRA: Final = "Ory Hydra"
SEQUENCES: Final = ("flow", "exchange", "refresh")  # each request is made from the response before
RESPONSES: Final = {"flow": 2, "refresh": 1}  # of one operation, in which one token is signed
LIMIT_SHARE: Final = 0.8  # of the rate that the unavoidable parts of an exchange allow (goal P7)
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
    ("flow RS256", "SQLite", PEER, "memory"): 1.5,
    ("flow RS256", "SQLite", PEER, "SQLite"): 3.0,
    ("flow RS256", "PostgreSQL", PEER, "PostgreSQL"): 2.5,
    ("flow RS256", "PostgreSQL", KEYCLOAK, "PostgreSQL"): 10.0,
    ("flow RS256", "PostgreSQL", HYDRA, "PostgreSQL"): 10.0,
    ("flow ES256", "SQLite", PEER, "memory"): 1.8,
    ("flow ES256", "SQLite", PEER, "SQLite"): 3.5,
    ("flow ES256", "PostgreSQL", PEER, "PostgreSQL"): 2.5,
    ("refresh RS256", "SQLite", PEER, "memory"): 1.2,
    ("refresh RS256", "SQLite", PEER, "SQLite"): 2.5,
    ("refresh RS256", "PostgreSQL", PEER, "PostgreSQL"): 1.6,
    ("refresh RS256", "PostgreSQL", KEYCLOAK, "PostgreSQL"): 10.0,
    ("refresh RS256", "PostgreSQL", HYDRA, "PostgreSQL"): 4.0,
    ("refresh ES256", "SQLite", PEER, "memory"): 1.2,
    ("refresh ES256", "SQLite", PEER, "SQLite"): 2.6,
    ("refresh ES256", "PostgreSQL", PEER, "PostgreSQL"): 2.0,
    ("userinfo", "SQLite", PEER, "memory"): 1.2,
    ("userinfo", "SQLite", PEER, "SQLite"): 1.8,
    ("userinfo", "PostgreSQL", PEER, "PostgreSQL"): 2.5,
    ("userinfo", "PostgreSQL", KEYCLOAK, "PostgreSQL"): 2.5,
    ("introspection", "SQLite", PEER, "memory"): 1.2,
    ("introspection", "SQLite", PEER, "SQLite"): 1.8,
    ("introspection", "PostgreSQL", PEER, "PostgreSQL"): 2.5,
    ("introspection", "PostgreSQL", KEYCLOAK, "PostgreSQL"): 2.5,
    ("discovery", "SQLite", PEER, "memory"): 1.05,
    ("JWKS", "SQLite", PEER, "memory"): 1.05,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A running server with one client and the cookie of a person who is signed in."""

    name: str
    storage: str
    alg: str
    issuer: str
    port: int
    client_id: str
    secret: str
    cookie: str = ""
    scope: str = SCOPE
    seconds: float = SECONDS
    operations: int | None = None  # of each measurement; None: as many as fit in its seconds
    endpoints: dict[str, str]
    pids: tuple[int, ...]  # of the server, without those that it starts itself
    database: tuple[int, ...] = ()  # the pid of its database server

    def sign_in(self) -> "Contender":
        """Sign in twice: the first sign-in may change the session."""
        person = PersonInBrowser(self.issuer)
        person.open_address(self.authorize_url(), until=REDIRECT)
        person.open_address(self.authorize_url(), until=REDIRECT)
        cookie = person.client.build_request("GET", self.authorize_url()).headers["cookie"]
        person.client.close()
        return replace(self, cookie=cookie)

    def authorize_url(self, number: str = ANY_NUMBER) -> str:
        query = httpx2.QueryParams(
            {
                "client_id": self.client_id,
                "response_type": "code",
                "redirect_uri": REDIRECT,
                "scope": self.scope,
            }
        )
        return f"{self.endpoints['authorization_endpoint']}?{query}&nonce={number}&state={number}"

    @property
    def basic(self) -> str:
        return base64.b64encode(f"{self.client_id}:{self.secret}".encode()).decode()

    def path(self, endpoint: str) -> str:
        return self.endpoints[endpoint].removeprefix(self.issuer)

    def supports(self, work: str) -> bool:
        return work != "introspection" or "introspection_endpoint" in self.endpoints

    def turn(self, work: str) -> Turn:
        return Turn(port=self.port, pids=self.pids, measure=partial(self.measure, work))

    def measure(self, work: str) -> LoadResult:
        if work in SEQUENCES:
            return self._measure_sequence(work)
        port, requests = self.requests(work)
        return measure_requests(port, requests, server=self.pids, database=self.database)

    def load(self, kind: str) -> OAuthLoad:
        return OAuthLoad(
            kind=kind,
            host=self.issuer.removeprefix("http://"),
            port=self.port,
            connections=CONNECTIONS,
            seconds=self.seconds,
            operations=self.operations,
            authorize=self.authorize_url(NUMBER).removeprefix(self.issuer),
            cookie=self.cookie,
            token=self.path("token_endpoint"),
            basic=self.basic,
            redirect_uri=REDIRECT,
            server=self.pids,
            database=self.database,
        )

    def _measure_sequence(self, kind: str) -> LoadResult:
        return run_load("bench.load_oauth", self.load(kind))

    def requests(self, work: str) -> tuple[int, Sequence[str]]:
        """The port, and the requests that are sent to it in turn: one for each of several tokens."""
        if work == "discovery":
            return self.port, [get_request(f"{self.path('issuer')}/.well-known/openid-configuration")]
        if work == "JWKS":
            return self.port, [get_request(self.path("jwks_uri"))]
        tokens = [self.access_token() for _ in range(CONNECTIONS)]
        if work == "userinfo":
            path = self.path("userinfo_endpoint")
            return self.port, [get_request(path, f"Authorization: Bearer {token}") for token in tokens]
        endpoint = httpx2.URL(self.endpoints["introspection_endpoint"])
        client = f"Authorization: Basic {self.basic}"
        bodies = [f"token={quote(token)}" for token in tokens]
        return endpoint.port or self.port, [post_request(endpoint.path, FORM, body, client) for body in bodies]

    def access_token(self) -> str:
        with httpx2.Client(headers={"Cookie": self.cookie}, timeout=REQUEST_TIMEOUT) as client:
            found = CODE.search(client.get(self.authorize_url()).headers["location"])
            assert found is not None  # noqa: S101 - the person is signed in
            fields = {"grant_type": "authorization_code", "code": found[1], "redirect_uri": REDIRECT}
            response = client.post(
                self.endpoints["token_endpoint"], data=fields, headers={"Authorization": f"Basic {self.basic}"}
            )
        return str(response.raise_for_status().json()["access_token"])


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
            stack.enter_context(oidc_provider(storage, alg, address))
            for storage, address in (("memory", "memory"), ("SQLite", f"sqlite:{scratch}/peer-{{}}.db"))
            for alg in ("RS256", "ES256")
        ]
        if has_python_peer():
            theirs.append(stack.enter_context(django_oauth_toolkit(scratch)))
        yield from compare_all([*ours, *theirs])


def on_postgres(
    program: Program,
    scratch: Path,
    urls: Sequence[str],
    database: int,
    others: Iterable[AbstractContextManager[Contender]] = (),
) -> Iterator[Figure]:
    """`database` is the pid of PostgreSQL; `others` are optional contenders, each with a database of its own."""
    with ExitStack() as stack:
        ours = stack.enter_context(gatehouse(program, scratch / "sso-postgres", urls[0], "PostgreSQL"))
        theirs = [
            stack.enter_context(oidc_provider("PostgreSQL", alg, url))
            for alg, url in zip(("RS256", "ES256"), urls[1:], strict=True)
        ]
        theirs += [stack.enter_context(other) for other in others]
        yield from compare_all([replace(one, database=(database,)) for one in [*ours, *theirs]])


def compare_all(contenders: Sequence[Contender]) -> Iterator[Figure]:
    pids = {pid for one in contenders for pid in one.pids}
    for name, work, alg in WORKS:
        chosen = [one for one in contenders if one.alg == alg and one.supports(work)]
        yield from compare(name, chosen, alternate([one.turn(work) for one in chosen], idle=pids))


def compare(name: str, contenders: Sequence[Contender], results: Sequence[Sequence[LoadResult]]) -> Iterator[Figure]:
    """Our ratio to each of the others first: it holds on other machines too."""
    contenders, results = with_results(contenders, results)
    us, ours = contenders[0], median_rate(results[0])
    for other, rounds in zip(contenders[1:], results[1:], strict=True):
        least = LEAST.get((name, us.storage, other.name, other.storage))
        title = f"{name}, {us.storage}: times {other.name} on {other.storage}"
        yield Figure(name=title, value=ours / median_rate(rounds), unit=RATIO, least=least)
    yield from spread_figures(f"{name}, {us.storage}", results)
    for one, rounds in zip(contenders, results, strict=True):
        yield from rate_figures(f"{name}, {one.name} on {one.storage}", rounds)


@contextmanager
def gatehouse(
    program: Program,
    data: Path,
    url: str,
    storage: str,
    *,
    pinned: bool = True,
    settings: Mapping[str, str] | None = None,
    under: Sequence[str] = (),
) -> Iterator[list[Contender]]:
    """One server with two clients: it signs for each client with the algorithm of that client."""
    data.mkdir()
    environment = {"GATEHOUSE__DATABASE__URL": url}
    place = ("--dev", "--data", data)
    password = data / "password"
    password.write_text(PASSWORD)
    with program.serving(data, url, pinned=pinned, settings=settings, under=under) as server:
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
                server.pid,
                client_id=alg.lower(),
                secret=run_command(
                    *("client", "create", alg.lower(), "--name", alg, "--no-require-pkce", "--first-party"),
                    *("--redirect-uri", REDIRECT, "--id-token-alg", alg),
                    *place,
                    environment=environment,
                ).strip(),
            )
            for alg in ("RS256", "ES256")
        ]


@contextmanager
def oidc_provider(storage: str, alg: str, address: str) -> Iterator[Contender]:
    home, node = find_peer(), find_downloaded_node()
    assert home is not None  # noqa: S101 - the caller has checked
    assert node is not None  # noqa: S101
    port = free_port()
    flags = ("--preserve-symlinks", "--preserve-symlinks-main", "--disable-warning=ExperimentalWarning")
    arguments = (str(port), address.format(alg), alg, "bench", SECRET, REDIRECT)
    with on_core(0):
        process = WatchedProcess(
            [node[0], *flags, str(home / "programs" / "server.mjs"), *arguments],
            environment=inherited_environment({"NODE_ENV": "production"}),
        )
    with process:
        process.wait_until_started("^ready", process.stdout)
        issuer = f"http://localhost:{port}"
        yield discover_contender(PEER, storage, alg, issuer, process.pid, client_id="bench", secret=SECRET)


@contextmanager
def django_oauth_toolkit(scratch: Path) -> Iterator[Contender]:
    """It signs with RS256 only."""
    python = find_python_peer()
    assert python is not None  # noqa: S101 - the caller has checked
    port = free_port()
    arguments = (str(port), str(scratch / "django.db"), "bench", SECRET, REDIRECT)
    with on_core(0):
        process = WatchedProcess([str(python), "server.py", *arguments], cwd=DJANGO)
    with process:
        process.wait_until_started("^ready", process.stdout)
        issuer = f"http://localhost:{port}"
        found = discover_contender(
            PYTHON_PEER, "SQLite", "RS256", issuer, process.pid, client_id="bench", secret=SECRET
        )
        yield replace(found, seconds=SLOW_SECONDS)


def discover_contender(
    name: str, storage: str, alg: str, issuer: str, pid: int, *, client_id: str, secret: str
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
        endpoints={key: value for key, value in endpoints.items() if isinstance(value, str)},
        pids=(pid,),
    ).sign_in()


def limits(figures: Iterable[Figure]) -> Iterator[Figure]:
    """The rates that the unavoidable parts allow, each part measured in this run."""
    known = {figure.name: figure.value for figure in figures}
    try:
        signed = {alg: known[f"sign a user token, {alg}"] for alg in ("RS256", "ES256")}
        response = 1e6 / known[f"GET {EMPTY}, {CONNECTIONS} connections"]
        write = 1e6 / known["the same, 64 callers, SQLite"]
    except KeyError:
        return
    exchange = known.get(f"exchange RS256, {OURS} on SQLite")
    if exchange is not None:
        share = exchange * (signed["RS256"] + write + response) / 1e6
        yield Figure(name="exchange RS256, share of the limit", value=share, unit="", least=LIMIT_SHARE)
    for name, ours, other, theirs in LEAST:
        work, _, alg = name.partition(" ")
        peer = known.get(f"{name}, {other} on {theirs}")
        if work in RESPONSES and peer is not None:
            rate = 1e6 / (signed[alg] + RESPONSES[work] * response)
            title = f"{name}, {ours}: signatures and empty answers alone, times {other} on {theirs}"
            yield Figure(name=title, value=rate / peer, unit=RATIO)
