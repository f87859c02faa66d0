import re

import pytest
from tools.settings_reference import PAGE, page

from gatehouse.settings.entries import ALL_SETTINGS, SECTIONS, Setting


def test_the_reference_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run tools/settings_reference.py"


def test_the_reference_page_lists_every_setting_once() -> None:
    matches = re.findall(r"^\| `([a-z_]+\.[a-z0-9_]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert matches == list(ALL_SETTINGS)


@pytest.mark.parametrize("entry", ALL_SETTINGS.values(), ids=lambda entry: entry.path)
def test_every_setting_is_explained_in_one_sentence(entry: Setting) -> None:
    assert re.fullmatch(r"[A-Z][^|\n]{10,100}\.", entry.field.help)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_has_a_description(section: str) -> None:
    assert re.fullmatch(r"[A-Z][^|\n]+\.", str(SECTIONS[section].__doc__))
