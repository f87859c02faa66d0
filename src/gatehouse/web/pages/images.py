"""Serves stored images by the digest of their content: the same bytes forever, and nothing but an image."""

import re
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.images.model import IMAGES_PATH, StoredImage
from gatehouse.kernel.errors import NotFound
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import cacheable_response
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.assets import CACHE_FOREVER

IMAGE_ID: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
# Opened by itself an image runs nothing; other sites may show it, because clients get its address.
IMAGE_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Content-Disposition": "inline",
}

FindImage = Callable[[str], Awaitable[StoredImage | None]]


def image_endpoint(find_image: FindImage) -> Endpoint:
    async def serve(request: Request) -> Response:
        image_id: str = request.path_params["image_id"]
        image = await find_image(image_id) if IMAGE_ID.fullmatch(image_id) else None
        if image is None:
            raise NotFound
        response = cacheable_response(
            request, image.content, media_type=image.media_type, cache_control=CACHE_FOREVER
        )
        response.headers.update(IMAGE_HEADERS)
        return response

    return Endpoint(
        name="images",
        path=f"{IMAGES_PATH}/{{image_id}}",
        methods=("GET",),
        handler=serve,
        dialect=Dialect.PAGE,
        rate_class=RateClass.PUBLIC,
        section="pages",
        summary="Show a stored image",
        hidden=True,
    )
