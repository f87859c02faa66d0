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
from gatehouse.web.http.responses import cacheable_response
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer

PACKAGED: Final = FilePath(__file__).parent.parent / "guides"  # of the wheel
SOURCES: Final = FilePath(__file__).parents[4] / "docs" / "guides"
TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
GUIDE_ADDRESS: Final = re.compile(r"([a-z0-9-]+)\.md(#.*)?")
PICTURE_ADDRESS: Final = re.compile(r"pictures/([a-z0-9-]+\.png)")
ANYWHERE: Final = ("https://", "http://", "#")


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


class GuideContext(PageContext, frozen=True, kw_only=True):
    """One guide, or all of them. They are in English."""

    template = "guide.html"

    guides: Sequence[GuideLink]
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
        return self._pages.render_off_loop(request, lambda: GuideContext(guides=self._titles()))

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

    def _titles(self) -> Sequence[GuideLink]:
        return [GuideLink(name=name, title=title_of(file)) for name, file in self._files.guides.items()]

    def _context(self, name: str) -> GuideContext:
        file = self._files.guides[name]
        content = rendered_guide(file, frozenset(self._files.guides), frozenset(self._files.pictures))
        return GuideContext(guides=self._titles(), name=name, title=title_of(file), content=content)


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
