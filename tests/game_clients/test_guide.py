"""Run every command of docs/guides/game-login.md."""

import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.game_clients.conftest import GameStudio
from tests.game_clients.support.desktop import Desktop
from tests.game_clients.support.games import CLIENTS, CPP, GODOT, GODOT_4, MONO, TYPESCRIPT
from tests.game_clients.support.player import NICK, Player
from tests.interop.toolchains import find_node
from tests.support.capabilities import Capability, require_program
from tests.support.guides import programs_for, texts_of
from tests.support.oauth import claims_of
from tests.support.processes import WatchedProcess

GUIDE: Final = "game-login"
LINTERS_LINE: Final = re.compile(r"\A# ruff: .*\n")
NEEDS: Final[Mapping[str, Capability]] = {
    "g++": CPP,
    "mcs": MONO,
    "godot3-server": GODOT,
    "godot ": GODOT_4,
    "tsc": TYPESCRIPT,
}
EXAMPLES: Final = {
    "cpp": "cpp/example.cpp",
    "csharp": "csharp/Example.cs",
    "gdscript": "gdscript/example.gd",
    "python": "python/example.py",
    "typescript": "typescript/example.ts",
}


def blocks(kind: str) -> list[str]:
    return programs_for(__file__, GUIDE, kind)


SCRIPTS: Final = [*blocks("sh"), *programs_for(__file__, "godot", "sh")]


@pytest.fixture
def project_copy(tmp_path: Path) -> Path:
    """A clone of the project with the TypeScript compiler installed."""
    home = tmp_path / "clone"
    shutil.copytree(CLIENTS, home / "clients", ignore=shutil.ignore_patterns("__pycache__"))
    programs = home / "clients" / "typescript" / "node_modules" / ".bin"
    programs.mkdir(parents=True)
    (programs / "tsc").symlink_to(TYPESCRIPT.find() or "/nowhere")
    (home / "bin").mkdir()
    (home / "bin" / "godot").write_text(f'#!/bin/sh\nexec {GODOT_4.find()} "$@"\n')
    (home / "bin" / "godot").chmod(0o755)
    return home


@pytest.mark.parametrize(("language", "file"), EXAMPLES.items(), ids=EXAMPLES)
def test_the_examples_of_the_guide_are_the_examples(language: str, file: str) -> None:
    assert blocks(language) == [LINTERS_LINE.sub("", (CLIENTS / file).read_text())]


def test_the_application_of_the_guide_is_made(studio: GameStudio, tmp_path: Path) -> None:
    described = tmp_path / "game.yaml"
    described.write_text(blocks("yaml")[0].replace("50010", "50777").replace("Sky Raiders", "Sky Raiders 2"))
    command, *answer = blocks("console")[0].splitlines()
    assert command == "$ gatehouse apply game.yaml"
    output = studio.commands("apply", described)
    assert output.splitlines() == [line.replace("50010", "50777") for line in answer]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.split()[1 if script[0] == "p" else -4])
def test_a_program_of_the_guide_is_built_and_signs_a_player_in(
    script: str, studio: GameStudio, desktop: Desktop, project_copy: Path
) -> None:
    for program, capability in NEEDS.items():
        if program in script:
            require_program(capability)
    programs = [Path(program).parent for program in (sys.executable, *(find_node() or ())[:1])]
    paths = [desktop.environment["PATH"], project_copy / "bin", *programs]
    path = ":".join([*map(str, paths), "/usr/local/bin:/usr/bin:/bin"])
    environment = {"PATH": path, "HOME": str(project_copy), "GATEHOUSE_URL": studio.base_url}
    with (
        WatchedProcess(["bash", "-euc", script], cwd=project_copy, environment=environment) as script_process,
        Player() as player,
    ):
        (link,) = desktop.wait_for_open()
        player.confirm(link)
        script_process.wait_for_line(f"^(Hello|Welcome aboard), {NICK}", script_process.stdout)


def test_program_of_the_guide_about_back_ends_prints_an_id_token(
    studio: GameStudio, desktop: Desktop, project_copy: Path, tmp_path: Path
) -> None:
    (program,) = programs_for(__file__, "game-back-ends", "python")
    described = tmp_path / "back-end.yaml"
    described.write_text("".join(texts_of("game-back-ends", "yaml")))
    studio.commands("apply", described)
    command = [sys.executable, "-B", "-c", program.replace("https://sso.studio.example", studio.base_url)]
    clients = project_copy / "clients" / "python"
    with WatchedProcess(command, cwd=clients, environment=desktop.environment) as playing, Player() as player:
        (link,) = desktop.wait_for_open()
        player.confirm(link)
        token = playing.wait_for_line(r"^(ey\S+)$", playing.stdout)[1]
    assert (claims_of(token)["sub"], claims_of(token)["aud"]) == (studio.user_id, "raiders-backend")


def test_the_record_of_a_refused_game_is_found_as_the_guide_says(
    studio: GameStudio, desktop: Desktop, tmp_path: Path
) -> None:
    words = blocks("console")[1].strip().removeprefix("$ gatehouse ").split()
    example = [sys.executable, "-B", str(CLIENTS / "python" / "example.py"), studio.base_url, "50010"]
    with WatchedProcess(example, cwd=tmp_path, environment=desktop.environment) as playing, Player() as player:
        (link,) = desktop.wait_for_open()
        player.decide(player.open(link), "cancel")
        record = playing.wait_for_line("^Not signed in: refused (.+)$", playing.stderr)[1]
    assert studio.commands(*(record if word == "ID" else word for word in words))
