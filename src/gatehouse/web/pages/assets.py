"""Style sheets, scripts and images: listed once at the start, small ones cached in memory.

An address contains the digest of its file, so that browsers may cache it forever. No request path is used to look
up a file on disk.
"""

import asyncio
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

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
# Pico's marks are data: images, which our policy blocks: a browser that applies Pico before our style sheet has come,
# which has files instead, would report each as an error.
WITHOUT_DATA_IMAGES: Final = frozenset({"pico.min.css"})
DATA_IMAGE: Final = re.compile(rb'url\("data:[^"]*"\)')

# Unlisted files in the directory (licenses, checksums) are not served.
MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    digest: str
    media_type: str
    path: Path
    cached_content: bytes | None  # None for a large one, which is read on request

    async def content(self) -> bytes:
        return await asyncio.to_thread(self.path.read_bytes) if self.cached_content is None else self.cached_content


class Assets:
    def __init__(self, directory: Path = STATIC_DIRECTORY) -> None:
        files = sorted(path for path in directory.rglob("*") if path.suffix in MEDIA_TYPES)
        self._assets = {path.relative_to(directory).as_posix(): _read_asset(path) for path in files}

    def address(self, name: str) -> str:
        """Return the path that refers to a file: `address("vendor/pico/pico.min.css")`."""
        return f"/static/{self._assets[name].digest}/{name}"

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


@cache
def packaged_assets() -> Assets:
    """Return the assets of the package, read once per process."""
    return Assets()


def _read_asset(path: Path) -> Asset:
    content = path.read_bytes()
    is_changed = path.name in WITHOUT_DATA_IMAGES
    if is_changed:
        content = DATA_IMAGE.sub(b"none", content)
    digest = hashlib.sha256(content).hexdigest()[:DIGEST_DIGITS]
    kept = content if is_changed or len(content) <= MAX_CACHED_BYTES else None
    return Asset(digest=digest, media_type=MEDIA_TYPES[path.suffix], path=path, cached_content=kept)
