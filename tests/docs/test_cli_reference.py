import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tools.cli_reference import FILE, PAGE, commands, manifest, own_options, page

from gatehouse.cli import main as gatehouse
from tests.support.find_programs import ROOT

COMMANDS = dict(commands())
GUIDES = {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("clients/**/*.md")} - {PAGE}
BLOCK = re.compile(r"^ *```(?:sh|console|yaml)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
CALL = re.compile(r"(?<![^\s/('$])gatehouse(?:-ctl)? (?!gatehouse\b)([a-z][^|<>;&)#]*)")
OTHER_PROGRAMS = ("pip ", "helm ")  # their arguments can be "gatehouse"
WITHOUT_AN_INSTALLATION = {"gatehouse completion", "gatehouse version"}


def test_the_reference_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run tools/cli_reference.py"
    assert FILE.read_text(encoding="utf-8") == manifest(), "run tools/cli_reference.py"


def test_every_command_has_a_section() -> None:
    sections = re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sections == [path.removeprefix("gatehouse ") for path in COMMANDS]
    assert {"backup", "restore", "key rotate", "user token"} <= set(sections)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_help_starts_with_one_summary_sentence(path: str) -> None:
    first, _, _ = (COMMANDS[path].help or "").partition("\n")
    assert re.fullmatch(r"[A-Z].{8,115}[.:]", first)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_is_explained_or_has_choices(path: str) -> None:
    for option in own_options(COMMANDS[path]):
        assert isinstance(option.type, click.Choice) or re.fullmatch(r"[A-Z].{5,}", option.help or ""), option.name


@pytest.mark.parametrize("path", sorted(COMMANDS.keys() - WITHOUT_AN_INSTALLATION))
def test_every_command_accepts_data_config_and_dev_options(path: str) -> None:
    """R8."""
    names = {name for option in COMMANDS[path].params for name in option.opts}
    assert {"--data", "--config", "--dev"} <= names


def calls_in(page: Path) -> Iterator[str]:
    """What the page calls gatehouse with, in its code blocks and in its sentences."""
    text = re.sub(r"\$\([^)]*\)", "VALUE", page.read_text(encoding="utf-8").replace("\\\n", " "))
    lines = [line for block in BLOCK.findall(text) for line in block.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", text)
    for line in lines:
        if not line.strip().startswith(OTHER_PROGRAMS):
            yield from CALL.findall(line)


def problem_of(call: str) -> str | None:
    words, command = shlex.split(re.sub(r"[\[\]]", "", call).rstrip(" '")), gatehouse
    while words and isinstance(command, click.Group):
        name, *words = words
        found = command.get_command(click.Context(command), name)
        if found is None:
            return f"{call}: there is no command {name}"
        command = found
    try:
        _, left, _ = command.make_parser(click.Context(command)).parse_args(words)
    except click.UsageError as error:
        return f"{call}: {error.message}"
    return f"{call}: unexpected {left}" if left and not isinstance(command, click.Group) else None


def test_every_command_in_the_documents_exists_with_its_options() -> None:
    calls = {call for page in GUIDES for call in calls_in(page)}
    assert len(calls) > 100
    assert [problem for call in sorted(calls) if (problem := problem_of(call))] == []
