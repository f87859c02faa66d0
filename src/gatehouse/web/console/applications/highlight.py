"""Colors for code: comments, strings, keywords and numbers, as classes of the style sheet."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from markupsafe import Markup, escape

# By the end of a file's name.
HASH_COMMENTS: Final = frozenset({"py", "gd", "sh", "yml", "cfg", "conf", "ini", "env", "Caddyfile"})
C_KEYWORDS: Final = (
    "async await break case catch class const continue default delete do else enum export extends false for func "
    "function go if implements import in include int interface let long map new nil null package private protected "
    "public range return sealed static string struct super switch this throw throws true try type typeof undefined "
    "using var void while"
)
PYTHON_KEYWORDS: Final = (
    "False None True and as assert async await break class continue def del elif else except extends finally for "
    "from func global if import in is lambda match not null or pass raise return self true false try var while "
    "with yield"
)
SHELL_KEYWORDS: Final = "case do done echo else esac export fi for if in read set then while"
KEYWORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("py", "gd"), PYTHON_KEYWORDS),
    **dict.fromkeys(("sh", "env"), SHELL_KEYWORDS),
    **dict.fromkeys(("yml", "cfg", "conf", "ini", "Caddyfile"), "true false on off internal return"),
}


def highlight(text: str, language: str) -> Markup:
    """Return the text as HTML, each token in an element of its kind."""
    parts, end = [], 0
    for token in token_pattern(language).finditer(text):
        kind = token.lastgroup
        parts += [escape(text[end : token.start()]), Markup('<span class="code-{}">{}</span>').format(kind, token[0])]
        end = token.end()
    return Markup("").join([*parts, escape(text[end:])])


@cache
def token_pattern(language: str) -> re.Pattern[str]:
    comment = r"(?<![^\s])\#[^\n]*" if language in HASH_COMMENTS else r"//[^\n]*|/\*.*?\*/|^\#include[^\n]*"
    strings = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`(?:[^`\\]|\\.)*`'
    words = "|".join(KEYWORDS.get(language, C_KEYWORDS).split())
    return re.compile(
        rf"(?P<comment>{comment})|(?P<string>{strings})|(?P<keyword>(?<![\w.$-])(?:{words})(?![\w-]))"
        r"|(?P<number>(?<![\w.])\d+(?![\w.]))",
        re.MULTILINE | re.DOTALL,
    )
