"""Load an image from an upload, a data URL or a URL; every picture and logo comes through here.

An upload, a data URL or the address of an image; each is encoded anew. An address is fetched once, through the
outbound guard, and what was fetched is stored and served here (docs/decisions/0040-one-loader-for-all-images.md).
"""

from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from typing import Final

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from gatehouse.images.conversion import ImageConverter, refuse_upload
from gatehouse.images.model import MAX_UPLOAD_BYTES, BadImage, ImageShape, StoredImage, upload_source
from gatehouse.kernel.web_urls import parse_web_url
from gatehouse.outbound.client import OutboundClient
from gatehouse.outbound.model import CallFailed, CallLimits, OutboundResponse

FETCH_LIMITS: Final = CallLimits(total_seconds=10, body_bytes=MAX_UPLOAD_BYTES, max_concurrent=2)
OK: Final = 200
MEDIA_TYPES: Final = ("image/png", "image/jpeg", "image/webp")
DATA_SCHEME: Final = "data:"
BASE64_MARK: Final = ";base64"
BAD_URL: Final = "the URL must be https without user info or fragment, or a data URL with an image in base64"
NO_IMAGE: Final = "the URL must answer 200 with a PNG, JPEG or WebP image"

NewImage = StoredImage | UnsetType | None  # None removes the image, UNSET keeps it


class ImageLoader:
    def __init__(self, *, converter: ImageConverter, outbound: OutboundClient) -> None:
        self._converter = converter
        self._outbound = outbound

    async def convert(self, upload: bytes, shape: ImageShape, *, uploader: str) -> StoredImage:
        """Return the upload as it is stored. `uploader`: who sent it. Raises BadImage, TooMany, Unavailable."""
        refuse_upload(upload)
        with self._converter.upload_limit.admit(uploader):
            converted = await self._converter.convert(upload, shape)
        return replace(converted, source=upload_source(upload))

    async def load(self, url: str, shape: ImageShape, *, uploader: str) -> StoredImage:
        """Return the image of a data URL, or fetch it once. Raises BadImage, TooMany, Unavailable."""
        if url.startswith(DATA_SCHEME):
            return await self.convert(decode_data_url(url), shape, uploader=uploader)
        target = parse_web_url(url)
        if target is None or target.fragment:
            raise BadImage(BAD_URL).on_screen("image_url")
        with self._converter.upload_limit.admit(uploader):  # the fetch counts too: few run at once
            return replace(await self._converter.convert(await self._fetch(url), shape), source=url)

    async def _fetch(self, url: str) -> bytes:
        try:
            response = await self._outbound.get(url, accept=", ".join(MEDIA_TYPES))
        except CallFailed as error:
            # Without the detail, which may name an internal address.
            raise BadImage(error.public).on_screen(type(error).__name__) from None
        if response.status != OK or media_type(response) not in MEDIA_TYPES:
            raise BadImage(NO_IMAGE).on_screen("image_answer")
        return response.body

    async def load_change(
        self,
        upload: bytes | UnsetType | None,
        url: str | UnsetType | None,
        shape: ImageShape,
        *,
        field: str,
        current: str,
        uploader: str,
    ) -> NewImage:
        """Return the new image that `field` or `field`_uri of a request has. Raises BadImage, TooMany, Unavailable.

        `current`: the address of the image it has, as the service answers it; sent back, it changes nothing.
        """
        if url == current:
            url = UNSET
        if upload is not UNSET and url is not UNSET:
            refusal = BadImage(f"send {field} or {field}_uri, not both", field=f"{field}_uri")
            raise refusal.on_screen("image_both")
        try:
            if upload is not UNSET:
                return None if upload is None else await self.convert(upload, shape, uploader=uploader)
            if url is UNSET:
                return UNSET
            return await self.load(url, shape, uploader=uploader) if url else None
        except BadImage as error:
            error.field = field if url is UNSET else f"{field}_uri"
            raise


def media_type(response: OutboundResponse) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def decode_data_url(url: str) -> bytes:
    """Return the content of a data URL (RFC 2397) with an image in base64. Raises BadImage."""
    head, _, encoded = url.removeprefix(DATA_SCHEME).partition(",")
    if head not in {f"{image_type}{BASE64_MARK}" for image_type in MEDIA_TYPES}:
        raise BadImage(BAD_URL).on_screen("image_url")
    try:
        return b64decode(encoded, validate=True)
    except (BadBase64, ValueError):
        raise BadImage(BAD_URL).on_screen("image_url") from None


def data_url(image: StoredImage) -> str:
    return f"{DATA_SCHEME}{image.media_type}{BASE64_MARK},{b64encode(image.content).decode()}"


def is_made_from(url: str, *, image_id: str, source: str) -> bool:
    """Whether the stored image is what the URL gave: a file that is applied again fetches and changes nothing."""
    if not url.startswith(DATA_SCHEME):
        return source == url
    try:
        upload = upload_source(decode_data_url(url))
    except BadImage:
        return False
    return upload in (source, f"sha256:{image_id}")
