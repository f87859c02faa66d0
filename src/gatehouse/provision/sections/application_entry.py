"""What a file may say about an application (R7)."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import ConditionMode
from gatehouse.provision.given import FileSecret
from gatehouse.provision.sections.references import References
from gatehouse.provision.sections.section import Context

JsonObject = dict[str, Any]
SERVICE_KEYS: Final = ("private_key", "public_key")


class AccessKeyFileEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    comment: str = ""
    hash: FileSecret | UnsetType = UNSET


class ApplicationFileEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    application_id: Annotated[int, Meta(ge=1, le=grammar.MAX_ID)] | UnsetType = UNSET
    name: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    project_id: str | UnsetType | None = UNSET
    settings: JsonObject | UnsetType | None = UNSET
    service_meta: JsonObject | UnsetType | None = UNSET
    schema: JsonObject | UnsetType = UNSET
    roles: JsonObject | UnsetType = UNSET
    access_keys: tuple[AccessKeyFileEntry, ...] | UnsetType = UNSET
    public_keys: tuple[str, ...] | UnsetType = UNSET
    users: JsonObject | UnsetType = UNSET


class RoleFileEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    description: str | UnsetType | None = UNSET
    protected: bool | UnsetType | None = UNSET
    default: bool | UnsetType | None = UNSET
    condition: JsonObject | UnsetType | None = UNSET
    condition_mode: ConditionMode | UnsetType | None = UNSET
    user_limit: int | UnsetType | None = UNSET
    params: str | UnsetType | None = UNSET
    meta: JsonObject | UnsetType | None = UNSET
    permissions: list[Any] | UnsetType | None = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundApplication:
    """An entry, the application it is about, and what becomes of that."""

    place: str
    entry: ApplicationFileEntry
    before: ApplicationModel | None  # None: to be made
    after: ApplicationModel

    @property
    def application_id(self) -> int:
        return self.after.application.application_id


def merge_application(
    entry: ApplicationFileEntry, base: Application, references: References, context: Context, place: str
) -> Application:
    """The application as it will be, keys and service metadata apart; raises Malformed."""
    after = base
    if entry.name is not UNSET:
        after = replace(after, name=grammar.check_name(entry.name, f"{place}.name"))
    if entry.description is not UNSET:
        text = grammar.check_description(entry.description or "", f"{place}.description")
        after = replace(after, description=text)
    if entry.project_id is not UNSET:
        after = replace(after, project_id=resolve_project_id(entry.project_id, references, f"{place}.project_id"))
    if entry.settings is not UNSET:
        settings = grammar.check_application_settings(entry.settings or {}, f"{place}.settings", context.reachable)
        after = replace(after, settings=settings)
    if base.is_central and after.project_id is not None:
        raise Malformed(f"{place}.project_id: application 1 is the service itself and cannot belong to a project")
    return after


def resolve_project_id(name: str | None, references: References, place: str) -> str | None:
    return None if name is None else references.project(name, place).project.project_id
