"""Pictures of people: converted in a child process, stored by digest, served as nothing but an image."""

import asyncio
import io
import os
import resource
import struct
import subprocess
import sys
import zlib

import httpx2
import pytest
from PIL import Image

from gatehouse.accounts.model import User
from gatehouse.images import conversion, worker
from gatehouse.images.conversion import WORKER, ImageConverter
from gatehouse.images.model import MAX_UPLOAD_BYTES, PICTURE, ImageShape
from gatehouse.kernel.errors import Unavailable
from tests.support.browser import AccountBrowser, hidden_fields
from tests.support.clock import MovableClock
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
    claims = await service.services.accounts.profile_claims.claims_of(
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
        (png_of_size(4_000, 3_001), "too many pixels"),
        (png_of_size(4_000, 3_000), "cannot be read"),
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


MEASURE = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-I", *sys.argv[1:]], stdin=sys.stdin, stdout=subprocess.DEVNULL)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


def peak_memory(upload: bytes, shape: str) -> tuple[int, int]:
    """Convert in a child process; return its exit status and its peak of resident memory in bytes.

    A process begins with the peak of the one that started it, so a small one stands between.
    """
    done = subprocess.run(
        [sys.executable, "-I", "-c", MEASURE, str(WORKER), "512", shape, "0"],
        input=upload,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    status, peak = done.stdout.split()
    return int(status), int(peak)


@pytest.mark.parametrize("size", [(4_000, 3_000), (732, 16_383), (16_383, 732)])
def test_lg_32_largest_image_of_each_format_is_converted_in_240_megabytes(size: tuple[int, int]) -> None:
    for kind, mode in (("WEBP", "RGBA"), ("WEBP", "RGB"), ("PNG", "RGBA"), ("PNG", "P"), ("JPEG", "CMYK")):
        picture = encoded(Image.new(mode, size), kind, method=0)  # of WebP: encodes in the least time
        for shape in ("square", "fit"):
            status, peak = peak_memory(picture, shape)
            assert (status, peak < 240_000_000) == (0, True), (kind, mode, shape, peak)


def test_lg_32_image_of_too_many_pixels_is_not_decoded() -> None:
    status, peak = peak_memory(encoded(Image.new("RGB", (4_000, 3_001)), "WEBP"), "fit")
    assert (status, peak < 40_000_000) == (worker.TOO_MANY_PIXELS, True)


def test_lg_32_jpeg_with_more_than_100_scans_is_refused() -> None:
    photo = encoded(Image.effect_noise((200, 200), 90), "JPEG", progressive=True)
    scans = photo.count(b"\xff\xda")
    last = photo[photo.rindex(b"\xff\xda") : photo.rindex(b"\xff\xd9")]
    for extra, refused in ((worker.MAX_SCANS - scans, False), (worker.MAX_SCANS - scans + 1, True)):
        status, _ = peak_memory(photo.removesuffix(b"\xff\xd9") + last * extra + b"\xff\xd9", "fit")
        assert (status != 0) is refused


def test_lg_32_jpeg_with_several_pictures_has_no_more_scans_than_any_other() -> None:
    """Its index of pictures gives it another format in the library."""
    photo = Image.effect_noise((100, 100), 90)
    several = encoded(photo, "MPO", save_all=True, append_images=[photo])
    start = several.index(b"MPF\0") - 4
    (length,) = struct.unpack(">H", several[start + 2 : start + 4])
    index = several[start : start + 2 + length]
    one = encoded(photo, "JPEG", progressive=True)
    last = one[one.rindex(b"\xff\xda") : one.rindex(b"\xff\xd9")]
    for extra, refused in ((1, False), (worker.MAX_SCANS, True)):
        upload = one[:2] + index + one[2:].removesuffix(b"\xff\xd9") + last * extra + b"\xff\xd9"
        assert Image.open(io.BytesIO(upload)).format == "MPO"
        assert (peak_memory(upload, "fit")[0] != 0) is refused


def test_lg_32_child_has_its_limits_before_it_reads_the_picture() -> None:
    """A pipe holds 64 KB: once more has been written, the child reads, and has set its limits before."""
    command = conversion.worker_command(PICTURE)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
        assert child.stdin is not None
        os.write(child.stdin.fileno(), b"\0" * 200_000)
        limits = {
            name: resource.prlimit(child.pid, getattr(resource, f"RLIMIT_{name}")) for name in ("CPU", "AS", "FSIZE")
        }
        priority = os.getpriority(os.PRIO_PROCESS, child.pid)
    assert limits == {"CPU": (3, 3), "AS": (256 * 2**20, 256 * 2**20), "FSIZE": (0, 0)}
    assert priority == 19
    assert child.returncode == worker.WRONG_FORMAT


async def test_lg_32_one_picture_is_converted_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several accounts too: more wait, and a few at most."""
    running: list[int] = []
    go_on = asyncio.Event()

    async def convert_slowly(_upload: bytes, _shape: ImageShape) -> bytes:
        running.append(1)
        await go_on.wait()
        running.append(-1)
        return b"done"

    monkeypatch.setattr(conversion, "run_worker", convert_slowly)
    converter, picture = ImageConverter(MovableClock()), encoded(Image.new("RGB", (9, 9)), "PNG")
    waiting = [asyncio.create_task(converter.convert(picture, PICTURE)) for _ in range(conversion.MAX_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        await converter.convert(picture, PICTURE)
    assert running == [1]
    go_on.set()
    await asyncio.gather(*waiting)
    assert running == [1, -1] * conversion.MAX_WAITING


def test_gray_picture_of_16_bits_keeps_its_shades() -> None:
    row = b"".join(struct.pack("<H", 65_535 * x // 599) for x in range(600))
    for options in ({}, {"transparency": 0}):
        shown = converted(encoded(Image.frombytes("I;16", (600, 600), row * 600), "PNG", **options), "fit")
        shades = [shown.convert("L").getpixel((x, 256)) for x in (1, 128, 256, 384, 510)]
        assert shades == pytest.approx([0, 64, 128, 192, 255], abs=4)


def test_picture_is_upright_cut_in_the_middle_and_keeps_its_colors() -> None:
    photo = Image.new("RGB", (3_000, 1_000), "red")
    photo.paste("lime", (1_000, 0, 2_000, 500))  # the upper half of the square in the middle
    photo.paste("blue", (1_000, 500, 2_000, 1_000))
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    shown = converted(encoded(photo, "PNG", exif=exif), "square")
    assert shown.size == (512, 512)
    assert [nearest_color(shown.getpixel((256, y))) for y in (20, 490)] == ["blue", "lime"]
    assert nearest_color(shown.getpixel((5, 5))) == "blue"
    exif[0x0112] = 6  # a quarter turn
    assert converted(encoded(photo, "PNG", exif=exif), "fit").size == (171, 512)
    indexed = Image.new("P", (1_500, 1_500))
    indexed.putpalette([0, 0, 255, 0, 255, 0])
    indexed.paste(1, (0, 0, 750, 1_500))
    shown = converted(encoded(indexed, "PNG", transparency=0), "fit")
    assert (shown.mode, nearest_color(shown.getpixel((100, 100))[:3])) == ("RGBA", "lime")
    assert shown.getpixel((400, 100))[3] == 0


def converted(upload: bytes, shape: str) -> Image.Image:
    done = subprocess.run(
        [sys.executable, "-I", str(WORKER), "512", shape, "0"], input=upload, stdout=subprocess.PIPE, check=True
    )
    return Image.open(io.BytesIO(done.stdout))


def nearest_color(pixel: tuple[int, ...]) -> str:
    return ("red", "lime", "blue")[pixel.index(max(pixel))]


async def test_lg_33_account_converts_one_image_at_a_time_and_ten_a_minute(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    picture = encoded(Image.new("RGB", (40, 40), "teal"), "PNG")
    page = await account_browser.get("/account")
    csrf = hidden_fields(page.text)["csrf"]

    async def post() -> int:
        files = {"picture": ("me.png", picture, "image/png")}
        response = await account_browser.client.post("/account/picture", data={"csrf": csrf}, files=files)
        if response.status_code == 429:
            assert int(response.headers["retry-after"]) > 0
        return response.status_code

    statuses = await asyncio.gather(*(post() for _ in range(3)))
    assert sorted(statuses) == [303, 429, 429]
    assert [await post() for _ in range(10)] == [303] * 9 + [429]
    await service.clock.advance(60)
    assert await post() == 303
