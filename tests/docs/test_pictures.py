"""The guides show exactly the pictures that tests take (tests/support/guide_pictures.py)."""

import re
from collections import Counter
from importlib import import_module
from typing import Final

from tests.support.find_programs import ROOT
from tests.support.guide_pictures import MARK, MAX_BYTES, MAX_HEIGHT, MIN_DISTINCT_ROWS, PICTURES, read_png

WALKS: Final = ROOT / "tests" / "pages"
PAGES: Final = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
SHOWN: Final = re.compile(r"!\[[^\]\n]+\]\([^)\n]*pictures/([^)/\n]+)\.png\)")


def declared_pictures() -> Counter[str]:
    """The pictures that tests declare, with how many tests declare each."""
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in WALKS.rglob("test_*.py")]
    tests = [value for name in names for value in vars(import_module(name)).values() if callable(value)]
    marks = {(test.__module__, test.__name__, mark.args) for test in tests for mark in marks_of(test)}
    return Counter(name for _, _, args in marks for name in args)


def marks_of(test: object) -> list[object]:
    return [mark for mark in getattr(test, "pytestmark", []) if mark.name == MARK]


def test_every_screenshot_is_taken_by_one_test_and_shown_by_one_page() -> None:
    pictures = {name for page in PAGES for name in SHOWN.findall(page.read_text())}
    stored = {path.name for path in PICTURES.iterdir()}
    assert declared_pictures() == Counter(pictures)
    assert stored == {f"{name}.png" for name in pictures}


def test_the_pictures_that_are_kept_are_whole_and_light() -> None:
    for path in PICTURES.iterdir():
        (width, height), rows = read_png(path.read_bytes())
        assert width in (760, 1280), path.name
        assert height <= MAX_HEIGHT, path.name
        assert len(set(rows)) >= MIN_DISTINCT_ROWS, path.name
        assert path.stat().st_size <= MAX_BYTES, path.name
