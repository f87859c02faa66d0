"""Three nodes behind nginx on PostgreSQL with a standby, as docs/operations/many-nodes.md sets them up."""

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import httpx2
import pytest

from tests.faults.run_record import in_full_run, sample
from tests.support.browser import PASSWORD, form_to, hidden_fields
from tests.support.capabilities import NGINX, require_program
from tests.support.game import GET_GSID
from tests.support.namespaces import Machine, Network, machine_network
from tests.support.nginx import NginxProxy, nginx_proxy, proxy_address
from tests.support.postgres import ADMINISTRATOR, PostgresCluster, database_name
from tests.support.postgres_replicas import DeployedStandby
from tests.support.postgres_session import LOCK_TIMEOUT, postgres_session
from tests.support.processes import GATEHOUSE_COMMAND, LOOPBACK, Node, run_command
from tests.support.service import FAST_SETTINGS

NODES: Final = 3
HERE: Final = Network(here=LOOPBACK, machines=(Machine(address=LOOPBACK, command=()),) * NODES)
ANNA: Final = "anna@studio.example"
RESULT: Final = "/proxy/api/gameSession/getGsidResult"
CONFIRM: Final = "/sign-in/confirm"
HELD: Final = "poll_held"  # a channel of this test alone
TELL_HELD: Final = f"""
    CREATE FUNCTION tell_held() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_notify('{HELD}', NEW.gsid); RETURN NULL; END $$;
    CREATE TRIGGER tell_held AFTER UPDATE OF polls ON game_sessions FOR EACH ROW EXECUTE FUNCTION tell_held();
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSetup:
    nodes: dict[str, Node]  # by address and port, as in the proxy's log
    proxy: NginxProxy
    primary: PostgresCluster
    standby: DeployedStandby
    database: str

    async def served_by(self, path: str, *, status: str = r"\d+") -> str:
        """Which node got the first POST to this path with this status."""
        return await asyncio.to_thread(self.proxy.node_that_served, "POST", path, status=status)

    @asynccontextmanager
    async def browser(self) -> AsyncIterator[httpx2.AsyncClient]:
        address = self.proxy.base_url
        async with httpx2.AsyncClient(
            base_url=address, verify=self.proxy.trust, timeout=LOCK_TIMEOUT, follow_redirects=True
        ) as client:
            yield client


@contextmanager
def running_cluster(data: Path, where: str) -> Iterator[ClusterSetup]:
    with ExitStack() as stack:
        machines = stack.enter_context(machine_network(NODES)) if where == "namespaces" else HERE
        primary = stack.enter_context(PostgresCluster(address=machines.here))
        database = database_name(primary.create_database_sync())
        standby = stack.enter_context(DeployedStandby(primary, address=machines.here))
        base_url, port = proxy_address()
        hosts = ",".join(f"{machines.here}:{server.port}" for server in (primary, standby))
        environment = {
            **FAST_SETTINGS,
            "GATEHOUSE__LOG__LEVEL": "info",
            "GATEHOUSE__DATABASE__STANDBY_SYNCHRONOUS": "true",
            "GATEHOUSE__DATABASE__URL": (
                f"postgresql://{ADMINISTRATOR}@{hosts}/{database}?target_session_attrs=read-write"
            ),
            "GATEHOUSE__SECURITY__MASTER_KEY": token_hex(),
            "GATEHOUSE__SERVER__BASE_URL": base_url,
            "GATEHOUSE__SERVER__TRUSTED_PROXIES": machines.here,
        }
        run_command("migrate", "--data", data / "commands", environment=environment)
        add_anna(data, environment)
        nodes = start_nodes(stack, machines, data, environment)
        proxy = stack.enter_context(nginx_proxy(port, list(nodes)))
        yield ClusterSetup(nodes=nodes, proxy=proxy, primary=primary, standby=standby, database=database)


def start_nodes(stack: ExitStack, machines: Network, data: Path, environment: dict[str, str]) -> dict[str, Node]:
    """Start nodes by address and port; each has its own data directory, so they share no files."""
    nodes = {}
    for number, machine in enumerate(machines.machines):
        node = Node(
            data=data / f"node{number}",
            flags=("--host", machine.address),
            environment=environment,
            program=(*machine.command, *GATEHOUSE_COMMAND),
        )
        nodes[f"{machine.address}:{node.port}"] = node
    with ThreadPoolExecutor() as starting:
        list(starting.map(stack.enter_context, nodes.values()))
    return nodes


def add_anna(data: Path, environment: dict[str, str]) -> None:
    password = data / "password"
    password.write_text(PASSWORD)
    who = ("--login", ANNA, "--nick", "Anna", "--password-file", password)
    run_command("user", "create", *who, "--data", data / "commands", environment=environment)


async def register(client: httpx2.AsyncClient) -> tuple[str, str]:
    response = (await client.post(GET_GSID, json={"factor": "f"})).raise_for_status()
    return response.json()["gsid"], response.headers["location"]


async def poll(client: httpx2.AsyncClient, gsid: str, location: str) -> httpx2.Response:
    return await client.post(location, json={"gsid": gsid})


async def sign_in(client: httpx2.AsyncClient) -> None:
    page = await client.get("/sign-in")
    form = {**hidden_fields(form_to("/sign-in", page.text)), "login": ANNA, "password": PASSWORD}
    assert (await client.post("/sign-in", data=form)).is_success


async def confirm(client: httpx2.AsyncClient, gsid: str) -> None:
    page = await client.get("/", params={"gsid": gsid})
    assert page.url.path == CONFIRM, page.text
    form = {**hidden_fields(form_to(CONFIRM, page.text)), "decision": "confirm"}
    assert (await client.post(CONFIRM, data=form)).is_success


class HeldPolls:
    """Tells when polls are held, as the database notices it."""

    def __init__(self) -> None:
        self._notices: asyncio.Queue[str] = asyncio.Queue()
        self._held: set[str] = set()

    async def listen(self, watcher: Any) -> None:
        await watcher.execute(TELL_HELD)
        await watcher.add_listener(HELD, lambda _c, _p, _ch, gsid: self._notices.put_nowait(gsid))

    async def wait_for(self, *gsids: str) -> None:
        async with asyncio.timeout(LOCK_TIMEOUT):
            while not self._held.issuperset(gsids):
                self._held.add(await self._notices.get())


async def wait_until_connected(nodes: Collection[Node]) -> None:
    """Wait until every node uses the new primary: the proxy may choose any of them."""
    for node in nodes:
        await asyncio.to_thread(node.process.wait_for_line, r"storage\.listen_restored", node.process.stderr)


@in_full_run
@pytest.mark.parametrize("where", sample(["ports", "namespaces"], "namespaces"))
async def test_three_nodes_are_one_service_whatever_happens_to_one_of_them(where: str, tmp_path: Path) -> None:
    require_program(NGINX)
    with running_cluster(tmp_path, where) as here:
        await here.standby.make_synchronous()
        async with (
            here.browser() as anna,
            here.browser() as game,
            postgres_session(here.primary.url(here.database)) as watcher,
        ):
            held = HeldPolls()
            await held.listen(watcher)
            await sign_in(anna)

            # A game waits at one node, its player approves at a second one.
            gsid, location = await register(game)
            waiting = asyncio.create_task(poll(game, gsid, location))
            await held.wait_for(gsid)
            await confirm(anna, gsid)
            assert (await waiting).json()["status"] == "OK"
            assert await here.served_by(RESULT) != await here.served_by(CONFIRM)

            # One game waits at each node; when a node dies, only its game has to retry.
            games = [await register(game) for _ in range(NODES)]
            polls = [asyncio.create_task(poll(game, *one)) for one in games]
            await held.wait_for(*(gsid for gsid, _ in games))
            killed, node = next(iter(here.nodes.items()))
            node.kill()
            done, _ = await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
            assert [one.result().status_code for one in done] == [502]
            assert await here.served_by(RESULT, status="502") == killed
            cut = polls.index(next(iter(done)))
            polls[cut] = asyncio.create_task(poll(game, *games[cut]))
            for gsid, _ in games:
                await confirm(anna, gsid)
            assert [(await one).json()["status"] for one in polls] == ["OK"] * NODES
            assert [(await anna.get("/account")).status_code for _ in range(NODES * 3)] == [200] * (NODES * 3)

            # Only the primary is lost.
            await asyncio.to_thread(here.primary.stop, "immediate")
            assert (await anna.get("/readyz")).status_code == 503
            await here.standby.promote()
            await wait_until_connected([node for name, node in here.nodes.items() if name != killed])
            gsid, location = await register(game)
            await confirm(anna, gsid)
            answer = json.loads((await poll(game, gsid, location)).text)
            assert answer["status"] == "OK"
