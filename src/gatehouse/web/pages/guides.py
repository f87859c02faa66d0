"""The guides of docs/guides as pages, for everyone (docs/decisions/0064-guides-in-the-product.md).

Their names are listed once at the start; a guide is rendered with its first request, off the event loop. HTML in the
Markdown is dropped, and a link to something that is not served becomes plain text.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path as FilePath
from typing import Final

from markupsafe import Markup
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.errors import NotFound
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import cacheable_response
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer

PACKAGED: Final = FilePath(__file__).parent.parent / "guides"  # of the wheel
SOURCES: Final = FilePath(__file__).parents[4] / "docs" / "guides"
TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
GUIDE_ADDRESS: Final = re.compile(r"([a-z0-9-]+)\.md(#.*)?")
MARKS: Final = re.compile(r"[`*#|]|\]\([^)\s]*\)|!?\[|^-{3,}", re.MULTILINE)  # of Markdown
PICTURE_ADDRESS: Final = re.compile(r"pictures/([a-z0-9-]+\.png)")
ANYWHERE: Final = ("https://", "http://", "#")
# The guides by what they are about; the heading is `guides.group_<name>`.
GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "start": ("demo", "console", "permissions", "glossary"),
    "applications": (
        *("connect-a-client", "connect-a-python-app", "connect-gitea", "protect-a-page", "protect-a-site"),
        *("protect-an-api", "workload-identity", "protect-an-mcp-server", "authzen"),
    ),
    "games": ("game-login", "unity", "godot", "guests", "platform-login", "game-back-ends"),
    "people": (
        *("roles-and-users", "import", "sign-in-providers", "sign-in-without-password", "phone-numbers", "terms"),
        "bans",
    ),
    "operation": ("settings", "branding", "proof-of-work"),
    "automation": ("apply", "management-api", "test-permissions", "webhooks", "change-stream"),
}
MAX_QUERY_LENGTH: Final = 100
MAX_QUERY_WORDS: Final = 6
EXCERPT_LENGTH: Final = 140  # characters around what was found


class GuideFiles(Struct, frozen=True):
    guides: Mapping[str, FilePath]
    pictures: Mapping[str, FilePath]


@cache
def find_guides() -> GuideFiles:
    """Look once per process: they are part of the program."""
    folder = PACKAGED if PACKAGED.is_dir() else SOURCES
    return GuideFiles(
        guides={file.stem: file for file in sorted(folder.glob("*.md"))},
        pictures={file.name: file for file in (folder / "pictures").glob("*.png")},
    )


class GuideLink(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    excerpt: str = ""  # around what was searched for


class GuideQuery(Struct, frozen=True, kw_only=True):
    q: str = ""


class GuideContext(PageContext, frozen=True, kw_only=True):
    """One guide, or all of them. They are in English."""

    template = "guide.html"

    groups: Sequence[tuple[str, Sequence[GuideLink]]] = ()
    search: str = ""  # what the groups were searched for
    name: str = ""  # of the guide shown
    title: str = ""
    content: Markup | None = None


class GuideEndpoints:
    def __init__(self, pages: PageRenderer) -> None:
        self._pages = pages
        self._files = find_guides()

    def endpoints(self) -> Iterator[Endpoint]:
        shown = {"": self.index, "/{name}": self.guide, "/pictures/{name}": self.picture}
        for path, handler in shown.items():
            yield Endpoint(
                name=f"guides.{handler.__name__}",
                path=f"{Path.GUIDES}{path}",
                methods=("GET",),
                handler=handler,
                dialect=Dialect.PAGE,
                rate_class=RateClass.PUBLIC,
                section="operations",
                summary="Guides",
                hidden=True,
            )

    async def index(self, request: Request) -> Response:
        """All guides by group, or those that have all words of the search."""
        text = " ".join(read_query(request, GuideQuery).q[:MAX_QUERY_LENGTH].split())
        return self._pages.render_off_loop(request, lambda: GuideContext(groups=self._find(text), search=text))

    async def guide(self, request: Request) -> Response:
        name: str = request.path_params["name"]
        if name not in self._files.guides:
            raise NotFound
        return self._pages.render_off_loop(request, partial(self._context, name))

    async def picture(self, request: Request) -> Response:
        file = self._files.pictures.get(request.path_params["name"])
        if file is None:
            raise NotFound
        content = await asyncio.to_thread(file.read_bytes)
        return cacheable_response(request, content, media_type="image/png", cache_control="no-cache")

    def _find(self, text: str) -> Sequence[tuple[str, Sequence[GuideLink]]]:
        words = text.casefold().split()[:MAX_QUERY_WORDS]
        groups = {
            group: [found for name in names if (found := search_guide(name, self._files.guides[name], words))]
            for group, names in GROUPS.items()
        }
        return [(group, found) for group, found in groups.items() if found]

    def _context(self, name: str) -> GuideContext:
        file = self._files.guides[name]
        content = rendered_guide(file, frozenset(self._files.guides), frozenset(self._files.pictures))
        return GuideContext(name=name, title=title_of(file), content=content)


def search_guide(name: str, file: FilePath, words: Sequence[str]) -> GuideLink | None:
    """Return the guide if it has all words, with the text around the first in it."""
    title, text = title_of(file), plain_text(file)
    folded = text.casefold()
    if not all(word in folded for word in words):
        return None
    if not words or all(word in title.casefold() for word in words):
        return GuideLink(name=name, title=title)
    start = max(folded.find(words[0]) - EXCERPT_LENGTH // 3, 0)
    excerpt = text[start : start + EXCERPT_LENGTH].partition(" ")[2].rpartition(" ")[0]
    return GuideLink(name=name, title=title, excerpt=f"… {excerpt} …")


@cache
def plain_text(file: FilePath) -> str:
    """Return the text of a guide as one line."""
    return " ".join(MARKS.sub(" ", file.read_text(encoding="utf-8")).split())


@cache
def title_of(file: FilePath) -> str:
    found = TITLE.search(file.read_text(encoding="utf-8"))
    return found[1].replace("`", "") if found else file.stem


@cache
def rendered_guide(file: FilePath, guides: frozenset[str], pictures: frozenset[str]) -> Markup:
    """Return the HTML of a guide; its links lead to what is served."""
    from gatehouse.web.pages.markdown import render_markdown  # noqa: PLC0415 - few processes use it

    def served_address(address: str) -> str | None:
        if address.startswith(ANYWHERE):
            return address
        if (guide := GUIDE_ADDRESS.fullmatch(address)) and guide[1] in guides:
            return f"{Path.GUIDES}/{guide[1]}{guide[2] or ''}"
        if (picture := PICTURE_ADDRESS.fullmatch(address)) and picture[1] in pictures:
            return f"{Path.GUIDES}/{address}"
        return None

    return render_markdown(file.read_text(encoding="utf-8"), served_address)
