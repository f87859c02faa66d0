"""`gatehouse serve --demo`: the studio it shows, and the sample application beside it."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from gatehouse import logs
from gatehouse.app.house import Services
from gatehouse.cli.common import EX_CONFIG, Invocation, command_for, print_problems, read_settings
from gatehouse.demo import connecting
from gatehouse.demo.accounts import ACCOUNTS_FILE, accounts_table
from gatehouse.demo.sample_app.application import create_app
from gatehouse.demo.seeding import seed
from gatehouse.kernel.clock import Clock
from gatehouse.settings import LoadedSettings, LoadPurpose, SettingsRefused
from gatehouse.settings.sources import SettingProblem
from gatehouse.web.server import serve_in_loop

DEMO_DATA: Final = Path("demo-data")
LOOPBACK: Final = "127.0.0.1"
LOCAL_ONLY: Final = (
    "--demo is only for this machine: its data is fictional and anyone who can reach it can see everything."
)


def load_demo_settings(invocation: Invocation, flags: Mapping[str, str]) -> LoadedSettings:
    """Those of --dev in a directory of its own; all that would let others reach a demo is refused with 78."""
    is_default = click.get_current_context().get_parameter_source("data") is ParameterSource.DEFAULT
    data = DEMO_DATA if is_default else invocation.data
    try:
        loaded = read_settings(replace(invocation, data=data, dev=True), flags, purpose=LoadPurpose.SERVE)
        refuse_other_addresses(loaded)
    except SettingsRefused as refused:
        print_problems(refused)
        click.echo(LOCAL_ONLY, err=True)
        sys.exit(EX_CONFIG)
    return loaded


def refuse_other_addresses(loaded: LoadedSettings) -> None:
    """Only a proxy speaks https for us, and a proxy serves others."""
    if not connecting.is_this_machine(loaded.settings.server.base_url):
        what = "must be http on localhost, 127.0.0.1 or [::1] with --demo"
        raise SettingsRefused([SettingProblem(where="server.base_url", what=what)])


async def seed_demo(loaded: LoadedSettings, clock: Clock) -> None:
    """At the first start: make the studio, and tell its passwords once."""
    log = loaded.settings.log
    logs.configure(dev=True, level="error")  # the day that is lived through is nobody's news
    secrets = await asyncio.create_task(seed(loaded, clock))  # what it binds to log lines ends with it
    logs.configure(dev=log.format == "console", level=log.level)
    if secrets is None:
        click.echo(f"Demo        accounts and passwords: {loaded.data / ACCOUNTS_FILE}")
        return
    click.echo("Demo accounts. These passwords are shown once and saved in")
    click.echo(f"{loaded.data / ACCOUNTS_FILE}\n\n{accounts_table(secrets)}\n")


@asynccontextmanager
async def serve_sample_app(services: Services, loaded: LoadedSettings) -> AsyncIterator[None]:
    """Serve it beside the service, on a port of its own if that is free."""
    port = connecting.sample_app_port(services.settings.server.port)
    command = command_for(loaded, "sample-app")
    click.echo(f"Game        {command_for(loaded, 'sample-game')}")
    if not is_port_free(port):
        click.echo(f"Sample app  port {port} is in use; start it with `{command} --port PORT`")
        yield
        return
    settings = await connecting.prepare_sample_app(services, loaded.data, port=port)
    async with serve_in_loop(create_app(settings), host=LOOPBACK, port=port, clock=services.clock):
        click.echo(f"Sample app  {settings.home}")
        yield


def is_port_free(port: int) -> bool:
    with socket.socket() as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
