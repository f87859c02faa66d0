"""The texts: complete, consistent in every language, and all in use."""

import re
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from string import Formatter

import pytest

from gatehouse.accounts.administration import check_nick
from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import check_login
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.profile_fields import check_name, check_username, check_zoneinfo
from gatehouse.audit.events import AuditEvent
from gatehouse.images import conversion
from gatehouse.kernel.errors import GatehouseError
from gatehouse.oauth.model import SCOPES
from gatehouse.web.pages.translations import FALLBACK_LANG, load_languages
from tests.support.pseudo_locale import LANG as PSEUDO
from tests.support.pseudo_locale import languages_with_pseudo

LANGUAGES = load_languages()
ENGLISH = LANGUAGES[FALLBACK_LANG]
OTHERS = [lang for lang in LANGUAGES if lang != FALLBACK_LANG]
TAGS = re.compile(r"<(/?)(strong|bdi)>")

# German uses the same word, or it is a name.
ALIKE = {
    "demo.mark",
    "field.code",
    "account.codes",
    "terms.version",
    "theme.auto",
    "method.passkey",
    "signed_in_with.passkey",
    "time.month_4",
} | {f"time.month_{month}" for month in (8, 9, 11)}

NEVER_ABOUT_A_PERSON = (
    *("installation.", "setup.", "key.", "provision.", "client.", "application.", "access_key.", "service_token."),
    *("service_account.", "schema.", "role.saved", "role.default_saved", "role.removed", "project.", "group."),
    *("game_session.", "webhook.", "audit.", "token.machine_"),
)


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("lang", OTHERS)
def test_every_language_has_the_same_texts(lang: str) -> None:
    assert set(LANGUAGES[lang].texts) == set(ENGLISH.texts)


def test_the_console_speaks_a_language_wholly_or_not_at_all() -> None:
    spoken = load_languages("console")
    assert {"en", "de"} <= set(spoken)
    for lang in spoken:
        assert set(spoken[lang].texts) == set(spoken[FALLBACK_LANG].texts)
        for key, text in spoken[lang].texts.items():
            assert placeholders(text) == placeholders(spoken[FALLBACK_LANG].texts[key]), key


@pytest.mark.parametrize("lang", OTHERS)
def test_the_same_things_are_filled_in(lang: str) -> None:
    differing = {
        key: text
        for key, text in LANGUAGES[lang].texts.items()
        if placeholders(text) != placeholders(ENGLISH.texts[key])
    }
    assert differing == {}


@pytest.mark.parametrize("lang", OTHERS)
def test_no_text_is_left_untranslated(lang: str) -> None:
    same = {key for key, text in LANGUAGES[lang].texts.items() if text == ENGLISH.texts[key]}
    assert same == ALIKE


@pytest.mark.parametrize("lang", list(languages_with_pseudo()))
def test_texts_hold_no_markup_but_emphasis_and_isolation(lang: str) -> None:
    """They are inserted into pages and attributes unescaped: a quote or an ampersand would break out."""
    for key, text in languages_with_pseudo()[lang].texts.items():
        assert not set('"&<>') & set(TAGS.sub("", text)), key
        assert text.strip() == text != "", key
        opened = [name for closing, name in TAGS.findall(text) if not closing]
        closed = [name for closing, name in TAGS.findall(text) if closing]
        assert opened == closed[::-1], key


def test_the_german_reader_is_addressed_as_sie() -> None:
    familiar = re.compile(r"\b([Dd]u|[Dd]ir|[Dd]ich|[Dd]ein(e[mnrs]?)?|[Ee]uer|[Ee]uch)\b")
    assert {key for key, text in LANGUAGES["de"].texts.items() if familiar.search(text)} == set()


def test_counted_texts_have_singular_and_plural_forms() -> None:
    ones = {key.removesuffix("_one") for key in ENGLISH.texts if key.endswith("_one")}
    assert ones
    assert ones <= {key.removesuffix("_other") for key in ENGLISH.texts if key.endswith("_other")}
    assert LANGUAGES["de"]("time.minutes", count=1) == "1 Minute"
    assert LANGUAGES["de"]("time.minutes", count=0) == "0 Minuten"


def test_placeholder_values_are_escaped_and_not_expanded_again() -> None:
    hostile = "<b>{nick}{0.__class__}{{7*7}}</b>"
    assert ENGLISH("already.continue", nick=hostile) == "Continue as &lt;b&gt;{nick}{0.__class__}{{7*7}}&lt;/b&gt;"


def test_an_unknown_text_and_a_missing_value_are_found_out() -> None:
    with pytest.raises(KeyError):
        ENGLISH("sign_in.titel")
    with pytest.raises(KeyError):
        ENGLISH("already.continue")


def refusals(kind: type[GatehouseError] = GatehouseError) -> Iterator[str]:
    yield kind.public
    for narrower in kind.__subclasses__():
        yield from refusals(narrower)


async def complaints() -> AsyncIterator[str]:
    checks = [(check_login, "no_one"), (check_nick, ""), (check_name, "x" * 200), (check_zoneinfo, "Moon/Base")]
    checks += [(check_username, wrong) for wrong in ("ab", "12345", "admin")]
    for check, wrong in checks:
        with pytest.raises(BadAccount) as raised:
            check(wrong)
        yield raised.value.detail
    for password in ("short", "long" * 1_000):
        with pytest.raises(BadAccount) as raised:
            await PasswordRules().check(password)
        yield raised.value.detail
    for text in (*conversion.REFUSALS.values(), conversion.TOO_LARGE, conversion.UNREADABLE):
        yield text


async def test_the_refusals_that_are_translated_are_those_the_rooms_make() -> None:
    import_module("gatehouse.app.endpoints")  # imports every package, and with it every error class
    texts = {text for key, text in ENGLISH.texts.items() if key.startswith("said.")}
    assert texts - {*refusals(), *[complaint async for complaint in complaints()]} == set()


def test_a_refusal_is_said_in_the_readers_language_when_there_are_words_for_it() -> None:
    english = "An account with this email already exists."
    assert LANGUAGES.translate_message("en", english) == english
    assert LANGUAGES.translate_message("de", english) == "Ein Konto mit dieser E-Mail-Adresse besteht bereits."
    assert LANGUAGES.translate_message("en", "Something new.") == "Something new."
    assert LANGUAGES.translate_message("de", "Something new.") is None


def test_exactly_the_events_about_a_person_have_texts() -> None:
    """A new kind of event needs texts, or its family is added to those that are never about a person."""
    described_events = {key.removeprefix("event.") for key in ENGLISH.texts if key.startswith("event.")}
    assert described_events == {event.value for event in AuditEvent if not event.startswith(NEVER_ABOUT_A_PERSON)}


def test_exactly_the_known_scopes_have_texts() -> None:
    assert {key.removeprefix("scope.") for key in ENGLISH.texts if key.startswith("scope.")} == {*SCOPES, "api"}


def test_the_pseudo_locale_is_longer_marked_and_fills_in_the_same() -> None:
    words = languages_with_pseudo()[PSEUDO]
    text = words("sign_in.to", application="Atlas")
    assert text == "[!! ţö çöñţîñûé ţö <strong><bdi>Atlas</bdi></strong> ~ ~ !!]"
    assert PSEUDO not in set(load_languages())
