"""Renders Markdown that we wrote: no HTML of its own, links only where they lead somewhere.

A program has a badge that says what our tests do with it. The line that opens its code block says which test:
`python run=wire/client/test_middleware.py`, `csharp compiled=…` or `go not-run` (docs/decisions/0056).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup

MARKDOWN: Final = MarkdownIt("commonmark").enable("table")
HTML: Final = frozenset({"html_block", "html_inline"})
NOT_IN_ANCHORS: Final = re.compile(r"[^\w\- ]")
# By the word after the language of a code block: the color of the badge and its text.
BADGES: Final[Mapping[str, tuple[str, str]]] = {
    "run": ("good", "Run by our tests"),
    "compiled": ("plain", "Compiled by our tests"),
    "not-run": ("warned", "Not run by our tests"),
}
PROGRAM: Final = '<div class="program"><p><span class="badge {}">{}</span></p>\n{}</div>\n'
# A table, and code, may be wider than a phone: it scrolls by itself, also with the keyboard.
SCROLLING: Final = {
    "<table>": '<div class="wide" tabindex="0"><table>',
    "</table>": "</table></div>",
    "<pre>": '<pre tabindex="0">',
}


def render_markdown(text: str, address_of: Callable[[str], str | None]) -> Markup:
    """Return the HTML. `address_of` returns the address for a link or picture; without one it becomes its text."""
    tokens = [token for token in MARKDOWN.parse(text) if token.type not in HTML]
    seen = Counter[str]()
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            anchor = anchor_of(tokens[place + 1].content)
            token.attrSet("id", f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
            seen[anchor] += 1
        if token.children is not None:
            token.children = list(link_tokens(token.children, address_of))
    html = MARKDOWN.renderer.render(tokens, MARKDOWN.options, {})
    for plain, scrolling in SCROLLING.items():
        html = html.replace(plain, scrolling)
    return Markup(html)  # noqa: S704 - all HTML in it is the renderer's


def render_code(
    renderer: RendererHTML, tokens: Sequence[Token], place: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    """Return a code block, with its badge if the line that opens it says what tests do with it."""
    code = RendererHTML.fence(renderer, tokens, place, options, env)
    _, _, test = tokens[place].info.partition(" ")
    badge = BADGES.get(test.partition("=")[0])
    if badge is None:
        return code
    return PROGRAM.format(*badge, code)


MARKDOWN.add_render_rule("fence", render_code)


def anchor_of(heading: str) -> str:
    """Return the anchor that the documentation site and the repository's host give a heading."""
    return NOT_IN_ANCHORS.sub("", heading.lower()).replace(" ", "-")


def link_tokens(tokens: Iterable[Token], address_of: Callable[[str], str | None]) -> Iterator[Token]:
    dropped = False
    for token in tokens:
        if token.type in HTML:
            continue
        if token.type == "link_open":
            address = address_of(str(token.attrGet("href")))
            dropped = address is None
            token.attrSet("href", address or "")
        if token.type in {"link_open", "link_close"} and dropped:
            continue
        if token.type == "image":
            address = address_of(str(token.attrGet("src")))
            if address is None:
                continue
            token.attrSet("src", address)
            token.attrSet("loading", "lazy")
        yield token
