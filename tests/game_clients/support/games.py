"""Games for the tests: a small program (programs/) around each client, built and run as a studio would."""

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from tests.interop.toolchains import (
    GAME_CLIENTS,
    find_cpp,
    find_godot,
    find_mono,
    find_node,
    find_typescript,
    is_made_from,
    stamp,
)
from tests.support.capabilities import Capability, require_program
from tests.support.find_programs import DOWNLOADS, ROOT
from tests.support.processes import WatchedProcess

CLIENTS: Final = ROOT / "clients"
PROGRAMS: Final = GAME_CLIENTS / "programs"
BUILT: Final = DOWNLOADS / "game-clients"
ENDS_WITHIN: Final = 45.0  # seconds

TYPESCRIPT: Final = Capability(name="TypeScript", find=cache(find_typescript))
CPP: Final = Capability(name="C++ with libcurl", find=cache(find_cpp), optional=True)
MONO: Final = Capability(name="Mono (C#)", find=cache(find_mono), optional=True)
GODOT: Final = Capability(name="Godot 3", find=cache(find_godot), optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """A client with its two programs: the test game, and the example of the guide."""

    language: str
    home: Path
    driver: Sequence[str]
    example: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    # Several base URLs separated by commas are several sign-ins in turn.
    def start(self, base_url: str, *words: str, environment: Mapping[str, str] | None = None) -> WatchedProcess:
        return self._run([*self.driver, base_url, *words], environment)

    def start_example(self, *words: str, environment: Mapping[str, str] | None = None) -> WatchedProcess:
        return self._run([*self.example, *words], environment)

    def play(self, base_url: str, *words: str, environment: Mapping[str, str] | None = None) -> dict[str, str]:
        """Run the game to its end and return its output."""
        with self.start(base_url, *words, environment=environment) as game:
            return output_of(game)

    def _run(self, command: Sequence[str], environment: Mapping[str, str] | None) -> WatchedProcess:
        return WatchedProcess(command, cwd=self.home, environment={**self.environment, **(environment or {})})


def output_of(game: WatchedProcess) -> dict[str, str]:
    """Parse the complete output: the last line of each name, and all lines of `state` and `outcome` in order."""
    game.wait_for_line("^end", game.stdout, within=ENDS_WITHIN)
    game.kill()  # Mono 6.8 sometimes does not exit
    lines = [line.rstrip("\n").partition(" ") for line in game.stdout if not line.startswith("Godot Engine")]
    last_values = {name: value for name, _, value in lines if name}
    several = {
        wanted: " ".join(value for name, _, value in lines if name == wanted) for wanted in ("state", "outcome")
    }
    return {**last_values, **several}


def build(home: Path, folder: str, driver: str, *commands: Sequence[str | Path]) -> None:
    """Copy the sources and build them, unless the same sources were built before."""
    sources = [*(CLIENTS / folder).glob("*.*"), PROGRAMS / driver]
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / f"{folder}.lock").open("w") as lock:  # a parallel test process may build the same
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_made_from(home, *sources):
            return
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        for source in sources:
            shutil.copy(source, home)
        for command in commands:
            built = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
            assert built.returncode == 0, built.stdout + built.stderr
        stamp(home, *sources)


def python_game(home: Path) -> Game:
    build(home, "python", "driver.py")
    python = [sys.executable, "-B", "-W", "error"]
    return Game(language="python", home=home, driver=[*python, "driver.py"], example=[*python, "example.py"])


def cpp_game(home: Path) -> Game:
    compiler = require_program(CPP)
    strictly = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
    commands = [
        [compiler, *strictly, f"{name}.cpp", "-o", name, "-lcurl", "-pthread"] for name in ("driver", "example")
    ]
    build(home, "cpp", "driver.cpp", *commands)
    return Game(language="cpp", home=home, driver=["./driver"], example=["./example"])


def csharp_game(home: Path) -> Game:
    compiler, mono = require_program(MONO), shutil.which("mono")
    assert mono is not None
    strictly = ["-langversion:7.2", "-warn:4", "-warnaserror", "-r:System.Net.Http"]
    commands = [[compiler, *strictly, f"{name}.cs", "GatehouseLogin.cs"] for name in ("Driver", "Example")]
    build(home, "csharp", "Driver.cs", *commands)
    return Game(language="csharp", home=home, driver=[mono, "Driver.exe"], example=[mono, "Example.exe"])


def godot_game(home: Path) -> Game:
    engine = str(require_program(GODOT))
    build(home, "gdscript", "driver.gd")
    # It writes to the user's home, which does not exist in tests.
    own = {"HOME": str(home), "XDG_DATA_HOME": str(home / "data"), "LC_ALL": "en_US.UTF-8"}
    driver, example = ([engine, "-s", f"{name}.gd"] for name in ("driver", "example"))
    return Game(language="gdscript", home=home, driver=driver, example=example, environment=own)


def typescript_game(home: Path) -> Game:
    compiler, node = require_program(TYPESCRIPT), find_node()
    assert node is not None
    build(home, "typescript", "driver.ts", [node[0], compiler])
    return Game(language="typescript", home=home, driver=[node[0], "driver.js"], example=[node[0], "example.js"])


GAMES: Final[Mapping[str, Callable[[Path], Game]]] = {
    "python": python_game,
    "cpp": cpp_game,
    "csharp": csharp_game,
    "gdscript": godot_game,
    "typescript": typescript_game,
}
