"""The client files of games, served by the installation: single files, and zips for Unity and Godot.

They are part of the program, so that nothing has to be fetched from elsewhere, and fit the version that serves them.
"""

import asyncio
from collections.abc import Iterator, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.errors import NotFound
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import cacheable_response
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.paths import Path

PACKAGED: Final = FilePath(__file__).parents[2] / "demo" / "clients"  # of the wheel, as for `gatehouse sample-game`
SOURCES: Final = FilePath(__file__).parents[4] / "clients"
FILES: Final[Mapping[str, str]] = MappingProxyType(
    {
        name.rpartition("/")[2]: name
        for name in (
            "python/gatehouse_login.py",
            "cpp/gatehouse_login.hpp",
            "cpp/gatehouse_guest.hpp",
            "csharp/GatehouseLogin.cs",
            "csharp/GatehouseGuest.cs",
            "unity/Runtime/Ed25519.cs",  # which it needs
            "gdscript/gatehouse_login.gd",
            "typescript/gatehouse_login.ts",
        )
    }
)
ZIPS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(  # their folder, and what their paths begin with
    {"gatehouse-unity.zip": ("unity", "dev.gatehouse.client/"), "gatehouse-godot.zip": ("godot/addons", "addons/")}
)
EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # of every file in a zip: the same sources give the same bytes


def client_files_endpoint() -> Iterator[Endpoint]:
    yield Endpoint(
        name="client_files",
        path=f"{Path.CLIENT_FILES}/{{name}}",
        methods=("GET",),
        handler=download,
        dialect=Dialect.PAGE,
        rate_class=RateClass.PUBLIC,
        section="operations",
        summary="Client files of games",
        hidden=True,
    )


async def download(request: Request) -> Response:
    name: str = request.path_params["name"]
    if name not in FILES and name not in ZIPS:
        raise NotFound
    content = await asyncio.to_thread(client_file, name)
    media_type = "application/zip" if name in ZIPS else "text/plain; charset=utf-8"
    return cacheable_response(request, content, media_type=media_type, cache_control="no-cache")


@cache
def client_file(name: str) -> bytes:
    """Return a file of FILES or ZIPS."""
    folder = PACKAGED if (PACKAGED / "unity").is_dir() else SOURCES
    if name in FILES:
        return (folder / FILES[name]).read_bytes()
    place, prefix = ZIPS[name]
    return zip_folder(folder / place, prefix)


def zip_folder(folder: FilePath, prefix: str) -> bytes:
    archive_bytes = BytesIO()
    with ZipFile(archive_bytes, "w", ZIP_DEFLATED) as archive:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            info = ZipInfo(prefix + file.relative_to(folder).as_posix(), EPOCH)
            info.compress_type, info.external_attr = ZIP_DEFLATED, 0o644 << 16
            archive.writestr(info, file.read_bytes())
    return archive_bytes.getvalue()
