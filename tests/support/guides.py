"""The programs that the guides show, and which test runs each: the line that opens a code block says it.

`python run=wire/client/test_python_guide.py`: that file runs it. `compiled=…`: it compiles or parses it. `not-run`:
none can. The badge in the guide is made from the same words (web/pages/markdown.py), and tests/docs/test_guides.py
refuses a program without them and a test that does not take what it is said to run.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Final

from tests.support.command_line import CommandLine
from tests.support.find_programs import ROOT

GUIDES: Final = ROOT / "docs" / "guides"
TESTS: Final = ROOT / "tests"
BLOCK: Final = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?: (?P<words>[^\n]*))?\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL
)
SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
PLAN_HAS_CHANGES: Final = 2  # exit code of `apply --dry-run`
DATA: Final = frozenset({"csv", "http", "json", "text"})  # what programs and commands read and print


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    guide: str
    language: str
    state: str  # run, compiled, not-run, or anything else
    test: str  # path of the test below tests/; empty for none
    text: str
    section: str  # the heading above
    line: int

    @property
    def place(self) -> str:
        return f"{self.guide}.md:{self.line} ({self.language})"


def guide_text(guide: str) -> str:
    return (GUIDES / f"{guide}.md").read_text(encoding="utf-8")


def programs_of(guide: str) -> Sequence[Program]:
    """Return all programs of a guide, in order."""
    return programs_in(guide_text(guide), guide)


def programs_in(text: str, guide: str) -> Sequence[Program]:
    found = []
    for match in BLOCK.finditer(text):
        state, _, test = (match["words"] or "").partition("=")
        if match["language"] not in DATA:
            program = Program(
                guide=guide,
                language=match["language"],
                state=state,
                test=test,
                text=dedent(match["text"]),
                section=(["", *SECTION.findall(text, 0, match.start())])[-1],
                line=text.count("\n", 0, match.start()) + 1,
            )
            found.append(program)
    return found


def texts_of(guide: str, language: str) -> list[str]:
    """Return the programs of a guide in a language, whichever test runs them."""
    return [one.text for one in programs_of(guide) if one.language == language]


def programs_for(test_file: str, guide: str, language: str, *, section: str = "") -> list[str]:
    """Return the programs of a guide, or of one section, in a language that this test runs or compiles.

    `test_file` is `__file__`.
    """
    test = Path(test_file).relative_to(TESTS).as_posix()
    return [
        one.text
        for one in programs_of(guide)
        if (one.language, one.test) == (language, test) and section in {"", one.section}
    ]


def session_steps(program: str) -> list[tuple[str, str]]:
    """Return each command of a terminal session, the lines after `$ `, with what it prints in the guide."""
    steps = re.split(r"^\$ ", program.replace("\\\n", " "), flags=re.MULTILINE)[1:]
    return [(command, printed) for command, _, printed in (step.partition("\n") for step in steps)]


def script_steps(program: str) -> list[str]:
    """Return the commands of a script, one line each."""
    return program.replace("\\\n", " ").splitlines()


def type_command(gatehouse: CommandLine, command: str, replaced: Mapping[str, str | Path], *, stdin: str = "") -> str:
    """Run `gatehouse …`, or several in a pipe, with some words replaced; return what a terminal then shows."""
    printed = stdin
    for part in command.split(" | "):
        program, *words = shlex.split(part)
        assert program.rpartition("/")[2] == "gatehouse", command
        finished = gatehouse.run(*(replaced.get(word, word) for word in words), stdin=printed)
        is_plan = "--dry-run" in words
        assert finished.code == 0 or (is_plan and finished.code == PLAN_HAS_CHANGES), finished
        printed = finished.out
    return printed + finished.err
