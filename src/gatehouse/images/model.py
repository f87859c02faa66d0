"""An image as it is stored and served, and what is refused."""

from typing import Final

from msgspec import Struct

from gatehouse.fields.secrets import SecretBytes, SecretRecord
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import BadInput

MEDIA_TYPE: Final = "image/webp"
IMAGES_PATH: Final = "/images"
MAX_UPLOAD_BYTES: Final = 4 * 1024 * 1024
MAX_STORED_BYTES: Final = 256 * 1024


class BadImage(BadInput):
    """This is no image that is accepted; the detail says why, for the person who sent it, and `field` where."""

    def __init__(self, detail: str, *, field: str = "") -> None:
        super().__init__(detail)
        self.field = field


class StoredImage(SecretRecord, frozen=True, kw_only=True):
    content: SecretBytes
    media_type: str = MEDIA_TYPE
    source: str = ""  # what it was made from: the URL that was fetched, or `upload_source`

    @property
    def image_id(self) -> str:
        return sha256(self.content).hex()

    @property
    def is_fetched(self) -> bool:
        return self.source.startswith("http")


class ImageShape(Struct, frozen=True, kw_only=True):
    """The size of the result: `side` pixels at most, cut to a square or fitted."""

    side: int
    square: bool


def image_path(image_id: str) -> str:
    """Return the path that an image is served at; "" for none."""
    return f"{IMAGES_PATH}/{image_id}" if image_id else ""


def image_url(base_url: str, image_id: str) -> str:
    """Return the address of an image at this installation; "" for none."""
    return f"{base_url}{image_path(image_id)}" if image_id else ""


def picture_owner(user_id: str) -> str:
    """Return the owner under which a person's picture is stored; the following do the same for logos."""
    return f"user:{user_id}"


def client_logo_owner(client_id: str) -> str:
    return f"client:{client_id}"


def application_logo_owner(application_id: int) -> str:
    return f"application:{application_id}"


def setting_image_owner(name: str) -> str:
    return f"setting:{name}"


def upload_source(upload: bytes) -> str:
    return f"sha256:{sha256(upload).hex()}"


PICTURE: Final = ImageShape(side=256, square=True)  # of a person
LOGO: Final = ImageShape(side=512, square=False)  # of a client, an application or an installation
