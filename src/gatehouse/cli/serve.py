"""Several serving processes on one port: started, watched, restarted, stopped together.

Each worker listens for itself on the shared port and the kernel spreads the connections, so that no
request passes through here. Needs PostgreSQL: SQLite means one process.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Final

import click
import structlog
import uvloop
from starlette.types import ASGIApp

from gatehouse import __version__, logs
from gatehouse.app.endpoints import ServedApp, build_app
from gatehouse.app.garbage_collection import GarbageCollector, freeze_startup_objects
from gatehouse.app.housekeeping import housekeeping, run_job
from gatehouse.app.services import Services, open_services
from gatehouse.app.services.games import shut_down_games
from gatehouse.audit.model import AuditOrigin
from gatehouse.cli.common import Invocation, command_for, common_options, create_data_directory, load_settings
from gatehouse.kernel.background import shorten_switch_interval
from gatehouse.kernel.clock import Clock, SystemClock
from gatehouse.kernel.errors import Misconfigured
from gatehouse.keys.nodes import names_of
from gatehouse.settings.checks import LoadPurpose
from gatehouse.settings.merge import LoadedSettings
from gatehouse.storage.sqlite.runner import serve_lock, sqlite_path
from gatehouse.web.api.health import operations_app
from gatehouse.web.pages.setup import NO_SAMPLES, SampleCommands
from gatehouse.web.server.server import ShutdownSignal, bind_sockets, make_server, serve_in_loop

log = structlog.get_logger(__name__)

RESTART_SECONDS: Final = 1.0
STOP_SECONDS: Final = 40.0  # a worker ends within 35 by itself, after leave_seconds


def supervise(loaded: LoadedSettings) -> int:
    """Run until a stop is requested; return the exit code. A first worker that cannot start ends everything."""
    server = loaded.settings.server
    return asyncio.run(Supervisor(sys.argv[1:], server.workers, STOP_SECONDS + server.leave_seconds).run())


class Supervisor:
    def __init__(self, arguments: Sequence[str], workers: int, stop_seconds: float) -> None:
        self._arguments = arguments
        self._stop_seconds = stop_seconds
        self._workers = workers
        self._stopping = asyncio.Event()
        self._running: dict[int, asyncio.subprocess.Process] = {}

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        ready = await self._start(0)  # alone, so that it migrates and makes the keys
        if ready is None:
            return await self._running[0].wait() or 1
        watchers = [asyncio.create_task(self._watch(worker)) for worker in range(self._workers)]
        click.echo(ready)
        await self._stopping.wait()
        await self._stop()
        await asyncio.gather(*watchers)
        return 0

    async def _watch(self, worker: int) -> None:
        if worker:
            await self._start(worker)
        while True:
            code = await self._running[worker].wait()
            if self._stopping.is_set():
                return
            log.error("worker exited", worker=worker, status=code)
            await asyncio.sleep(RESTART_SECONDS)
            if self._stopping.is_set():
                return
            await self._start(worker)

    async def _start(self, worker: int) -> str | None:
        """Start a worker and wait for its ready line, which is returned; what else it prints is passed on."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gatehouse", *self._arguments, "--worker", str(worker)),
            stdout=asyncio.subprocess.PIPE,
        )
        self._running[worker] = process
        assert process.stdout is not None  # noqa: S101 - it was asked for
        async for line in process.stdout:
            text = line.decode().rstrip("\n")
            if text.startswith("ready "):
                return text
            click.echo(text)
        return None

    async def _stop(self) -> None:
        for process in self._running.values():
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._stop_seconds):
                await asyncio.gather(*(process.wait() for process in self._running.values()))
        except TimeoutError:
            for process in self._running.values():
                if process.returncode is None:
                    process.kill()


# `gatehouse serve`: the service itself.


@click.command()
@partial(common_options, finds_installation=False)
@click.option("--host", help="Address or host name to listen on.  [default: 127.0.0.1]")
@click.option("--port", help="Port to listen on.  [default: 8080]")
@click.option("--workers", help="Number of server processes; more than one needs PostgreSQL.")
@click.option(
    "--demo",
    is_flag=True,
    help="Run with sample data, created on first start in ./demo-data; implies --dev.",
)
@click.option("--worker", type=int, hidden=True, help="Worker number, set by the supervisor.")
def serve(
    invocation: Invocation, *, host: str | None, port: str | None, workers: str | None, demo: bool, worker: int | None
) -> None:
    """Start the service and print `ready <base_url>` once it accepts requests."""
    given = {"server.host": host, "server.port": port, "server.workers": workers}
    flags = {name: value for name, value in given.items() if value is not None}
    if demo:
        from gatehouse.cli import demo as demo_command

        loaded = demo_command.load_demo_settings(invocation, flags)
    else:
        loaded = load_settings(invocation, flags, purpose=LoadPurpose.SERVE)
    create_data_directory(loaded.data)
    logs.configure(dev=loaded.settings.log.format == "console", level=loaded.settings.log.level)
    if loaded.settings.server.workers > 1 and worker is None:
        raise SystemExit(supervise(loaded))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_service(loaded, worker=worker, demo=demo))


