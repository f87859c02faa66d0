"""A language nobody speaks: English, accented, bracketed and a third longer.

What stays plain on a page was not translated; what breaks the layout would break it in a longer language too.
"""

import re
from typing import Final

from gatehouse.web.pages.words import FALLBACK, Languages, Words, load_languages

LANG: Final = "en-XA"
LONGER: Final = 0.3
ACCENTED: Final = str.maketrans("ACDEGILNORSTUYZacdegilnorstuyz", "ÅÇÐÉĞÎĹÑÖŔŠŢÛÝŽåçðéğîĺñöŕšţûýž")
KEPT: Final = re.compile(r"(\{[^}]*\}|<[^>]*>)")  # placeholders and tags


def pseudo(text: str) -> str:
    parts = KEPT.split(text)
    accented = "".join(part if KEPT.fullmatch(part) else part.translate(ACCENTED) for part in parts)
    letters = sum(len(part) for part in parts if not KEPT.fullmatch(part))
    return f"[!! {accented}{' ~' * round(letters * LONGER / 2)} !!]"


def with_pseudo() -> Languages:
    """Every real language, and that one."""
    known = load_languages()
    made = Words(LANG, {key: pseudo(text) for key, text in known[FALLBACK].texts.items()})
    return Languages({**{lang: known[lang] for lang in known}, LANG: made})
