"""`gatehouse serve --demo`: the studio it shows, and the sample application beside it."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import click
from click.core import ParameterSource
from msgspec.structs import replace

from gatehouse import logs
from gatehouse.app.services import Services
from gatehouse.cli.common import DEMO_DATA, Invocation, command_for, print_problems, read_settings
from gatehouse.demo import samples
from gatehouse.demo.accounts import ACCOUNTS_FILE, accounts_table
from gatehouse.demo.sample_app.application import create_app
from gatehouse.demo.seeding import seed
from gatehouse.kernel.clock import Clock
from gatehouse.settings.checks import LoadPurpose
from gatehouse.settings.merge import LoadedSettings, SettingsRefused
from gatehouse.settings.sources import SettingProblem
from gatehouse.web.server.server import serve_in_loop

LOOPBACK: Final = "127.0.0.1"
LOCAL_ONLY: Final = (
    "--demo is only for this machine: its data is fictional and anyone who can reach it can see everything."
)


def load_demo_settings(invocation: Invocation, flags: Mapping[str, str]) -> LoadedSettings:
    """Load the settings of --dev in a separate directory; settings that expose a demo to others exit with 78."""
    is_default = click.get_current_context().get_parameter_source("data") is ParameterSource.DEFAULT
    data = DEMO_DATA if is_default else invocation.data
    try:
        loaded = read_settings(replace(invocation, data=data, dev=True), flags, purpose=LoadPurpose.SERVE)
        refuse_other_addresses(loaded)
    except SettingsRefused as refused:
        print_problems(refused)
        click.echo(LOCAL_ONLY, err=True)
        sys.exit(os.EX_CONFIG)
    return loaded


def refuse_other_addresses(loaded: LoadedSettings) -> None:
    """Refuse https addresses: only a proxy provides https, and a proxy makes the demo reachable for others."""
    if not samples.is_this_machine(loaded.settings.server.base_url):
        what = "must be http on localhost, 127.0.0.1 or [::1] with --demo"
        raise SettingsRefused([SettingProblem(where="server.base_url", what=what)])


async def seed_demo(loaded: LoadedSettings, clock: Clock) -> None:
    """Create the studio at the first start, and print its passwords once."""
    log = loaded.settings.log
    logs.configure(dev=True, level="error")  # the replayed day is not logged
    secrets = await asyncio.create_task(seed(loaded, clock))  # its log context ends with it
    logs.configure(dev=log.format == "console", level=log.level)
    if secrets is None:
        click.echo(f"Demo        accounts and passwords: {loaded.data / ACCOUNTS_FILE}")
        return
    click.echo("Demo accounts. These passwords are shown once and saved in")
    click.echo(f"{loaded.data / ACCOUNTS_FILE}\n\n{accounts_table(secrets)}\n")


@asynccontextmanager
async def serve_sample_app(services: Services, loaded: LoadedSettings) -> AsyncIterator[None]:
    """Serve it beside the service, on a port of its own if that is free."""
    port = samples.sample_app_port(services.settings.server.port)
    command = command_for(loaded, "sample-app")
    click.echo(f"Game        {command_for(loaded, 'sample-game')}")
    if not is_port_free(port):
        click.echo(f"Sample app  port {port} is in use; start it with `{command} --port PORT`")
        yield
        return
    settings = await samples.prepare_sample_app(services, loaded.data, port=port)
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
