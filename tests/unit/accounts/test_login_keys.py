"""Spellings of a login: exact ones, and the canonical one in which it is unique."""

import importlib
import sys
import unicodedata
from collections.abc import Iterator

import pytest

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import User, check_login, exact_login, is_same_mailbox, login_key, login_keys
from tests.support.spellings import wide

migration = importlib.import_module("gatehouse.storage.migrations.versions.0039_compatible_logins")
SAME = (
    "\ufb01nn.berg@studio.example",  # a ligature
    f"{wide('finn.berg')}@studio.example",  # also the dot
    "\u24d5\u24d8\u24dd\u24dd.berg@STUDIO.example",  # in circles
    "\U0001d41finn.berg@studio.example",  # mathematical
    " FINN.Berg@studio.example ",
)


@pytest.mark.parametrize("login", SAME)
def test_login_has_one_canonical_spelling(login: str) -> None:
    assert login_key(login) == "finn.berg@studio.example"


def test_canonical_spelling_ignores_what_the_exact_one_ignores() -> None:
    assert login_key("\u00c6\u0301ra@x.example") == login_key("\u01fcra@X.example") == "\u01fdra@x.example"
    assert login_key("Stra\u00dfe@x.example") == login_key("STRASSE@x.example") == "strasse@x.example"


def test_letters_that_only_look_alike_stay_different() -> None:
    assert login_key("\u0430nna@x.example") != login_key("anna@x.example")  # a Cyrillic letter


def test_domain_typed_in_full_width_is_found() -> None:
    assert login_key(f"anna@{wide('studio.')}example") == "anna@studio.example"


@pytest.mark.parametrize(
    "text", ["anna\uff20evil.example@x.example", "a\u2026b@x.example", "a\uff02b@x.example", "\ufdfa" * 60 + "@x.io"]
)
def test_half_that_is_no_part_of_an_address_in_canonical_spelling_keeps_its_exact_one(text: str) -> None:
    assert login_key(text) == exact_login(text)


def test_every_character_has_one_spelling_also_when_it_is_spelled_again() -> None:
    """And the migration spells what is stored like the service does."""
    for text in every_character():
        login = f"x{text}y@studio.example"
        key = login_key(login)
        assert login_key(key) == key, ascii(text)
        assert migration.canonical_key(exact_login(login)) == key, ascii(text)


def every_character() -> Iterator[str]:
    """Each character alone, but those without properties, nine of ten, fifty at a time."""
    without_properties = []
    for character in map(chr, range(sys.maxunicode + 1)):
        match unicodedata.category(character):
            case "Cs":  # half of a surrogate pair: no character
                continue
            case "Cn" | "Co":  # not assigned, private use
                without_properties.append(character)
            case _:
                yield character
    for start in range(0, len(without_properties), 50):
        yield "".join(without_properties[start : start + 50])


def test_exact_spellings_name_mailboxes() -> None:
    assert is_same_mailbox("Anna@Studio.example", "anna@studio.example")
    assert not is_same_mailbox("\uff41nna@studio.example", "anna@studio.example")
    assert login_keys("\uff41nna@Studio.example") == ("\uff41nna@studio.example", "anna@studio.example")
    assert login_keys("anna@studio.example") == ("anna@studio.example",)


def test_account_that_shares_its_address_is_stored_under_its_exact_spelling_while_it_has_it() -> None:
    def key_of(login: str, exact_key: str) -> str | None:
        return User(user_id="1", login=login, exact_key=exact_key, nick="", reg_time=0).login_key

    assert key_of("\uff41nna@x.example", "\uff41nna@x.example") == "\uff41nna@x.example"
    assert key_of("\uff21nna@x.example", "\uff41nna@x.example") == "\uff41nna@x.example"
    assert key_of("\u24d0nna@x.example", "\uff41nna@x.example") == "anna@x.example"
    assert key_of("\uff41nna@x.example", "") == "anna@x.example"


def test_address_in_another_script_is_still_accepted() -> None:
    assert check_login("\uff41nna@studio.example") == "\uff41nna@studio.example"
    with pytest.raises(BadAccount):
        check_login(f"anna@{wide('s')}tudio.example")
