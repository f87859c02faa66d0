"""An application in a file: its fields, schema and roles (R7)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import Details
from gatehouse.permissions.commands.app_schemas import (
    CENTRAL_ROLES,
    RoleDraft,
    RoleFields,
    apply_role_draft,
    apply_schema_roots,
    refuse_role,
    role_document,
    schema_document,
)
from gatehouse.permissions.commands.applications import ApplicationDraft, CentralStays, apply_application_draft
from gatehouse.permissions.documents import grammar, rules
from gatehouse.permissions.documents.fields import read_members
from gatehouse.permissions.documents.limits import refuse_roles
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.provision.document import Document
from gatehouse.provision.file_secrets import FileSecret
from gatehouse.provision.model import AddApplication, AuditNote, Change, Problems, RecordKind, Write
from gatehouse.provision.sections.references import References, refusals_at
from gatehouse.provision.sections.section import Context, Edit, read_record

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
    protected_sites: JsonObject | UnsetType | None = UNSET
    api: JsonObject | UnsetType | None = UNSET
    logo_uri: str | UnsetType | None = UNSET
    schema: JsonObject | UnsetType = UNSET
    roles: JsonObject | UnsetType = UNSET
    access_keys: tuple[AccessKeyFileEntry, ...] | UnsetType = UNSET
    public_keys: tuple[str, ...] | UnsetType = UNSET
    users: JsonObject | UnsetType = UNSET


ApplicationEdit = Edit[ApplicationFileEntry, ApplicationModel]
APPLICATION: Final[RecordKind[Application]] = RecordKind(
    "application",
    name_of=lambda application: str(application.application_id),
    subject_of=lambda application: f"application {application.application_id}",
)


def application_addition(
    model: ApplicationModel, *writes: Write, notes: Sequence[AuditNote] = (), secret: str | None = None
) -> Change:
    """Its changes with further writes and notes."""
    application = model.application
    details: Details = {"name": application.name, "project_id": application.project_id}
    created = AuditNote(event=AuditEvent.APPLICATION_CREATED, details=details)
    return APPLICATION.addition(application, AddApplication(model), *writes, notes=[created, *notes], secret=secret)


def merge_application(
    entry: ApplicationFileEntry, base: Application, references: References, context: Context, place: str
) -> Application:
    """The application with the fields of the entry, except keys and service_meta. Raises Malformed."""
    project_id = entry.project_id
    if project_id is not UNSET and project_id is not None:
        project_id = references.project(project_id, f"{place}.project_id").project.project_id
    draft = ApplicationDraft(
        name=entry.name,
        description=entry.description,
        project_id=project_id,
        settings=entry.settings,
        protected_sites=entry.protected_sites,
        api=entry.api,
    )
    after = apply_application_draft(base, draft, context.reachable, place, reserved=context.reserved)
    if base.is_central and after.project_id is not None:
        raise Malformed(f"{place}.project_id: {CentralStays.public}")
    return after


# Schema and roles, read and exported (R5, R6).


SCHEMA_ROOTS: Final = ("login", "private_data", "public_data", "secret_data", "objects")


def with_rules(
    base: ApplicationModel, entry: ApplicationFileEntry, place: str, problems: Problems, *, prune: bool
) -> ApplicationModel:
    """The model with the schema and roles of the entry. Raises Malformed."""
    schema = base.schema
    if entry.schema is not UNSET:
        members = read_members(entry.schema, f"{place}.schema", SCHEMA_ROOTS)
        schema = apply_schema_roots(base, members, f"{place}.schema")
    after = replace(base, schema=schema)
    if entry.roles is not UNSET:
        after = replace(after, roles=wanted_roles(after, entry.roles, f"{place}.roles", problems, prune=prune))
    for role in after.roles.values():
        if schema != base.schema or role != base.roles.get(role.key):
            where = f"{place}.roles.{role.name}"
            with refusals_at(where):
                refuse_role(after, base.roles.get(role.key), role, place=where)
    return after


def wanted_roles(
    model: ApplicationModel, given: Mapping[str, Any], place: str, problems: Problems, *, prune: bool
) -> Mapping[str, Role]:
    """Roles that the entry does not name stay, unless they are pruned."""
    kept = {key: role for key, role in model.roles.items() if not prune or is_builtin_role(model, key)}
    named: dict[str, Role] = {}
    for name, fields in rules.read_roles(given, place=place).items():
        where = f"{place}.{name}"
        entry = read_record(fields, RoleFields, where, problems)
        if entry is None:
            continue
        draft = RoleDraft(name=name, **msgspec.structs.asdict(entry))
        role = apply_role_draft(model, model.roles.get(name.lower()), draft, f"{where}.")
        if role.key in named:
            raise Malformed(f"{where}: role names must be unique ignoring case")
        named[role.key] = role
    wanted = {**kept, **named}
    refuse_roles(wanted.values(), place=f"{place}: ")
    return wanted


def is_builtin_role(model: ApplicationModel, key: str) -> bool:
    return model.application.is_central and key in CENTRAL_ROLES


def changed_rule_fields(before: ApplicationModel, after: ApplicationModel) -> Sequence[str]:
    """Names of what differs."""
    roots = [f"schema.{root}" for root in SCHEMA_ROOTS if getattr(before.schema, root) != getattr(after.schema, root)]
    keys = sorted(before.roles.keys() | after.roles.keys())
    changed = [key for key in keys if before.roles.get(key) != after.roles.get(key)]
    return [*roots, *(f"roles.{(after.roles.get(key) or before.roles[key]).name}" for key in changed)]


def rules_document(model: ApplicationModel) -> Document:
    """The rules and built-in roles of application 1 come with the program and are not exported."""
    schema = schema_document(model.schema)
    if model.application.is_central:
        schema = {root: schema[root] for root in ("login", "secret_data")}
    roles = {
        role.name: {name: value for name, value in role_document(role).items() if name not in ("name", "version")}
        for key, role in sorted(model.roles.items())
        if not is_builtin_role(model, key)
    }
    return {"schema": schema, "roles": roles}
