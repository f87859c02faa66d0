"""Every link between documents and every citation of the interface has a target."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.support.find_programs import ROOT

PAGES: Final = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
INTERFACE: Final = ROOT / "docs" / "interface.md"
LINK: Final = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
CODE: Final = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
CITED_SECTION: Final = re.compile(r"interface §(\d+(?:\.\d+)?)")
CITED_RULING: Final = re.compile(r"\bR(\d+)\b(?!-)")


def text_without_code(page: Path) -> str:
    return CODE.sub(lambda match: re.sub(r"[\[\]()]", "", match[0]), page.read_text())


@cache
def anchors(page: Path) -> frozenset[str]:
    """Explicit anchors and those of headings."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return frozenset(slugs | set(re.findall(r'<a id="([^"]+)"', text)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_points_to_an_existing_file_and_anchor(page: Path) -> None:
    for target, anchor in LINK.findall(text_without_code(page)):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{target} does not exist"
        assert not anchor or anchor in anchors(path), f"{target}#{anchor} does not exist"


def sources() -> Iterator[Path]:
    for folder in ("src", "tests", "tools", "docs"):
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md", ".toml"})


def test_every_section_and_ruling_that_is_cited_exists() -> None:
    for path in sources():
        text = path.read_text()
        cited = {f"s{number.replace('.', '-')}" for number in CITED_SECTION.findall(text)}
        cited |= {f"r{number}" for number in CITED_RULING.findall(text)}
        assert cited <= anchors(INTERFACE), path.relative_to(ROOT)


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = [page.name[:4] for page in PAGES if page.parent.name == "decisions" and page.name[0].isdigit()]
    assert sorted(set(numbers)) == sorted(numbers)
