"""A pseudo-locale: English, accented, bracketed and a third longer.

Plain text on a page was not translated; a layout that breaks would also break in a longer language.
"""

import re
from typing import Final

from gatehouse.languages import FALLBACK_LANG
from gatehouse.web.pages.translations import Languages, Translator, load_languages

LANG: Final = "en-150"  # European English: Babel must know it, and no browser asks for it
LONGER: Final = 0.3
ACCENTED: Final = str.maketrans("ACDEGILNORSTUYZacdegilnorstuyz", "ÅÇÐÉĞÎĹÑÖŔŠŢÛÝŽåçðéğîĺñöŕšţûýž")
PLACEHOLDERS: Final = re.compile(r"(\{[^}]*\}|<[^>]*>)")  # placeholders and tags


def pseudo_text(text: str) -> str:
    parts = PLACEHOLDERS.split(text)
    accented = "".join(part if PLACEHOLDERS.fullmatch(part) else part.translate(ACCENTED) for part in parts)
    letters = sum(len(part) for part in parts if not PLACEHOLDERS.fullmatch(part))
    return f"[!! {accented}{' ~' * round(letters * LONGER / 2)} !!]"


def languages_with_pseudo() -> Languages:
    """Every real language, and the pseudo-locale."""
    known = load_languages()
    translator = Translator(LANG, {key: pseudo_text(text) for key, text in known[FALLBACK_LANG].texts.items()})
    return Languages({**{lang: known[lang] for lang in known}, LANG: translator})
