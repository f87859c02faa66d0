"""Re-encrypts every secret under a new master key while the service runs."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import structlog
from msgspec import Struct

from gatehouse.accounts.second_factors.model import totp_sealing_purpose
from gatehouse.app.instance_key import INSTANCE_KEY
from gatehouse.app.nodes import wait_for_key
from gatehouse.app.services import Services
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.head import AUDIT_HEAD_PURPOSE
from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.model import game_options_purpose
from gatehouse.kernel.stored_settings import setting_sealing_purpose
from gatehouse.keys.model import Tampered, WrongMasterKey
from gatehouse.keys.sealing import VERSION, MasterKeys
from gatehouse.mail.model import mail_sealing_purpose
from gatehouse.oauth.client_commands import client_secret_purpose
from gatehouse.oauth.model import SecretKind
from gatehouse.permissions.model.access_key import access_key_purpose
from gatehouse.permissions.model.application import PRIVATE_KEY_PURPOSE
from gatehouse.personal_data.model import answer_sealing_purpose
from gatehouse.storage.audit import AUDIT_HEAD
from gatehouse.storage.database import Storage
from gatehouse.storage.sealed import RewrappedRow, SealedColumn
from gatehouse.storage.statements import Row
from gatehouse.storage.tables.accounts import totp_factors
from gatehouse.storage.tables.gamesessions import game_sessions
from gatehouse.storage.tables.installation import installation, signing_keys, stored_settings
from gatehouse.storage.tables.oauth import client_secrets
from gatehouse.storage.tables.outgoing import outbox
from gatehouse.storage.tables.permissions import access_keys, applications
from gatehouse.storage.tables.personal_data import gdpr_calls
from gatehouse.storage.tables.webhooks import webhooks
from gatehouse.webhooks.model import webhook_secret_purpose

log = structlog.get_logger(__name__)

BATCH: Final = 500
MAX_PASSES: Final = 3  # a node that still seals with the old key adds more secrets meanwhile

# The keys package rewraps these itself: otherwise a rotation might write an old seal back.
SIGNING_KEYS: Final = SealedColumn(
    signing_keys, "sealed_private", purpose=lambda row: f"signing-key:{row.purpose}:{row.alg}:{row.kid}"
)
# All other sealed columns; a new kind of secret adds a line. The instance key is rewrapped last, so that an old
# master key that is removed too early is noticed at the next start.
SEALED_COLUMNS: Final = (
    SealedColumn(
        client_secrets,
        "secret",
        purpose=lambda row: client_secret_purpose(row.client_id),
        where=client_secrets.c.kind == SecretKind.SEALED.value,
    ),
    SealedColumn(totp_factors, "sealed_secret", purpose=lambda row: totp_sealing_purpose(row.user_id)),
    SealedColumn(access_keys, "sealed", purpose=lambda row: access_key_purpose(row.key_id)),
    SealedColumn(applications, "sealed_private_key", purpose=lambda _: PRIVATE_KEY_PURPOSE),
    SealedColumn(game_sessions, "options", purpose=lambda row: game_options_purpose(row.gsid)),
    SealedColumn(outbox, "sealed", purpose=lambda row: mail_sealing_purpose(row.mail_id)),
    SealedColumn(
        gdpr_calls,
        "sealed",
        purpose=lambda row: answer_sealing_purpose(row.request_id, row.position),
        where=gdpr_calls.c.sealed.is_not(None),
    ),
    SealedColumn(
        stored_settings,
        "sealed",
        purpose=lambda row: setting_sealing_purpose(row.name),
        where=stored_settings.c.sealed.is_not(None),
    ),
    SealedColumn(webhooks, "sealed_secret", purpose=lambda row: webhook_secret_purpose(row.webhook_id)),
    SealedColumn(
        webhooks,
        "sealed_old_secret",
        purpose=lambda row: webhook_secret_purpose(row.webhook_id),
        where=webhooks.c.sealed_old_secret.is_not(None),
    ),
    # A sealer may replace it meanwhile; then it is under the primary key.
    SealedColumn(
        installation,
        "value",
        purpose=lambda _: AUDIT_HEAD_PURPOSE,
        where=installation.c.name == AUDIT_HEAD,
        as_text=True,
    ),
    SealedColumn(
        installation,
        "value",
        purpose=lambda _: INSTANCE_KEY,
        where=installation.c.name == INSTANCE_KEY,
        as_text=True,
    ),
)


class RewrapOutcome(Struct, frozen=True, kw_only=True):
    moved: Mapping[str, int]  # by table
    left: Mapping[str, int]  # damaged, or sealed under a key that was not given


async def count_under_old_keys(storage: Storage, masters: MasterKeys) -> dict[str, int]:
    """Return how many secrets of each table are not sealed with the primary key; tables with none are left out."""
    counts: Counter[str] = Counter()
    for place in (SIGNING_KEYS, *SEALED_COLUMNS):  # a table may hold several kinds
        counts[place.name] += await storage.runner.snapshot_read(
            partial(place.count_not_primary, primary_key_prefix(masters))
        )
    return +counts


async def rewrap_all(
    services: Services,
    origin: AuditOrigin,
    progress: Callable[[int], object] = lambda _: None,
    *,
    force: bool = False,
) -> RewrapOutcome:
    """Rewrap everything with the primary master key; safe to stop, to repeat, and while the service runs.

    First every node takes the key over: from then on nothing new is sealed with another. Raises NodesWithoutKey,
    unless `force` is set, when one cannot: it would stop serving.
    """
    key_id, nodes = services.core.masters.primary_id, services.storage.nodes
    entry = services.core.recorder.record(
        AuditEvent.REWRAPPED, origin, subject="master_keys", details={"key": key_id, "forced": force}
    )
    await nodes.begin_rewrap(key_id, entry, force=force)
    services.core.masters.follow(await nodes.master_keys_in_use())
    await wait_for_key(nodes, key_id, services.clock)
    moved: Counter[str] = Counter()
    for _ in range(MAX_PASSES):
        keys = await services.keys.rotation.rewrap_all(origin=origin)
        before = moved.total()
        moved[SIGNING_KEYS.name] += keys
        progress(keys)
        for place in SEALED_COLUMNS:
            moved[place.name] += await rewrap_column(services, place, origin, progress)
        if moved.total() == before:
            break
    await nodes.finish_rewrap(key_id)
    return RewrapOutcome(moved=+moved, left=await count_under_old_keys(services.storage, services.core.masters))


async def rewrap_column(
    services: Services, place: SealedColumn, origin: AuditOrigin, progress: Callable[[int], object]
) -> int:
    count = 0
    last: Row | None = None
    while rows := await services.storage.runner.snapshot_read(
        partial(place.read_page, primary_key_prefix(services.core.masters), last, BATCH)
    ):
        moved = [one for row in rows if (one := rewrap_row(place, row, services.core.masters)) is not None]
        if moved:
            entry = services.core.recorder.record(
                AuditEvent.REWRAPPED, origin, subject=place.name, details={"records": len(moved)}
            )
            await services.storage.runner.write(partial(place.save_rewrapped, moved, entry))
        count += len(moved)
        progress(len(moved))
        last = rows[-1]
    return count


def rewrap_row(place: SealedColumn, row: Row, masters: MasterKeys) -> RewrappedRow | None:
    try:
        return RewrappedRow(row, masters.rewrap(place.sealed_value(row), purpose=place.purpose(row)))
    except (Tampered, WrongMasterKey) as error:
        log.error("cannot be re-encrypted", reason=error.detail)  # noqa: TRY400 - the others are moved all the same
        return None


def primary_key_prefix(masters: MasterKeys) -> bytes:
    """Return the prefix of everything that is sealed with the primary key."""
    return VERSION + bytes.fromhex(masters.primary_id)