async def run_service(loaded: LoadedSettings, *, worker: int | None, demo: bool) -> None:
    settings = loaded.settings
    clock = SystemClock()
    stopping = ShutdownSignal()
    async with AsyncExitStack() as stack:
        stack.enter_context(lock_sqlite_file(settings.database.url.reveal()))
        sockets = stack.enter_context(
            bind_sockets(settings.server.host, settings.server.port, shared=worker is not None)
        )
        if demo and not worker:
            from gatehouse.cli import demo as demo_command

            await demo_command.seed_demo(loaded, clock)
        services = await stack.enter_async_context(open_services(loaded, clock=clock, serving=True))
        served = build_app(services, stopping=stopping, samples=sample_commands(loaded), demo=demo)
        await stack.enter_async_context(housekeeping(services))
        await stack.enter_async_context(serve_operations(settings.operations.bind, worker or 0, served, services))
        if not worker:
            await print_addresses(services, loaded.data)
        if demo and not worker:
            await stack.enter_async_context(demo_command.serve_sample_app(services, loaded))
        server = make_server(
            with_telemetry(served, services, stack),
            host=settings.server.host,
            port=settings.server.port,
            clock=clock,
            stopping=stopping,
            when_ready=lambda: report_ready(settings.server.base_url, clock),
            leave_seconds=settings.server.leave_seconds,
        )
        await server.serve(sockets)
        await run_job(partial(shut_down_games, services.games, services.storage.game_sessions))


def with_telemetry(served: ServedApp, services: Services, stack: AsyncExitStack) -> ASGIApp:
    """Return the application, with OpenTelemetry around it if a collector is set. Raises Misconfigured."""
    settings = services.settings
    if not settings.telemetry.endpoint:
        return served.app
    try:
        from gatehouse.app.telemetry import Telemetry
    except ImportError as error:
        raise Misconfigured(
            f"telemetry.endpoint needs a package that is not installed ({error.name}): install gatehouse[telemetry]"
        ) from error
    telemetry = Telemetry(settings.telemetry, served.metrics.figures, version=__version__)
    stack.push_async_callback(asyncio.to_thread, telemetry.shut_down)
    return telemetry.trace(served.app, settings.server.trusted_proxies, services.clock.monotonic)


def sample_commands(loaded: LoadedSettings) -> SampleCommands:
    """The commands the setup page suggests, in development mode only."""
    if not loaded.dev:
        return NO_SAMPLES
    return SampleCommands(app=command_for(loaded, "sample-app"), game=command_for(loaded, "sample-game"))


def report_ready(base_url: str, clock: Clock) -> None:
    freeze_startup_objects()
    shorten_switch_interval()
    GarbageCollector(clock).start()
    click.echo(f"ready {base_url}")


def lock_sqlite_file(url: str) -> AbstractContextManager[None]:
    return serve_lock(sqlite_path(url)) if url.startswith("sqlite:") else nullcontext()


@asynccontextmanager
async def serve_operations(bind: str, worker: int, served: ServedApp, services: Services) -> AsyncIterator[None]:
    """Metrics belong to one process, so every worker has a listener: the given port and those above it."""
    if not bind:
        yield
        return
    host, _, port = bind.rpartition(":")
    app = operations_app(readiness=served.readiness, metrics=served.metrics, clock=services.clock)
    async with serve_in_loop(app, host=host.strip("[]"), port=int(port) + worker, clock=services.clock):
        yield


async def print_addresses(services: Services, data: Path) -> None:
    base_url = services.settings.server.base_url
    click.echo(f"Gatehouse   {base_url}")
    click.echo(f"API docs    {base_url}/docs")
    click.echo(f"Data        {data}")
    if not await services.accounts.setup.is_closed():
        await print_setup_link(services)


async def print_setup_link(services: Services) -> None:
    """Print a new link, unless another running node printed one that was not used yet."""
    origin = AuditOrigin(actor="serve")
    others = await services.keys.node_reporter.other_nodes()
    secret = await (
        services.accounts.setup.new_link_if_none(origin) if others else services.accounts.setup.new_link(origin)
    )
    if secret is None:
        click.echo(f"Setup       Open the link that another node printed ({names_of(others)}).")
        return
    click.echo(f"Setup       {services.settings.server.base_url}/setup?token={secret}")
    click.echo("            Open it within 30 minutes to create the first administrator; it works once.")
