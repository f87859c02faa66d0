"""Images that tests upload or serve."""

import io
from base64 import b64encode
from typing import Final

from PIL import Image

SVG: Final = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def png(color: str, size: tuple[int, int] = (800, 200)) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", size, color).save(written, "PNG")
    return written.getvalue()


def png_data_url(color: str, size: tuple[int, int] = (800, 200)) -> str:
    return f"data:image/png;base64,{b64encode(png(color, size)).decode()}"
