"""Pictures of people: converted in a child process, stored by digest, served as nothing but an image."""

import io
import struct
import subprocess
import sys
import zlib

import httpx2
import pytest
from PIL import Image

from gatehouse.accounts.model import User
from gatehouse.images.model import MAX_UPLOAD_BYTES
from tests.support.browser import AccountBrowser, hidden_fields
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.service import RunningService

SECRET_TEXT = b"<script>alert(1)</script>"


def encoded(picture: Image.Image, kind: str, **options: object) -> bytes:
    written = io.BytesIO()
    picture.save(written, kind, **options)
    return written.getvalue()


def png_of_size(width: int, height: int) -> bytes:
    """A PNG file of a few bytes whose header announces any size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 64))
        + chunk(b"IEND", b"")
    )


async def upload(account_browser: AccountBrowser, content: bytes, **fields: str) -> httpx2.Response:
    page = await account_browser.get("/account")
    csrf = hidden_fields(page.text)["csrf"]
    file = ("me.png", content, "image/png")
    account_browser.page = await account_browser.client.post(
        "/account/picture", data={"csrf": csrf, **fields}, files={"picture": file}
    )
    return account_browser.page


async def picture_of(service: RunningService, user: User) -> str:
    return (await service.services.storage.accounts.user(user.user_id)).picture


@pytest.mark.both_databases
async def test_lg_31_picture_is_encoded_anew_and_served_as_an_image_only(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    photo = encoded(Image.new("RGB", (900, 600), "navy"), "JPEG", exif=exif, comment=SECRET_TEXT)
    for original in (photo + SECRET_TEXT, encoded(Image.new("RGBA", (300, 400)), "PNG") + SECRET_TEXT):
        assert (await upload(account_browser, original)).status_code == 303
        image_id = await picture_of(service, anna)
        page = await account_browser.follow()
        assert f'src="/images/{image_id}"' in page.text
        served = await service.client.get(f"/images/{image_id}")
        shown = Image.open(io.BytesIO(served.content))
        assert (shown.format, shown.size) == ("WEBP", (256, 256))
        assert SECRET_TEXT not in served.content
        assert b"taken at home" not in served.content
        assert not shown.getexif()
    assert served.headers["content-type"] == "image/webp"
    assert served.headers["x-content-type-options"] == "nosniff"
    assert served.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert served.headers["cache-control"] == "public, max-age=31536000, immutable"
    again = await service.client.get(f"/images/{image_id}", headers={"If-None-Match": served.headers["etag"]})
    assert again.status_code == 304
    claims = await service.services.profile_claims.claims_of(
        await service.services.storage.accounts.user(anna.user_id)
    )
    assert claims["picture"] == f"{service.services.base_url}/images/{image_id}"


def test_server_does_not_load_the_image_library() -> None:
    check = "import sys, gatehouse.app.endpoints, gatehouse.images.conversion; sys.exit('PIL' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)


async def test_lg_31_hostile_uploads_are_refused_and_change_nothing(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    whole = encoded(Image.effect_noise((400, 400), 90), "PNG")
    for content, problem in (
        (b"", "PNG, JPEG or WebP"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', "PNG, JPEG or WebP"),
        (encoded(Image.new("RGB", (9, 9)), "GIF"), "PNG, JPEG or WebP"),
        (b"\xff\xd8\xff<svg></svg>", "PNG, JPEG or WebP"),
        (png_of_size(60_000, 60_000), "too many pixels"),
        (png_of_size(5_000, 5_001), "too many pixels"),
        (png_of_size(4_000, 4_000), "cannot be read"),
        (whole[: len(whole) // 2], "cannot be read"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * MAX_UPLOAD_BYTES, "at most 4 MB"),
    ):
        response = await upload(account_browser, content)
        assert response.status_code == 400, problem
        assert problem in account_browser.problem_in(response)
    oversize = await upload(account_browser, b"\0" * (MAX_UPLOAD_BYTES + 100_000))
    assert oversize.status_code == 413
    assert await picture_of(service, anna) == ""
    forged = await account_browser.client.post(
        "/account/picture", data={"csrf": "x"}, files={"picture": ("a.png", whole, "image/png")}
    )
    assert forged.status_code == 403
    page = await account_browser.get("/account")
    elsewhere = await account_browser.client.post(
        "/account/profile", data=hidden_fields(page.text), files={"nick": ("a.png", whole, "image/png")}
    )
    assert (elsewhere.status_code, "files are not accepted" in elsewhere.text) == (400, True)


async def test_picture_is_removed_by_its_owner_and_with_the_account(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    picture = encoded(Image.new("RGB", (64, 80), "teal"), "WEBP")
    await upload(account_browser, picture)
    first = await picture_of(service, anna)
    assert (await service.client.get(f"/images/{first}")).status_code == 200
    assert await account_browser.submit_and_read_notice("/account/picture/remove") == "Picture removed"
    assert await picture_of(service, anna) == ""
    for path in (f"/images/{first}", "/images/none", f"/images/{'0' * 64}"):
        assert (await service.client.get(path)).status_code == 404
    await upload(account_browser, picture)
    await account_browser.get("/account/delete")
    await account_browser.submit("/account/delete", login=anna.login or "")
    assert tables_that_mention(await read_all_tables(service.services.storage), first) == set()
