"""`gatehouse sample-app` and `gatehouse sample-game`: see a sign-in at work."""

import os
import sys
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Final

import click
import uvicorn

from gatehouse.app.services import Services
from gatehouse.cli.common import Invocation, common_options
from gatehouse.cli.services import run_with_services
from gatehouse.demo import samples
from gatehouse.demo.sample_app.application import create_app
from gatehouse.demo.sample_app.settings import SampleSettings
from gatehouse.web.server.server import bind_sockets

SAMPLE_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8090
GAME_FILE: Final = Path("sample_game", "sky_raiders.py")
PACKAGED_CLIENTS: Final = Path(str(files("gatehouse.demo"))) / "clients"
SOURCE_CLIENTS: Final = Path(__file__).parents[3] / "clients"


@click.command("sample-app")
@common_options
@click.option(
    "--port", type=click.IntRange(1, 65_535), default=DEFAULT_PORT, help="Port to listen on.  [default: 8090]"
)
def sample_app(invocation: Invocation, *, port: int) -> None:
    """Run a sample web application on this machine, connected to this installation.

    The first start creates an application, an OAuth client and an access key and saves them in sample-app.json in
    the data directory.
    """

    async def work(services: Services) -> SampleSettings:
        return await samples.prepare_sample_app(services, invocation.data, port=port)

    with bind_sockets(SAMPLE_HOST, port) as sockets:
        settings = run_with_services(invocation, work)
        click.echo(f"Open {settings.home} and sign in. Press Ctrl-C to stop.")
        with suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(create_app(settings), log_level="warning")).run(sockets)


@click.command("sample-game", context_settings={"ignore_unknown_options": True})
@common_options
@click.argument("options", metavar="[GAME_OPTIONS]...", nargs=-1, type=click.UNPROCESSED)
def sample_game(invocation: Invocation, *, options: tuple[str, ...]) -> None:
    """Play Sky Raiders, a terminal game that demonstrates game login.

    GAME_OPTIONS are --plain (no colors, no QR code), --no-browser and --no-code.
    """

    async def work(services: Services) -> tuple[str, int]:
        return services.settings.server.base_url, await samples.prepare_sample_game(services)

    base_url, number = run_with_services(invocation, work)
    game = next(place / GAME_FILE for place in (PACKAGED_CLIENTS, SOURCE_CLIENTS) if (place / GAME_FILE).exists())
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, str(game), base_url, "--app-id", str(number), *options])  # noqa: S606
