"""Games that the console shows under Connect are built and sign a player in."""

import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from gatehouse.web.console.applications.snippets import BY_NAME, SnippetKind, render_snippet
from tests.game_clients.conftest import WHOLE, GameStudio
from tests.game_clients.support.desktop import Desktop
from tests.game_clients.support.games import (
    CLIENTS,
    CPP,
    GODOT,
    GODOT_4,
    MONO,
    TYPESCRIPT,
    UNITY,
    find_node,
    require_program,
)
from tests.game_clients.support.player import NICK, Player
from tests.support.processes import WatchedProcess

APPLICATION: Final = 50_010
GODOT_3_PROJECT: Final = 'config_version=4\n[application]\nconfig/name="test"\nrun/main_scene="res://game.tscn"\n'
GODOT_3_SCENE: Final = """\
[gd_scene load_steps=2 format=2]
[ext_resource path="res://game.gd" type="Script" id=1]
[node name="game" type="Node"]
script = ExtResource( 1 )
"""
GODOT_4_SCENE: Final = """\
[gd_scene load_steps=2 format=3]
[ext_resource path="res://game.gd" type="Script" id="1"]
[node name="game" type="Node"]
script = ExtResource("1")
"""
GODOT_4_COMPILER: Final = """\
extends Node

func _ready():
	get_tree().quit(0 if load("res://guest.gd").can_instantiate() else 1)
"""
UNITY_HOST: Final = """\
using UnityEngine;
public static class Host
{
    public static void Main()
    {
        var scene = new GameObject("scene");
        scene.AddComponent<Gatehouse.GatehouseClient>();
        scene.AddComponent<SignIn>();
        Engine.RunFramesUntil(() => false);
    }
}
"""
UNITY_FILES: Final = "-recurse:Runtime/*.cs UnityEngine.cs UnityWebRequest.cs Host.cs SignIn.cs Guest.cs"


def copy_client(home: Path, *names: str) -> None:
    for name in names:
        source = CLIENTS / name
        if source.is_dir():
            shutil.copytree(source, home, dirs_exist_ok=True)
        else:
            shutil.copy(source, home)


def python(home: Path) -> str:
    copy_client(home, "python/gatehouse_login.py")
    return "python -B -m py_compile guest.py steam.py && exec python -B game.py"


def cpp(home: Path) -> str:
    require_program(CPP)
    copy_client(home, "cpp/gatehouse_login.hpp", "cpp/gatehouse_guest.hpp")
    compiled = "g++ -std=c++17 -fsyntax-only -x c++ guest.hpp"
    return f"{compiled} && g++ -std=c++17 game.cpp -o game -lcurl -pthread && exec ./game"


def csharp(home: Path) -> str:
    require_program(MONO)
    copy_client(home, "csharp/GatehouseLogin.cs", "csharp/GatehouseGuest.cs", "unity/Runtime/Ed25519.cs")
    library = "mcs -target:library -r:System.Net.Http Guest.cs GatehouseLogin.cs GatehouseGuest.cs Ed25519.cs"
    return f"{library} && mcs -r:System.Net.Http Game.cs GatehouseLogin.cs && exec mono Game.exe"


def unity(home: Path) -> str:
    """With our own version of Unity's API."""
    require_program(MONO)
    copy_client(home, "unity")
    for file in ("UnityEngine.cs", "UnityWebRequest.cs"):
        shutil.copy(UNITY / file, home)
    (home / "Host.cs").write_text(UNITY_HOST)
    (home / "preferences").mkdir()
    return f"mcs -langversion:7.2 -r:System.Net.Http -out:Host.exe {UNITY_FILES} && exec mono Host.exe"


def godot_4(home: Path) -> str:
    program = require_program(GODOT_4)
    copy_client(home, "godot")
    (home / "game.tscn").write_text(GODOT_4_SCENE)
    (home / "compiler.gd").write_text(GODOT_4_COMPILER)
    (home / "compiler.tscn").write_text(GODOT_4_SCENE.replace("game", "compiler"))
    project = home / "project.godot"
    scene = 'config/name="Gatehouse example"\nrun/main_scene="res://game.tscn"'
    project.write_text(project.read_text().replace('config/name="Gatehouse example"', scene))
    run = f"{program} --headless --no-header --path ."
    return f"{run} res://compiler.tscn && exec {run}"


def godot_3(home: Path) -> str:
    program = require_program(GODOT)
    copy_client(home, "gdscript/gatehouse_login.gd")
    (home / "project.godot").write_text(GODOT_3_PROJECT)
    (home / "game.tscn").write_text(GODOT_3_SCENE)
    return f"exec {program} --path ."


def typescript(home: Path) -> str:
    compiler, node = require_program(TYPESCRIPT), find_node()
    assert node is not None
    copy_client(home, "typescript/gatehouse_login.ts", "typescript/tsconfig.json", "typescript/package.json")
    return f"{node[0]} {compiler} && exec {node[0]} game.js"


STORED_BY_THE_ENGINE: Final = frozenset({"game-unity", "game-godot4"})
GAMES: Final[dict[str, Callable[[Path], str]]] = {
    "game-python": python,
    "game-typescript": typescript,
    "game-cpp": cpp,
    "game-csharp": csharp,
    "game-unity": unity,
    "game-godot4": godot_4,
    "game-godot3": godot_3,
}
SAMPLE: Final[Sequence[str]] = [*GAMES] if WHOLE else ["game-python"]


def test_every_game_of_the_console_is_run() -> None:
    assert GAMES.keys() == {one.name for one in BY_NAME.values() if one.kind is SnippetKind.GAME}


def test_godot_4_compiles_the_guest_code_of_the_console(tmp_path: Path) -> None:
    """In the project of a game, where the add-on has its autoload."""
    for file in render_snippet(BY_NAME["game-godot4"], None, application_id=APPLICATION, base_url="http://localhost"):
        (tmp_path / file.name).write_text(file.text + "\n")
    compiler, _, _ = godot_4(tmp_path).partition(" && ")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["bash", "-euc", compiler], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "ERROR" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize("name", SAMPLE)
def test_a_game_of_the_console_signs_a_player_in(
    name: str, studio: GameStudio, desktop: Desktop, tmp_path: Path
) -> None:
    for file in render_snippet(BY_NAME[name], None, application_id=APPLICATION, base_url=studio.base_url):
        (tmp_path / file.name).write_text(file.text + "\n")
    script = GAMES[name](tmp_path)
    environment = {
        "PATH": f"{desktop.environment['PATH']}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "PREFERENCES": str(tmp_path / "preferences"),
        "LC_ALL": "C.UTF-8",
    }
    with (
        WatchedProcess(["bash", "-euc", script], cwd=tmp_path, environment=environment) as game,
        Player() as player,
    ):
        (link,) = desktop.wait_for_open()
        player.confirm(link)
        game.wait_for_line(f"Hello, {NICK}", game.stdout)
    kept = [path for path in (tmp_path / "device", *tmp_path.rglob("app_userdata/*/device")) if path.exists()]
    assert len(kept) == (name not in STORED_BY_THE_ENGINE)
    for path in kept:
        assert re.fullmatch("[0-9a-f]{64}", path.read_text())
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
