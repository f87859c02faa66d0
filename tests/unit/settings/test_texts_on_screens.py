"""Every refusal of a setting that the console changes has a text for screens."""

import inspect
from functools import partial
from typing import Final

import pytest
from msgspec.structs import replace

from gatehouse.kernel.stored_settings import BadSetting
from gatehouse.settings.entries import STORED_SETTINGS, TABLE_SETTINGS, Setting, build_settings, find_stored_setting
from gatehouse.settings.model import Settings
from gatehouse.settings.provider_checks import checks_of
from gatehouse.settings.providers import ProviderSettings
from gatehouse.settings.terms import TermsSettings

BAD_VALUES: Final = (None, [], {}, [7], [""], -1, 10**12, "", "two\nlines", 'ü "? ' * 300, ['ü "?,' * 300], "maybe")
CONVERTED: Final = [
    entry
    for entry in (*STORED_SETTINGS.values(), *(one for table in TABLE_SETTINGS.values() for one in table.values()))
    if not entry.is_image
]


def refusals(entry: Setting) -> list[ValueError]:
    found = []
    for value in BAD_VALUES:
        try:
            entry.convert(value)
        except ValueError as error:
            found.append(error)
    return found


@pytest.mark.parametrize("entry", CONVERTED, ids=lambda entry: entry.path)
def test_bad_values_have_a_text_on_screens(entry: Setting) -> None:
    found = refusals(entry)
    assert found
    assert [str(error) for error in found if not (isinstance(error, BadSetting) and error.screen_key)] == []


def test_checks_between_settings_have_a_text_on_screens() -> None:
    settings = with_all_tables(build_settings({}))
    stored = [check for name, check in checks_of(settings) if find_stored_setting(name)]
    functions = {check.func if isinstance(check, partial) else check for check in stored}
    assert len(functions) > 10
    for function in functions:
        source = inspect.getsource(function)
        assert "ValueError" not in source
        assert source.count("raise BadSetting") == source.count(".on_screen(")


def with_all_tables(settings: Settings) -> Settings:
    """Return settings with more rows than are allowed, so that every check of a row is among the checks."""
    steam = ProviderSettings(kind="steam", tickets=("7:480",))
    return replace(
        settings,
        providers={"oidc": ProviderSettings(), **{f"steam{number}": steam for number in range(51)}},
        terms={f"terms{number}": TermsSettings() for number in range(101)},
    )
