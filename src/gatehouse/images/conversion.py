"""Convert an upload in a child process with limits on time, processor and memory."""

import asyncio
import sys
from pathlib import Path
from typing import Final, NoReturn

from gatehouse.images import worker
from gatehouse.images.model import MAX_STORED_BYTES, MAX_UPLOAD_BYTES, BadImage, ImageShape, StoredImage
from gatehouse.images.upload_limit import UploadLimit
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Unavailable

WORKER: Final = Path(__file__).with_name("worker.py")
TIMEOUT_SECONDS: Final = 20.0  # of one conversion, on a busy machine
MAX_CONCURRENT: Final = 1  # in a process: one conversion takes up to 256 MB
MAX_WAITING: Final = 8
LOWEST_PRIORITY: Final = 19  # nice value of a process on Linux

SIGNATURES: Final = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
RIFF, WEBP = b"RIFF", b"WEBP"
WEBP_TYPE_END: Final = 12  # bytes: RIFF, a length, WEBP

WRONG_FORMAT: Final = "the picture must be a PNG, JPEG or WebP image"
TOO_LARGE: Final = "the picture must be at most 4 MB"
TOO_MANY_PIXELS: Final = "the picture has too many pixels"
UNREADABLE: Final = "the picture cannot be read"


class ImageConverter:
    def __init__(self, clock: Clock) -> None:
        self.upload_limit = UploadLimit(clock)
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._waiting = 0

    async def convert(self, upload: bytes, shape: ImageShape) -> StoredImage:
        """Return the image in the one stored format, of this shape. Raises BadImage, Unavailable."""
        refuse_upload(upload)
        if self._waiting >= MAX_WAITING:
            raise Unavailable("too many images are converted at once")
        self._waiting += 1
        try:
            async with self._slots:
                content = await run_worker(upload, shape)
        finally:
            self._waiting -= 1
        if not 0 < len(content) <= MAX_STORED_BYTES:
            raise BadImage(UNREADABLE).on_screen("image_unreadable")
        return StoredImage(content=content)


def refuse_upload(upload: bytes) -> None:
    """Refuse what is too large or no supported image, before a process is started for it."""
    if len(upload) > MAX_UPLOAD_BYTES:
        raise BadImage(TOO_LARGE).on_screen("image_size")
    is_webp = upload.startswith(RIFF) and upload[:WEBP_TYPE_END].endswith(WEBP)
    if not upload.startswith(SIGNATURES) and not is_webp:
        raise BadImage(WRONG_FORMAT).on_screen("image_format")


def worker_command(shape: ImageShape) -> tuple[str, ...]:
    """Return the command of the child; with -I it loads nothing of the environment or the directory."""
    fit = "square" if shape.square else "fit"
    return (sys.executable, "-I", str(WORKER), str(shape.side), fit, str(LOWEST_PRIORITY))


async def run_worker(upload: bytes, shape: ImageShape) -> bytes:
    child = await asyncio.create_subprocess_exec(
        *worker_command(shape),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            content, _ = await child.communicate(upload)
    except TimeoutError:
        raise BadImage(UNREADABLE).on_screen("image_unreadable") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        refuse_exit_status(child.returncode)
    return content


def refuse_exit_status(status: int | None) -> NoReturn:
    if status == worker.WRONG_FORMAT:
        raise BadImage(WRONG_FORMAT).on_screen("image_format")
    if status == worker.TOO_MANY_PIXELS:
        raise BadImage(TOO_MANY_PIXELS).on_screen("image_pixels")
    raise BadImage(UNREADABLE).on_screen("image_unreadable")
