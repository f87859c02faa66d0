"""Every program of a guide says which test runs it, and that test takes it (docs/decisions/0056)."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from gatehouse.web.pages.markdown import BADGES, render_markdown
from tests.support.guides import GUIDES, TESTS, Program, guide_text, programs_in, programs_of

GUIDE_NAMES: Final = sorted(path.stem for path in GUIDES.glob("*.md"))
TAKES: Final = "programs_for"


def problems_of(programs: list[Program]) -> Iterator[str]:
    for one in programs:
        if one.state not in BADGES:
            yield f"{one.place}: write `{one.language} run=<path below tests/>`, `compiled=…` or `not-run`"
        elif (one.state == "not-run") == bool(one.test):
            yield f"{one.place}: only `run` and `compiled` name a test"
        elif one.test and not {one.guide, one.language} <= words_of(TESTS / one.test):
            yield f"{one.place}: {one.test} does not take it with {TAKES}(__file__, …)"


@cache
def words_of(test: Path) -> frozenset[str]:
    """Return the texts in a test file that takes programs: the guides and languages that it names are among them."""
    if not test.name.startswith("test_") or not test.is_file():
        return frozenset()
    tree = ast.parse(test.read_text(encoding="utf-8"))
    takes = any(isinstance(node, ast.Name) and node.id == TAKES for node in ast.walk(tree))
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return frozenset(texts) if takes else frozenset()


def test_every_program_of_every_guide_says_what_tests_do_with_it() -> None:
    programs = [one for guide in GUIDE_NAMES for one in programs_of(guide)]
    assert len(programs) > 100
    assert list(problems_of(programs)) == []
    assert sum(one.state == "run" for one in programs) > sum(one.state != "run" for one in programs) * 4


@pytest.mark.parametrize(
    ("opening", "problem"),
    [
        ("sh", "write `sh run="),
        ("sh ran=wire/test_guides.py", "write `sh run="),
        ("sh run", "only `run` and `compiled` name a test"),
        ("sh not-run=wire/test_guides.py", "only `run` and `compiled` name a test"),
        ("sh run=wire/no_such_test.py", "does not take it"),
        ("sh run=wire/cli/test_import.py", "does not take it"),
        ("sh run=wire/test_guides.py", ""),
        ("sh not-run", ""),
        ("json", ""),
    ],
)
def test_program_without_a_test_is_found(opening: str, problem: str) -> None:
    found = list(problems_of(list(programs_in(f"# A guide\n\n```{opening}\ntrue\n```\n", "guests"))))
    assert problem in "".join(found)
    assert len(found) == bool(problem)


@pytest.mark.parametrize("guide", GUIDE_NAMES)
def test_badges_of_a_page_are_those_of_its_programs(guide: str) -> None:
    html = render_markdown(guide_text(guide), lambda _: None)
    shown = html.split('<span class="badge ')[1:]
    assert [one.split(">")[1].split("<")[0] for one in shown] == [BADGES[one.state][1] for one in programs_of(guide)]
