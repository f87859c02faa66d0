"""More people for a studio, each with exactly the rights a test is about."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.ids import new_user_id
from gatehouse.permissions.model.rule import NO_END, End
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.model.scope import ROOT, Scope
from gatehouse.permissions.model.user_record import ScopeHoldings
from tests.support.builders import NOW, a_passkey, a_record
from tests.support.permission_builders import holdings_with, set_fields
from tests.support.studio import PROJECT, Person, Studio, create_person
from tests.support.whole_database import read_all_tables

IN_PROJECT: Final = Scope(PROJECT)


def holdings_with_rules(*paths: str, value: bool = True, params: str = "", end: End = NO_END) -> ScopeHoldings:
    """Private rules held directly."""
    leaf: dict[str, object] = {"value": value}
    if params:
        leaf["params"] = params
    if end.expired:
        leaf["expired"] = end.expired
    tree: dict[str, Any] = {}
    for path in paths:
        *way, last = path.split(".")
        node = tree
        for segment in way:
            node = node.setdefault(segment, {})
        node[last] = leaf
    return ScopeHoldings(private_data=tree)


def secret_document(*application: str, **meta: tuple[str, str]) -> dict[str, object]:
    """`secret("canSave", roles=("all", "self"))`: rules of the application; what is read and written of a part."""
    return {
        "application": {rule: {"value": True} for rule in application},
        "meta": {
            part: {"canRead": {"value": reads}, "canWrite": {"value": writes}}
            for part, (reads, writes) in meta.items()
        },
    }


def bearer_headers(token: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **{name.replace("_", "-"): value for name, value in more.items()}}


async def create_person_with(
    studio: Studio,
    scopes: Mapping[Scope, ScopeHoldings] | None = None,
    *,
    secret_data: Tree | None = None,
    application_id: int | None = None,
) -> Person:
    """Someone new with these Central rules and roles, and this secret_data in the shop or another application."""
    found = await create_person(studio.service, new_user_id())
    await write_user_record(studio, found, 1, scopes=scopes or {})
    if secret_data is not None:
        about = studio.shop.application_id if application_id is None else application_id
        await write_user_record(studio, found, about, secret_data=secret_data)
    return found


async def write_user_record(studio: Studio, who: Person, application_id: int, **fields: Any) -> None:
    """Write a record past every check."""
    records = studio.service.services.storage.user_records
    await records.edit_record(application_id, who.user_id, set_fields(**fields), NOW)


async def create_administrator(studio: Studio) -> Person:
    return await create_person_with(studio, {ROOT: holdings_with("administrator")})


async def add_passkey_to(studio: Studio, who: Person) -> Person:
    """The same person, who has a real second factor from now on."""
    passkey = a_passkey(user_id=who.user_id, credential_id=who.user_id.encode())
    await studio.service.services.storage.passkeys.add_passkey(passkey, (), a_record(AuditEvent.FACTOR_ADDED), ())
    return who


async def audit_records(studio: Studio, event: AuditEvent) -> Sequence[Any]:
    """What the audit log has under this event, oldest first."""
    rows = await read_all_tables(studio.service.services.storage)
    return [row for row in rows["audit_events"] if row.event == event.value]
