"""Help, shell completion, and the installation that a command finds by itself."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gatehouse.cli import COMMANDS, SECTIONS, main
from gatehouse.cli.common import Invocation, find_installation
from gatehouse.settings.merge import FILE_NAME
from gatehouse.settings.secret_files import DEV_KEY_FILE
from tests.support.processes import inherited_environment

DEFAULT = Invocation(data=Path("data"), config=None, dev=False)


def test_help_lists_every_command_in_its_section_with_a_whole_sentence() -> None:
    lines = CliRunner().invoke(main, ["--help"], terminal_width=80).output.splitlines()
    assert [line[:-1] for line in lines if line.endswith(":") and not line.startswith(" ")] == ["Options", *SECTIONS]
    assert {line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "} >= set(COMMANDS)
    assert max(map(len, lines)) <= 80
    assert not any("..." in line for line in lines[2:])


NOTHING_HEAVY = """\
import sys
from gatehouse.cli import main
try:
    main(prog_name="gatehouse")
except SystemExit as ended:
    assert not ended.code, ended
heavy = {name for name in sys.modules if name.startswith(("sqlalchemy", "starlette", "gatehouse.app"))}
assert not heavy, heavy
"""


@pytest.mark.parametrize(
    "words", [["--help"], ["user", "--help"], ["user", "role", "add", "-h"], ["serve", "--help"]]
)
def test_help_is_that_of_the_command_and_imports_no_service(words: list[str]) -> None:
    printed = run_light(words)
    # click stores the help option that the first context of a command made; another test may have been first.
    asked = [*words[:-1], "--help"]
    written = CliRunner().invoke(main, asked, prog_name="gatehouse", standalone_mode=False, terminal_width=78).output
    assert printed.replace("-h, --help", "--help").split() == written.replace("-h, --help", "--help").split()


def test_completion_knows_commands_options_and_choices_and_imports_no_service() -> None:
    for typed, expected in (
        ("gatehouse us", "user"),
        ("gatehouse user role ", "add"),
        ("gatehouse client create x --prof", "--profile"),
        ("gatehouse client create x --profile ", "native"),
    ):
        words = typed.split(" ")
        environment = {"COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
        found = run_light([], {**environment, "_GATEHOUSE_COMPLETE": "bash_complete"})
        assert f"plain,{expected}" in found.splitlines(), typed


def run_light(words: list[str], environment: dict[str, str] | None = None) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", NOTHING_HEAVY, *words],
        env=inherited_environment({"COLUMNS": "80", **(environment or {})}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize(
    ("words", "meant"), [(["usr"], "user"), (["user", "lst"], "list"), (["user", "role", "ad"], "add")]
)
def test_unknown_command_suggests_one(words: list[str], meant: str) -> None:
    assert f"Did you mean {meant}?" in CliRunner().invoke(main, words).output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_names_the_program(shell: str) -> None:
    assert "_GATEHOUSE_COMPLETE" in CliRunner().invoke(main, ["completion", shell]).output


def test_command_finds_a_development_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_installation(DEFAULT) == DEFAULT
    demo = tmp_path / "demo-data"
    demo.mkdir()
    (demo / DEV_KEY_FILE).touch()
    assert find_installation(DEFAULT) == Invocation(data=Path("demo-data"), config=None, dev=True)
    data = tmp_path / "data"
    data.mkdir()
    assert find_installation(DEFAULT) == DEFAULT  # it has no key of development mode
    (data / DEV_KEY_FILE).touch()
    assert find_installation(DEFAULT).dev
    monkeypatch.setenv("GATEHOUSE__SECURITY__MASTER_KEY_FILE", "/etc/gatehouse/key")
    assert not find_installation(DEFAULT).dev
    monkeypatch.delenv("GATEHOUSE__SECURITY__MASTER_KEY_FILE")
    (data / FILE_NAME).touch()
    assert not find_installation(DEFAULT).dev


def test_service_itself_is_never_in_development_mode_by_chance() -> None:
    serve = main.get_command(click.Context(main), "serve")
    assert serve is not None
    option = next(one for one in serve.params if one.name == "data")
    assert isinstance(option, click.Option)
    assert option.show_default == "./data"
