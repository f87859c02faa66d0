"""Images in files: a URL, which is fetched only if the stored image was made from another one."""

from msgspec import UNSET, UnsetType

from gatehouse.images.loading import NewImage, data_url, is_made_from
from gatehouse.images.model import BadImage, ImageShape, StoredImage
from gatehouse.permissions.errors import Malformed
from gatehouse.provision.model import PutImage, StoredState
from gatehouse.provision.sections.section import Context


async def wanted_image(
    url: str | UnsetType | None,
    shape: ImageShape,
    stored: StoredImage | None,
    context: Context,
    *,
    image_id: str,
    place: str,
) -> NewImage:
    """Return the image that a file asks for. Raises Malformed, Unavailable.

    `stored` and `image_id`: the one it would replace, without its content.
    """
    if not isinstance(url, str):
        return None if url is None and image_id else UNSET
    if stored is not None and is_made_from(url, image_id=image_id, source=stored.source):
        return UNSET
    try:
        return await context.load_image(url, shape)
    except BadImage as error:
        raise Malformed(f"{place}: {error.detail}") from None


def merged_image_id(image: NewImage, before: str) -> str:
    if image is UNSET:
        return before
    return "" if image is None else image.image_id


def image_writes(owner: str, image: NewImage) -> tuple[PutImage, ...]:
    return () if image is UNSET else (PutImage(owner, image),)


def exported_url(owner: str, state: StoredState) -> str | None:
    """Return the URL that the image was fetched from, or its content as a data URL; None without an image."""
    stored = state.images.get(owner)
    if stored is None:
        return None
    return stored.source if stored.is_fetched else data_url(stored)
