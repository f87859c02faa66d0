"""The pictures of the guides: a test takes each of them, and `make pictures` stores them.

A test lists its pictures, `@pytest.mark.pictures("console-home")`, and uses the fixture `picture`. Every run takes
and checks them; only `--write-pictures` writes them to docs/guides/pictures/.
"""

import struct
import zlib
from collections.abc import Generator, Iterator
from typing import Final

import pytest
from playwright.async_api import Locator, Page, ViewportSize

from tests.support.find_programs import ROOT

PICTURES: Final = ROOT / "docs" / "guides" / "pictures"
MARK: Final = "pictures"
WRITE: Final = "--write-pictures"
WIDTH: Final = 1280
MAX_HEIGHT: Final = 1300  # pixels; a higher picture is hard to read
MIN_HEIGHT: Final = 400
MAX_BYTES: Final = 150_000  # bytes
MIN_DISTINCT_ROWS: Final = 50  # of pixels; an empty page has hardly two
SETTLE_SCRIPT: Final = """
async () => {
  await document.fonts.ready;
  document.activeElement?.blur();
  getSelection().removeAllRanges();
  scrollTo(0, 0);
}
"""
WHOLE_HEIGHT: Final = "() => Math.ceil(document.body.getBoundingClientRect().bottom)"
END_OF: Final = (
    "(one) => Math.round(one.getBoundingClientRect().bottom + parseFloat(getComputedStyle(one).marginBottom))"
)
WIDER_THAN_WINDOW: Final = "() => document.documentElement.scrollWidth > innerWidth"
FRAMES_TO_RESIZE: Final = 3  # after a resize the new width is reported before the layout is done


async def wider_than_window(page: Page) -> bool:
    """Whether the page is wider than the window.

    A screenshot makes the browser draw a frame. A script cannot wait for one: some contexts have JavaScript disabled.
    """
    for _frame in range(FRAMES_TO_RESIZE):
        if not await page.evaluate(WIDER_THAN_WINDOW):
            return False
        await page.screenshot(animations="allow", caret="initial")
    return bool(await page.evaluate(WIDER_THAN_WINDOW))


class Camera:
    """Take each picture that a test has listed once."""

    def __init__(self, promised: tuple[str, ...], *, writes: bool) -> None:
        self.promised: Final = promised
        self.taken: Final[list[str]] = []
        self._writes = writes

    async def __call__(self, page: Page, name: str, *, width: int = WIDTH, until: Locator | None = None) -> None:
        """Take the page from its top to its end, or to the end of `until`.

        Afterwards nothing has the focus or is animated.
        """
        assert name in self.promised, f"{name} is not among the pictures of this test"
        before = page.viewport_size
        assert before is not None
        await page.mouse.move(0, 0)
        await page.emulate_media(reduced_motion="reduce")
        height = await fit_height(page, width, until)
        assert not await wider_than_window(page), f"{name} does not fit its width"
        # Playwright hides the caret and stops animations by an inline style, which the page's CSP forbids.
        content = await page.screenshot(animations="allow", caret="initial")
        await page.set_viewport_size(before)
        refuse_blank(name, content, width, height)
        self.taken.append(name)
        if self._writes:
            write_picture(name, content)


async def fit_height(page: Page, width: int, until: Locator | None) -> int:
    """Return the window height that shows everything; a table may grow with the window."""
    height, wanted = 0, MIN_HEIGHT
    for _ in range(8):
        height = wanted
        await page.set_viewport_size(ViewportSize(width=width, height=height))
        await page.evaluate(SETTLE_SCRIPT)
        wanted = max(MIN_HEIGHT, await page.evaluate(WHOLE_HEIGHT) if until is None else await bottom_of(until))
        if wanted == height:
            break
    return wanted


async def bottom_of(element: Locator) -> int:
    height: int = await element.evaluate(END_OF)
    return height


def refuse_blank(name: str, content: bytes, width: int, height: int) -> None:
    header, rows = read_png(content)
    assert header == (width, height), f"{name} is {header}"
    assert len(set(rows)) >= MIN_DISTINCT_ROWS, f"{name} is blank"


def write_picture(name: str, content: bytes) -> None:
    """Write a picture after checking its size, which depends on the machine's fonts and so counts only here."""
    (_, height), _ = read_png(content)
    assert height <= MAX_HEIGHT, f"{name} is {height} high: pass `until`"
    assert len(content) <= MAX_BYTES, f"{name} has {len(content)} bytes"
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"{name}.png").write_bytes(content)


CAMERA: Final = pytest.StashKey[Camera]()


def png_chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Return name and data of each chunk of a PNG."""
    offset = 8
    while offset < len(content):
        (length,) = struct.unpack_from(">I", content, offset)
        yield content[offset + 4 : offset + 8], content[offset + 8 : offset + 8 + length]
        offset += length + 12


def read_png(content: bytes) -> tuple[tuple[int, int], list[bytes]]:
    """Return width, height and the stored rows."""
    parts = list(png_chunks(content))
    width, height = struct.unpack_from(">II", parts[0][1])
    pixels = zlib.decompress(b"".join(data for name, data in parts if name == b"IDAT"))
    length = len(pixels) // height
    return (width, height), [pixels[start : start + length] for start in range(0, len(pixels), length)]


@pytest.fixture
def picture(request: pytest.FixtureRequest) -> Camera:
    mark = request.node.get_closest_marker(MARK)
    camera = Camera(mark.args, writes=request.config.getoption(WRITE))
    request.node.stash[CAMERA] = camera
    return camera


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(WRITE, action="store_true", help="write the pictures of the guides down")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}(*names): pictures of the guides that the test takes")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Check that a passing test has taken every picture it listed."""
    outcome = yield
    camera = item.stash.get(CAMERA, None)
    assert camera is None or sorted(camera.taken) == sorted(camera.promised)
    return outcome
