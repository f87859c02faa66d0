"""Images that people and administrators upload or name."""

from msgspec import Struct

from gatehouse.app.services.core import Core, outbound_client
from gatehouse.images.conversion import ImageConverter
from gatehouse.images.loading import FETCH_LIMITS, ImageLoader


class ImageServices(Struct, frozen=True, kw_only=True, eq=False):
    converter: ImageConverter
    loader: ImageLoader


def build_images(core: Core) -> ImageServices:
    converter = ImageConverter(core.clock)
    return ImageServices(
        converter=converter,
        loader=ImageLoader(converter=converter, outbound=outbound_client(core.settings, FETCH_LIMITS)),
    )
