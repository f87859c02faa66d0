"""The child process: an image on stdin, the same image as WebP on stdout. Imports nothing of the service.

Arguments: the largest side in pixels, and `square` or `fit`. Exit status 2: another format; 3: too many pixels; any
other: it cannot be read.
"""

import io
import resource
import sys
import warnings
from typing import Final

CPU_SECONDS: Final = 10
MEMORY_BYTES: Final = 768 * 1024 * 1024  # address space, of which the library itself takes a part
MAX_PIXELS: Final = 25_000_000
MAX_SIDE: Final = 16_384  # pixels
FORMATS: Final = ("PNG", "JPEG", "WEBP")
QUALITY: Final = 85
WRONG_FORMAT: Final = 2
TOO_MANY_PIXELS: Final = 3


def limit_process() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # no file is written
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def convert(upload: bytes, side: int, *, square: bool) -> bytes:
    from PIL import Image, ImageOps, UnidentifiedImageError  # noqa: PLC0415 - after the limits are set

    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    try:
        opened = Image.open(io.BytesIO(upload), formats=FORMATS)  # reads the header only
    except UnidentifiedImageError:
        sys.exit(WRONG_FORMAT)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        sys.exit(TOO_MANY_PIXELS)
    if opened.width * opened.height > MAX_PIXELS or max(opened.size) > MAX_SIDE:
        sys.exit(TOO_MANY_PIXELS)
    opened.draft("RGB", (side * 2, side * 2))  # a JPEG is decoded near the size that is needed
    upright = ImageOps.exif_transpose(opened)
    plain = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
    if square:
        edge = min(side, *plain.size)
        shaped = ImageOps.fit(plain, (edge, edge))
    else:
        shaped = plain
        shaped.thumbnail((side, side))
    # A new image has the pixels alone: no EXIF, no profile, no text, nothing behind the end.
    clean = Image.frombytes(shaped.mode, shaped.size, shaped.tobytes())
    result = io.BytesIO()
    clean.save(result, "WEBP", quality=QUALITY)
    return result.getvalue()


def main() -> None:
    limit_process()
    side, shape = int(sys.argv[1]), sys.argv[2]
    sys.stdout.buffer.write(convert(sys.stdin.buffer.read(), side, square=shape == "square"))


if __name__ == "__main__":
    main()
