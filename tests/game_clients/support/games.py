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
    find_godot_4,
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
UNITY: Final = GAME_CLIENTS / "unity"
BUILT: Final = DOWNLOADS / "game-clients"
ENDS_WITHIN: Final = 45.0  # seconds

TYPESCRIPT: Final = Capability(name="TypeScript", find=cache(find_typescript))
CPP: Final = Capability(name="C++ with libcurl and libsodium", find=cache(find_cpp), optional=True)
MONO: Final = Capability(name="Mono (C#)", find=cache(find_mono), optional=True)
GODOT: Final = Capability(name="Godot 3", find=cache(find_godot), optional=True)
GODOT_4: Final = Capability(name="Godot 4", find=cache(find_godot_4), optional=True)


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
    copies = {source: home / source.name for source in [*(CLIENTS / folder).glob("*.*"), PROGRAMS / driver]}
    build_copies(home, copies, *commands)


def build_package(home: Path, folder: str, *programs: Path, commands: Sequence[Sequence[str | Path]] = ()) -> None:
    """Like `build`, with the directories of a package."""
    files = [path for path in (CLIENTS / folder).rglob("*") if path.is_file()]
    copies = {source: home / source.relative_to(CLIENTS / folder) for source in files}
    build_copies(home, {**copies, **{program: home / program.name for program in programs}}, *commands)


def build_copies(home: Path, copies: Mapping[Path, Path], *commands: Sequence[str | Path]) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / f"{home.name}.lock").open("w") as lock:  # a parallel test process may build the same
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_made_from(home, *copies):
            return
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        for source, copy in copies.items():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
        for command in commands:
            built = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
            assert built.returncode == 0, built.stdout + built.stderr
        stamp(home, *copies)


def python_game(home: Path) -> Game:
    build(home, "python", "driver.py")
    python = [sys.executable, "-B", "-W", "error"]
    return Game(language="python", home=home, driver=[*python, "driver.py"], example=[*python, "example.py"])


def cpp_game(home: Path) -> Game:
    compiler = require_program(CPP)
    strictly = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
    commands = [
        [compiler, *strictly, f"{name}.cpp", "-o", name, *libraries, "-pthread"]
        for name, libraries in {"driver": ("-lcurl", "-lsodium"), "example": ("-lcurl",)}.items()
    ]
    build(home, "cpp", "driver.cpp", *commands)
    return Game(language="cpp", home=home, driver=["./driver"], example=["./example"])


def csharp_game(home: Path) -> Game:
    compiler, mono = require_program(MONO), shutil.which("mono")
    assert mono is not None
    strictly = ["-langversion:7.2", "-warn:4", "-warnaserror", "-r:System.Net.Http"]
    commands = [
        [compiler, *strictly, "Driver.cs", "GatehouseLogin.cs", "GatehouseGuest.cs", "Ed25519.cs"],
        [compiler, *strictly, "Example.cs", "GatehouseLogin.cs"],
    ]
    signatures = CLIENTS / "unity" / "Runtime" / "Ed25519.cs"
    build_package(home, "csharp", PROGRAMS / "Driver.cs", signatures, commands=commands)
    return Game(language="csharp", home=home, driver=[mono, "Driver.exe"], example=[mono, "Example.exe"])


def godot_game(home: Path) -> Game:
    engine = str(require_program(GODOT))
    build(home, "gdscript", "driver.gd")
    # It writes to the user's home, which does not exist in tests.
    own = {"HOME": str(home), "XDG_DATA_HOME": str(home / "data"), "LC_ALL": "en_US.UTF-8"}
    driver, example = ([engine, "-s", f"{name}.gd"] for name in ("driver", "example"))
    return Game(language="gdscript", home=home, driver=driver, example=example, environment=own)


def godot_4_game(home: Path) -> Game:
    engine = str(require_program(GODOT_4))
    build_package(home, "godot", PROGRAMS / "driver4.gd")
    own = {"HOME": str(home), "XDG_DATA_HOME": str(home / "data"), "LC_ALL": "en_US.UTF-8"}
    driver, example = (
        [engine, "--headless", "--no-header", "-s", f"{name}.gd", "--"] for name in ("driver4", "example")
    )
    return Game(language="godot", home=home, driver=driver, example=example, environment=own)


def unity_game(home: Path) -> Game:
    """The package against our own version of Unity's API: UNITY/*.cs."""
    compiler, mono = require_program(MONO), shutil.which("mono")
    assert mono is not None
    strictly = ["-langversion:7.2", "-warn:4", "-warnaserror", "-r:System.Net.Http"]
    package = ["-recurse:Runtime/*.cs", "UnityEngine.cs", "UnityWebRequest.cs"]
    commands = [
        [compiler, *strictly, "UnityDriver.cs", *package],
        [compiler, *strictly, "ExampleHost.cs", "Samples~/SignIn/SignInExample.cs", *package],
    ]
    build_package(home, "unity", PROGRAMS / "UnityDriver.cs", *UNITY.glob("*.cs"), commands=commands)
    (home / "preferences").mkdir(exist_ok=True)
    own = {"PREFERENCES": str(home / "preferences")}
    driver, example = ([mono, f"{name}.exe"] for name in ("UnityDriver", "ExampleHost"))
    return Game(language="unity", home=home, driver=driver, example=example, environment=own)


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
    "godot": godot_4_game,
    "typescript": typescript_game,
    "unity": unity_game,
}
