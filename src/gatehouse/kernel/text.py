"""Text that people read: what a name and a log line may contain."""

import unicodedata
from typing import Final

# Cc controls, Cf format (bidi overrides, zero width), Cs surrogates, Zl and Zp line and paragraph separators:
# each can make a name look like another one, or split a line (checklist LG-23, HT-15).
UNSAFE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def is_plain_line(text: str) -> bool:
    """True when the text is one line without invisible or misleading characters."""
    # Printable text has none of them; it is the usual case, and asking once is much quicker than for each character.
    return text.isprintable() or not any(unicodedata.category(character) in UNSAFE_CATEGORIES for character in text)


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def compatible(text: str) -> str:
    """Return the text as it is compared when case and compatibility forms are ignored (Unicode §3.13, D146).

    Full-width letters, ligatures and letters in circles become plain ones.
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", nfc(text).casefold()).casefold())


FORMULA_PREFIXES: Final = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run


def spreadsheet_cell(text: str) -> str:
    """Return the text as a spreadsheet shows it and does not run it."""
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) else text
