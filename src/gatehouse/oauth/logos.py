"""Logos of clients: uploaded, or fetched once from an address; always stored and served here."""

from typing import Final

from gatehouse.images.conversion import ImageConverter
from gatehouse.images.model import LOGO, MAX_UPLOAD_BYTES, BadImage, StoredImage, image_path
from gatehouse.oauth.clients import is_outbound_url
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import Client
from gatehouse.outbound.client import OutboundClient
from gatehouse.outbound.model import CallFailed, CallLimits, OutboundResponse

LOGO_LIMITS: Final = CallLimits(total_seconds=10, body_bytes=MAX_UPLOAD_BYTES, max_concurrent=2)
MAX_URI_LENGTH: Final = 2_048
OK: Final = 200
MEDIA_TYPES: Final = ("image/png", "image/jpeg", "image/webp")
UPLOAD_FIELD: Final = "logo"
URI_FIELD: Final = "logo_uri"
BAD_URI: Final = "logo_uri must be an https URL without user info or fragment"
NO_IMAGE: Final = "the URL must answer 200 with a PNG, JPEG or WebP image"


def logo_uri(client: Client, base_url: str) -> str:
    """Return the address of the client's logo at this installation; "" for none."""
    return f"{base_url}{image_path(client.logo)}" if client.logo else ""


class ClientLogos:
    def __init__(self, *, images: ImageConverter, outbound: OutboundClient, base_url: str) -> None:
        self._images = images
        self._outbound = outbound
        self._base_url = base_url

    def address(self, client: Client) -> str:
        return logo_uri(client, self._base_url)

    async def convert(self, upload: bytes, *, field: str = UPLOAD_FIELD) -> StoredImage:
        """Return the upload as it is stored. Raises BadClient, Unavailable."""
        try:
            return await self._images.convert(upload, LOGO)
        except BadImage as error:
            raise BadClient(error.detail, field=field) from None

    async def fetch(self, uri: str) -> StoredImage:
        """Fetch an image once and return it as it is stored. Raises BadClient, Unavailable."""
        if not uri or len(uri) > MAX_URI_LENGTH or not is_outbound_url(uri):
            raise BadClient(BAD_URI, field=URI_FIELD)
        try:
            response = await self._outbound.get(uri, accept=", ".join(MEDIA_TYPES))
        except CallFailed as error:
            # Without the detail, which may name an internal address.
            raise BadClient(error.public, field=URI_FIELD) from None
        if response.status != OK or media_type(response) not in MEDIA_TYPES:
            raise BadClient(NO_IMAGE, field=URI_FIELD)
        return await self.convert(response.body, field=URI_FIELD)


def media_type(response: OutboundResponse) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()
