"""`gatehouse serve`: the service itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path

import click
import uvloop

from gatehouse import logs
from gatehouse.app.front import Front, front
from gatehouse.app.house import House, open_house
from gatehouse.app.housekeeping import attempt, housekeeping
from gatehouse.app.memory import Tidying, settle_memory
from gatehouse.audit.model import Origin
from gatehouse.cli.common import Invocation, command_for, common_options, load_settings
from gatehouse.cli.supervisor import supervise
from gatehouse.kernel.background import switch_often
from gatehouse.kernel.clock import Clock, SystemClock
from gatehouse.settings import Loaded, Purpose
from gatehouse.storage.sqlite import path_of, serving_alone
from gatehouse.web.health import operations_app
from gatehouse.web.pages.setup import NO_SAMPLES, SampleCommands
from gatehouse.web.server import Stopping, bound, make_server, serving


@click.command()
@common_options
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
        from gatehouse.cli import demo as showing

        loaded = showing.load_settings(invocation, flags)
    else:
        loaded = load_settings(invocation, flags, purpose=Purpose.SERVE)
    loaded.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    logs.configure(dev=loaded.settings.log.format == "console", level=loaded.settings.log.level)
    if loaded.settings.server.workers > 1 and worker is None:
        raise SystemExit(supervise(loaded))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(loaded, worker=worker, demo=demo))


async def run(loaded: Loaded, *, worker: int | None, demo: bool) -> None:
    settings = loaded.settings
    clock = SystemClock()
    stopping = Stopping()
    async with AsyncExitStack() as stack:
        stack.enter_context(alone(settings.database.url.reveal()))
        sockets = stack.enter_context(bound(settings.server.host, settings.server.port, shared=worker is not None))
        if demo and not worker:
            from gatehouse.cli import demo as showing

            await showing.prepare(loaded, clock)
        house = await stack.enter_async_context(open_house(loaded, clock=clock, serving=True))
        served = front(house, stopping=stopping, samples=sample_commands(loaded), demo=demo)
        await stack.enter_async_context(housekeeping(house))
        await stack.enter_async_context(operations(settings.operations.bind, worker or 0, served, house))
        if not worker:
            await greet(house, loaded.data)
        if demo and not worker:
            await stack.enter_async_context(showing.sample_app(house, loaded))
        server = make_server(
            served.app,
            host=settings.server.host,
            port=settings.server.port,
            clock=clock,
            stopping=stopping,
            static_documents=served.static_documents,
            when_ready=lambda: tell_ready(settings.server.base_url, clock),
            leave_seconds=settings.server.leave_seconds,
        )
        await server.serve(sockets)
        await attempt(partial(served.game.leave, house.storage.game_sessions))


def sample_commands(loaded: Loaded) -> SampleCommands:
    """What the first administrator is told to try, on the machine of a developer only."""
    if not loaded.dev:
        return NO_SAMPLES
    return SampleCommands(app=command_for(loaded, "sample-app"), game=command_for(loaded, "sample-game"))


def tell_ready(base_url: str, clock: Clock) -> None:
    settle_memory()
    switch_often()
    Tidying(clock).begin()
    click.echo(f"ready {base_url}")


def alone(url: str) -> AbstractContextManager[None]:
    return serving_alone(path_of(url)) if url.startswith("sqlite:") else nullcontext()


@asynccontextmanager
async def operations(bind: str, worker: int, served: Front, house: House) -> AsyncIterator[None]:
    """Figures are a process's own, so every worker has a listener: the port named, and those above it."""
    if not bind:
        yield
        return
    host, _, port = bind.rpartition(":")
    app = operations_app(readiness=served.readiness, metrics=served.metrics)
    async with serving(app, host=host.strip("[]"), port=int(port) + worker, clock=house.clock):
        yield


async def greet(house: House, data: Path) -> None:
    base_url = house.settings.server.base_url
    click.echo(f"Gatehouse   {base_url}")
    click.echo(f"API docs    {base_url}/docs")
    click.echo(f"Data        {data}")
    if not await house.setup.is_closed():
        secret = await house.setup.new_link(Origin(actor="serve"))
        click.echo(f"Setup       {base_url}/setup?token={secret}")
        click.echo("            Open it within 30 minutes to create the first administrator; it works once.")
