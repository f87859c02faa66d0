"""The child process: an image on stdin, the same image as WebP on stdout. Imports nothing of the service.

Arguments: the largest side in pixels, `square` or `fit`, how much lower the priority is. Exit status 2: another
format; 3: too many pixels; any other: it cannot be read.
"""

import io
import os
import resource
import sys
import warnings
from typing import Final

CPU_SECONDS: Final = 3
MEMORY_BYTES: Final = 256 * 1024 * 1024  # address space; a WebP image of MAX_PIXELS takes 230 MB of it
MAX_PIXELS: Final = 12_000_000
MAX_SIDE: Final = 16_384  # pixels
MAX_SCANS: Final = 100  # of a progressive JPEG, each of which passes over the whole image
START_OF_JPEG: Final = b"\xff\xd8"
START_OF_SCAN: Final = b"\xff\xda"  # a marker that compressed data never contains
BAND_PIXELS: Final = 500_000  # converted at a time, so that no full-size copy is made
ORIENTATION: Final = 0x0112  # of EXIF
FORMATS: Final = ("PNG", "JPEG", "WEBP")
SIXTEEN_BITS: Final = "I;16"  # the mode of a gray PNG
QUALITY: Final = 85
WRONG_FORMAT: Final = 2
TOO_MANY_PIXELS: Final = 3


def limit_process(niceness: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # no file is written
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(niceness)


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
    # By its first bytes: the library names a JPEG with several pictures MPO.
    if upload.startswith(START_OF_JPEG) and upload.count(START_OF_SCAN) > MAX_SCANS:
        sys.exit("too many scans")
    target = side * 2
    opened.draft("RGB", (target, target))  # a JPEG is decoded near the size that is needed
    left, top, width, height = center_square(opened.size) if square else (0, 0, *opened.size)
    # Converted and averaged band by band: beside what the decoder holds, no copy has the full size.
    factor = max(1, max(width, height) // target)
    small = Image.new("RGBA" if opened.has_transparency_data else "RGB", (-(-width // factor), -(-height // factor)))
    rows = max(1, BAND_PIXELS // (width * factor)) * factor
    for done in range(0, height, rows):
        band = opened.crop((left, top + done, left + width, top + min(done + rows, height)))
        if band.mode == SIXTEEN_BITS:
            band = band.point(lambda value: value * (1 / 256))
        small.paste(band.convert(small.mode).reduce(factor), (0, done // factor))
    small.getexif()[ORIENTATION] = opened.getexif().get(ORIENTATION, 1)
    shaped = ImageOps.exif_transpose(small)
    shaped.thumbnail((side, side))
    # A new image has the pixels alone: no EXIF, no profile, no text, nothing behind the end.
    clean = Image.frombytes(shaped.mode, shaped.size, shaped.tobytes())
    result = io.BytesIO()
    clean.save(result, "WEBP", quality=QUALITY)
    return result.getvalue()


def center_square(size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return left, top, width and height of the largest square in the middle."""
    width, height = size
    edge = min(size)
    return (width - edge) // 2, (height - edge) // 2, edge, edge


def main() -> None:
    limit_process(int(sys.argv[3]))
    side, shape = int(sys.argv[1]), sys.argv[2]
    sys.stdout.buffer.write(convert(sys.stdin.buffer.read(), side, square=shape == "square"))


if __name__ == "__main__":
    main()
