"""An image as it is stored and served, and what is refused."""

from dataclasses import dataclass, field
from typing import Final

from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import BadInput

MEDIA_TYPE: Final = "image/webp"
IMAGES_PATH: Final = "/images"
MAX_UPLOAD_BYTES: Final = 4 * 1024 * 1024
MAX_STORED_BYTES: Final = 256 * 1024


class BadImage(BadInput):
    """The upload is no image that is accepted; the detail says why, for the person who sent it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredImage:
    content: bytes = field(repr=False)
    media_type: str = MEDIA_TYPE

    @property
    def image_id(self) -> str:
        return sha256(self.content).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageShape:
    """The size of the result: `side` pixels at most, cut to a square or fitted."""

    side: int
    square: bool


def image_path(image_id: str) -> str:
    """Return the path that an image is served at; "" for none."""
    return f"{IMAGES_PATH}/{image_id}" if image_id else ""


PICTURE: Final = ImageShape(side=256, square=True)  # of a person
LOGO: Final = ImageShape(side=512, square=False)  # of a client, an application or an installation
