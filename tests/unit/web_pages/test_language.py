"""The choice of a page's language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.languages import LANGUAGES
from gatehouse.web.pages.translations import choose_language


@pytest.mark.parametrize(
    "wishes",
    [("de", "en", "en", "en"), ("", "de", "en", "en"), ("fr", "fr", "de", "en"), ("", "", "", "de")],
)
def test_an_explicit_choice_wins_then_the_account_then_the_application_then_the_browser(
    wishes: tuple[str, str, str, str],
) -> None:
    chosen, account, application, browser = wishes
    lang = choose_language(chosen=chosen, account=account, ui_locales=application, accept_language=browser)
    assert lang == "de"


def test_default_language_is_english() -> None:
    assert choose_language() == "en"


@pytest.mark.parametrize(
    ("header", "lang"),
    [
        ("de", "de"),
        ("de-AT", "de"),
        ("DE-de", "de"),
        ("fr, de;q=0.5", "de"),
        ("en;q=0.5, de;q=0.8", "de"),
        ("en;q=0.5,de;q=0.501", "de"),
        ("en ; q=0.5 , de ; q=0.8", "de"),
        ("de;q=0, en", "en"),
        ("de;q=0.000, *", "en"),
        ("*, de;q=0.9", "en"),
        ("*;q=0.1, de;q=0.9", "de"),
        ("fr, *;q=0.5, de;q=0.1", "en"),
        ("", "en"),
        ("fr", "en"),
    ],
)
def test_the_browsers_wishes_are_weighed(header: str, lang: str) -> None:
    assert choose_language(accept_language=header) == lang


@pytest.mark.parametrize(
    "header",
    [
        "de;q=2",
        "de;q=1.5",
        "de;q=0.1234",
        "de;q=",
        "de;q=-1",
        "de;level=1",
        "de_DE",
        "d",
        "dëu",
        "de\n",
        "de;q=\u0660.\u0665",
    ],
)
def test_a_wish_that_cannot_be_read_is_no_wish(header: str) -> None:
    assert choose_language(accept_language=header) == "en"


def test_application_wishes_are_taken_in_their_order() -> None:
    assert choose_language(ui_locales="fr-CA de-CH en") == "de"
    assert choose_language(ui_locales="fr en de") == "en"


def test_an_endless_list_of_wishes_is_not_read() -> None:
    assert choose_language(accept_language="de," * 200) == "en"
    assert choose_language(ui_locales="de " * 200) == "en"
    assert choose_language(accept_language=f"{'xx,' * 40}de") == "en"
    assert choose_language(accept_language=f"{'xx,' * 20}de") == "de"


@given(chosen=st.text(), account=st.text(), ui_locales=st.text(), accept_language=st.text())
def test_whatever_is_sent_some_language_is_chosen(
    chosen: str, account: str, ui_locales: str, accept_language: str
) -> None:
    lang = choose_language(chosen=chosen, account=account, ui_locales=ui_locales, accept_language=accept_language)
    assert lang in LANGUAGES
