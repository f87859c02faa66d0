"""The record of an account, apart from the endpoints: commands print it."""

import msgspec

from gatehouse.accounts.model import ACCOUNT_FIELDS, User, account_values
from gatehouse.fields.derive import entry_members, with_members
from gatehouse.images.model import image_url
from gatehouse.kernel.times import iso8601


@with_members(lambda: entry_members(ACCOUNT_FIELDS))
class UserEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Account data (R1), without credentials."""

    user_id: str
    level: str
    registered: str
    blocked: bool
    tags: tuple[str, ...]  # as people set them; providers set the next two
    purchases: tuple[str, ...]
    provided_tags: tuple[str, ...]
    provided_purchases: tuple[str, ...]
    picture: str  # address of the image at this installation
    version: int


def user_entry(user: User, base_url: str) -> UserEntry:
    values = account_values(user) | {"picture": image_url(base_url, user.picture)}
    return UserEntry(
        user_id=user.user_id,
        level=user.level,
        registered=iso8601(user.reg_time),
        blocked=user.blocked,
        provided_tags=tuple(sorted(user.provided_tags)),
        provided_purchases=tuple(sorted(user.provided_purchases)),
        version=user.version,
        **values,
    )
