"""`gatehouse sample-app` and `gatehouse sample-game`: see a sign-in at work."""

import os
import sys
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Final

import click
import uvicorn

from gatehouse.app.house import House
from gatehouse.cli.common import Invocation, common_options
from gatehouse.cli.house import in_house
from gatehouse.demo import connecting
from gatehouse.demo.sample_app.application import application
from gatehouse.demo.sample_app.settings import SampleSettings
from gatehouse.web.server import bound

LOOPBACK: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8090
GAME: Final = Path("sample_game", "sky_raiders.py")
IN_THE_PACKAGE: Final = Path(str(files("gatehouse.demo"))) / "clients"
IN_THE_SOURCES: Final = Path(__file__).parents[3] / "clients"


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

    async def work(house: House) -> SampleSettings:
        return await connecting.sample_app(house, invocation.data, port=port)

    with bound(LOOPBACK, port) as sockets:
        settings = in_house(invocation, work)
        click.echo(f"Open {settings.home} and sign in. Press Ctrl-C to stop.")
        with suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(application(settings), log_level="warning")).run(sockets)


@click.command("sample-game", context_settings={"ignore_unknown_options": True})
@common_options
@click.argument("options", metavar="[GAME_OPTIONS]...", nargs=-1, type=click.UNPROCESSED)
def sample_game(invocation: Invocation, *, options: tuple[str, ...]) -> None:
    """Play Sky Raiders, a terminal game that demonstrates game login.

    GAME_OPTIONS are --plain (no colors, no QR code), --no-browser and --no-code.
    """

    async def work(house: House) -> tuple[str, int]:
        return house.settings.server.base_url, await connecting.sample_game(house)

    base_url, number = in_house(invocation, work)
    game = next(place / GAME for place in (IN_THE_PACKAGE, IN_THE_SOURCES) if (place / GAME).exists())
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, str(game), base_url, "--app-id", str(number), *options])  # noqa: S606
