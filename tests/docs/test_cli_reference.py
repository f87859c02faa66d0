import re

import click
import pytest
from tools.cli_reference import PAGE, commands, own_options, page

COMMANDS = dict(commands())
WITHOUT_AN_INSTALLATION = {"gatehouse completion", "gatehouse version"}


def test_the_reference_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run tools/cli_reference.py"


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
