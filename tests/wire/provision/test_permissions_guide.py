"""Run docs/guides/permissions.md."""

from pathlib import Path

from tests.support.command_line import CommandLine
from tests.support.guides import programs_for


def blocks(kind: str) -> list[str]:
    return programs_for(__file__, "permissions", kind)


def steps() -> list[tuple[list[str], list[str]]]:
    """Each command with its expected output lines."""
    commands = "".join(blocks("console")).split("$ gatehouse ")[1:]
    return [(step.splitlines()[0].split(), step.splitlines()[1:]) for step in commands]


def test_every_command_prints_what_the_guide_shows(gatehouse: CommandLine, tmp_path: Path) -> None:
    for name, text in zip(("studio.yaml", "change.yaml"), blocks("yaml"), strict=True):
        (tmp_path / name).write_text(text)
    assert len(steps()) == 7
    for words, expected in steps():
        output = gatehouse(*(str(tmp_path / word) if word.endswith(".yaml") else word for word in words))
        assert [line.rstrip() for line in output.splitlines()] == expected, words
