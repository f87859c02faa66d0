"""Storage of images: one for each owner, found by the digest of their content."""

from collections.abc import Mapping, Sequence

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert

from gatehouse.images.model import (
    StoredImage,
)
from gatehouse.storage.runner import SqlStore, read
from gatehouse.storage.statements import InStringList, Statement, Verb
from gatehouse.storage.tables.images import images

_NEW_IMAGE = insert(images)
PUT_IMAGE = Statement(
    lambda: _NEW_IMAGE.on_conflict_do_update(
        index_elements=["owner"],
        set_={
            name: _NEW_IMAGE.excluded[name] for name in ("image_id", "media_type", "content", "saved_at", "source")
        },
    )
)
DROP_IMAGE = Statement(lambda: delete(images).where(images.c.owner == bindparam("of_owner")))
IMAGE = Statement(
    lambda: select(images.c.content, images.c.media_type).where(images.c.image_id == bindparam("image_id")).limit(1)
)


_OWNED = InStringList(images.c.owner, "owners")
IMAGES_OF = Statement(
    lambda: select(images.c.owner, images.c.source, images.c.media_type, images.c.content).where(_OWNED)
)
SOURCES_OF = Statement(lambda: select(images.c.owner, images.c.source).where(_OWNED))


def put_image(owner: str, image: StoredImage, now: int) -> Verb[None]:
    """Replace the owner's image; part of other store methods."""
    yield PUT_IMAGE(
        owner=owner,
        image_id=image.image_id,
        media_type=image.media_type,
        content=image.content,
        saved_at=now,
        source=image.source,
    )


def remove_image(owner: str) -> Verb[None]:
    """Delete the owner's image, if there is one; part of other store methods."""
    yield DROP_IMAGE(of_owner=owner)


def set_image(owner: str, image: StoredImage | None, now: int) -> Verb[None]:
    """Replace the owner's image, or delete it for None; part of other store methods."""
    yield from remove_image(owner) if image is None else put_image(owner, image, now)


def find_image(image_id: str) -> Verb[StoredImage | None]:
    rows = yield IMAGE(image_id=image_id)
    return StoredImage(content=bytes(rows[0].content), media_type=rows[0].media_type) if rows else None


def read_images(owners: Sequence[str], *, contents: bool) -> Verb[Mapping[str, StoredImage]]:
    """Return the images of these owners, with their content only if it is asked for."""
    rows = yield (IMAGES_OF if contents else SOURCES_OF)(owners=owners)
    return {
        row.owner: StoredImage(content=bytes(row.content), media_type=row.media_type, source=row.source)
        if contents
        else StoredImage(content=b"", source=row.source)
        for row in rows
    }


class ImageStorage(SqlStore):
    find_image = read(find_image)
