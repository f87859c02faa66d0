"""Style sheets, scripts and images: listed once at the start, small ones cached in memory.

An address contains the digest of its file, so that browsers may cache it forever; so do the addresses of fonts and
images inside our style sheets. A style sheet or script is served with those that it imports, which saves requests; in
a script an import is a comment. The icons are one file, made of the vendored ones. No request path is used to look up
a file on disk.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from markupsafe import Markup, escape
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.errors import NotFound
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import cacheable_response
from gatehouse.web.http.routing import Endpoint, RateClass

STATIC_DIRECTORY: Final = Path(__file__).parent.parent / "static"
DIGEST_DIGITS: Final = 16
MAX_CACHED_BYTES: Final = 128 * 1024
CACHE_FOREVER: Final = "public, max-age=31536000, immutable"
CACHE_REVALIDATE: Final = "no-cache"  # an address of another release: the current file

# Unlisted files in the directory (licenses, checksums) are not served.
MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
ICON_DIRECTORY: Final = "vendor/lucide"
ICON_SPRITE: Final = "icons.svg"
SVG_CONTENT: Final = re.compile(r"<svg\b[^>]*>(.*)</svg>", re.DOTALL)
IMPORT: Final = re.compile(rb'(?:// )?@import "([A-Za-z0-9/._-]+\.(css|js))";')
CSS_URL: Final = re.compile(rb'url\("([a-z0-9/._-]+)"\)')  # a vendored sheet writes its addresses without quotes


class Asset(Struct, frozen=True, kw_only=True):
    digest: str
    media_type: str
    path: Path
    cached_content: bytes | None  # None for a large one, which is read on request

    async def content(self) -> bytes:
        return await asyncio.to_thread(self.path.read_bytes) if self.cached_content is None else self.cached_content


class Assets:
    def __init__(self, directory: Path = STATIC_DIRECTORY) -> None:
        icons = sorted((directory / ICON_DIRECTORY).glob("*.svg"))
        files = {path for path in directory.rglob("*") if path.suffix in MEDIA_TYPES}.difference(icons)
        self._assets = {ICON_SPRITE: _make_asset(directory / ICON_SPRITE, icon_sprite(icons), always_cached=True)}
        self._icons = {path.stem for path in icons}
        for path in sorted(files, key=lambda path: (path.suffix == ".css", path)):  # a style sheet names other files
            stored = path.read_bytes()
            content = with_imports(stored, directory)
            if path.suffix == ".css":
                content = CSS_URL.sub(self._css_address, content)
            name = path.relative_to(directory).as_posix()
            self._assets[name] = _make_asset(path, content, always_cached=content != stored)

    def address(self, name: str) -> str:
        """Return the path that refers to a file: `address("vendor/htmx/htmx.min.js")`."""
        return f"/static/{self._assets[name].digest}/{name}"

    def icon(self, name: str, *, large: bool = False, title: str = "") -> Markup:
        """Return an icon of 16 pixels, or 20; without a `title` it is decoration beside a word."""
        if name not in self._icons:
            raise KeyError(name)
        meaning = Markup('role="img" aria-label="{}"').format(title) if title else Markup('aria-hidden="true"')
        tip = Markup("<title>{}</title>").format(title) if title else ""
        return Markup('<svg class="icon{}" {}>{}<use href="{}#{}"/></svg>').format(
            " large" if large else "", meaning, tip, self.address(ICON_SPRITE), name
        )

    def _css_address(self, url: re.Match[bytes]) -> bytes:
        return f'url("{self.address(url[1].decode())}")'.encode()

    async def serve(self, request: Request) -> Response:
        asset = self._assets.get(request.path_params["name"])
        if asset is None:
            raise NotFound
        kept = CACHE_FOREVER if request.path_params["digest"] == asset.digest else CACHE_REVALIDATE
        return cacheable_response(request, await asset.content(), media_type=asset.media_type, cache_control=kept)

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="static",
            path="/static/{digest}/{name:path}",
            methods=("GET",),
            handler=self.serve,
            dialect=Dialect.PLAIN,
            rate_class=RateClass.PUBLIC,
            section="pages",
            summary="Style sheets and scripts",
            hidden=True,
        )


def with_imports(content: bytes, directory: Path) -> bytes:
    """Return the file with those that it imports; an imported script is a block, so that its names are its own."""

    def read_import(found: re.Match[bytes]) -> bytes:
        whole = with_imports((directory / found[1].decode()).read_bytes(), directory)
        return b"{\n" + whole + b"\n}" if found[2] == b"js" else whole

    return IMPORT.sub(read_import, content)


@cache
def packaged_assets() -> Assets:
    """Return the assets of the package, read once per process."""
    return Assets()


def icon_sprite(icons: Iterable[Path]) -> bytes:
    """Return one file with every icon as a symbol, by its name."""
    drawn = (f'<symbol id="{escape(path.stem)}" viewBox="0 0 24 24">{icon_content(path)}</symbol>' for path in icons)
    return f'<svg xmlns="http://www.w3.org/2000/svg">{"".join(drawn)}</svg>'.encode()


def icon_content(path: Path) -> str:
    found = SVG_CONTENT.search(path.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{path} is not an SVG file")
    return " ".join(found[1].split())


def _make_asset(path: Path, content: bytes, *, always_cached: bool = False) -> Asset:
    digest = hashlib.sha256(content).hexdigest()[:DIGEST_DIGITS]
    kept = content if always_cached or len(content) <= MAX_CACHED_BYTES else None
    return Asset(digest=digest, media_type=MEDIA_TYPES[path.suffix], path=path, cached_content=kept)
