"""Stores the settings that administrators change while the service runs."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import AuditRecord
from gatehouse.images.model import StoredImage, setting_image_owner
from gatehouse.kernel.stored_settings import StoredSetting, StoredSettings
from gatehouse.storage.audit import add_audit_records
from gatehouse.storage.images import put_image, remove_image
from gatehouse.storage.installation import set_value
from gatehouse.storage.runner import SqlStore, cached_read, write
from gatehouse.storage.statements import Notification, Statement, Verb
from gatehouse.storage.tables.installation import stored_settings

CHANNEL: Final = "settings"
NO_IMAGES: Final[Mapping[str, StoredImage]] = MappingProxyType({})
LOCK_NAME: Final = "settings_lock"  # a row of `installation` that every change writes first


_UPSERT = insert(stored_settings)
ALL_STORED_SETTINGS = Statement(lambda: select(stored_settings).order_by(stored_settings.c.name))
PUT_SETTING = Statement(
    lambda: _UPSERT.on_conflict_do_update(
        index_elements=["name"],
        set_={name: _UPSERT.excluded[name] for name in ("value", "sealed", "changed_at")},
    )
)
DROP_SETTING = Statement(lambda: delete(stored_settings).where(stored_settings.c.name == bindparam("of")))


def read_stored_settings() -> Verb[StoredSettings]:
    rows = yield ALL_STORED_SETTINGS()
    return {row.name: StoredSetting(row.value, row.sealed) for row in rows}


def change_stored_settings(
    changes: Mapping[str, StoredSetting | None],
    now: int,
    *,
    check: Callable[[StoredSettings, StoredSettings], None],
    audit: Callable[[StoredSettings, StoredSettings], Iterable[AuditRecord]],
    images: Mapping[str, StoredImage] = NO_IMAGES,
) -> Verb[None]:
    """Store each setting, or remove it for None; `images` are those that settings name by their ID.

    Both functions get what is stored before and after; `check` raises to refuse the change.
    """
    yield from set_value(LOCK_NAME, str(now))  # one change at a time: each is checked against the one before
    before = yield from read_stored_settings()
    after = {name: setting for name, setting in {**before, **changes}.items() if setting is not None}
    check(before, after)
    for name, setting in changes.items():
        yield from put_stored_setting(name, setting, now)
    for name, image in images.items():
        yield from put_image(setting_image_owner(name), image, now)
    yield from add_audit_records(audit(before, after))


def put_stored_setting(name: str, setting: StoredSetting | None, now: int) -> Verb[None]:
    if setting is None:
        yield DROP_SETTING(of=name)
        yield from remove_image(setting_image_owner(name))
    else:
        yield PUT_SETTING(name=name, value=setting.value, sealed=setting.sealed, changed_at=now)
    yield Notification(CHANNEL, name)


class SettingsStorage(SqlStore):
    read_all = cached_read(read_stored_settings)
    change = write(change_stored_settings)
