"""What a file may say about an application (R7)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from gatehouse.kernel.errors import Refused
from gatehouse.permissions.commands.app_schemas import (
    CENTRAL_ROLES,
    refuse_central_role,
    refuse_changed_central,
    role_document,
    schema_document,
)
from gatehouse.permissions.documents import grammar, rules
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.documents.fields import read_members
from gatehouse.permissions.documents.limits import refuse_roles
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rules import ApplicationSchema, ConditionMode, Role, RuleSection, Tree
from gatehouse.provision.document import Document
from gatehouse.provision.file_secrets import FileSecret
from gatehouse.provision.model import Problems
from gatehouse.provision.sections.references import References
from gatehouse.provision.sections.section import Context, read_record

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


# An application's schema and roles as a file gives them, and back (R5, R6).


SCHEMA_ROOTS: Final = ("login", "private_data", "public_data", "secret_data")


def with_rules(
    base: ApplicationModel, entry: ApplicationFileEntry, place: str, problems: Problems, *, prune: bool
) -> ApplicationModel:
    """The model with the schema and roles of the record; raises Malformed."""
    schema = base.schema if entry.schema is UNSET else with_schema_roots(base.schema, entry.schema, f"{place}.schema")
    try:
        refuse_changed_central(base, schema)
    except Malformed as error:
        raise Malformed(f"{place}.schema: {error}") from None
    after = replace(base, schema=schema)
    if entry.roles is not UNSET:
        after = replace(after, roles=wanted_roles(after, entry.roles, f"{place}.roles", problems, prune=prune))
    for role in after.roles.values():
        if schema != base.schema or role != base.roles.get(role.key):
            refuse_invalid_role(after, base.roles.get(role.key), role, f"{place}.roles.{role.name}")
    return after


def with_schema_roots(schema: ApplicationSchema, given: Mapping[str, Any], place: str) -> ApplicationSchema:
    """A root that is absent stays, null empties it."""
    members = read_members(given, place, SCHEMA_ROOTS)
    fields: dict[str, Tree] = {}
    for section in RuleSection:
        if section.value in members:
            fields[section.value] = rules.parse_schema_section(
                members[section] or {}, section, place=f"{place}.{section}"
            )
    if "login" in members:
        fields["login"] = rules.parse_login(members["login"] or {}, place=f"{place}.login")
    if "secret_data" in members:
        fields["secret_data"] = rules.parse_secret(members["secret_data"] or {}, place=f"{place}.secret_data")
    after = replace(schema, **fields)  # type: ignore[arg-type]
    rules.refuse_duplicate_paths(after.private_data, after.public_data, place=place)
    return after


def wanted_roles(
    model: ApplicationModel, given: Mapping[str, Any], place: str, problems: Problems, *, prune: bool
) -> Mapping[str, Role]:
    """Roles the record does not name stay, unless the rest is to go."""
    kept = {key: role for key, role in model.roles.items() if not prune or is_builtin_role(model, key)}
    named: dict[str, Role] = {}
    for name, fields in rules.read_roles(given, place=place).items():
        where = f"{place}.{name}"
        entry = read_record(fields, RoleFileEntry, where, problems)
        if entry is None:
            continue
        role = merge_role(model, name, entry, where)
        if role.key in named:
            raise Malformed(f"{where}: role names must be unique ignoring case")
        named[role.key] = role
    wanted = {**kept, **named}
    refuse_roles(wanted.values(), place=f"{place}: ")
    return wanted


def is_builtin_role(model: ApplicationModel, key: str) -> bool:
    return model.application.is_central and key in CENTRAL_ROLES


def merge_role(model: ApplicationModel, name: str, entry: RoleFileEntry, place: str) -> Role:
    """An absent field keeps, null clears; a name never changes (R5)."""
    base = model.roles.get(name.lower()) or Role(application_id=model.application.application_id, name=name)
    fields: dict[str, Any] = {}
    if entry.description is not UNSET:
        fields["description"] = grammar.check_description(entry.description or "", f"{place}.description")
    if entry.protected is not UNSET:
        fields["protected"] = bool(entry.protected)
    if entry.default is not UNSET:
        fields["default"] = bool(entry.default)
    if entry.condition is not UNSET:
        condition = entry.condition
        fields["condition"] = None if condition is None else parse_condition(condition, place=f"{place}.condition")
    if entry.condition_mode is not UNSET:
        fields["condition_mode"] = entry.condition_mode or ConditionMode.GRANT
    if entry.user_limit is not UNSET:
        fields["user_limit"] = grammar.check_user_limit(entry.user_limit or 0, f"{place}.user_limit")
    if entry.params is not UNSET:
        fields["params"] = ",".join(rules.parse_params(entry.params or "", f"{place}.params"))
    if entry.meta is not UNSET or entry.permissions is not UNSET:
        fields["meta"] = role_meta(entry, place)
    return replace(base, **fields)


def role_meta(entry: RoleFileEntry, place: str) -> Tree:
    if entry.meta is not UNSET and entry.permissions is not UNSET:
        raise Malformed(f"{place}: use either meta or permissions")
    if entry.permissions is not UNSET:
        return rules.parse_meta({"permissions": entry.permissions or []}, place=place)
    return rules.parse_meta(entry.meta or {}, place=f"{place}.meta")


def refuse_invalid_role(model: ApplicationModel, before: Role | None, role: Role, place: str) -> None:
    held = rules.meta_entries(role.meta)
    rules.refuse_collisions(model.schema, held, place=f"{place}.meta", central=model.application.is_central)
    if not role.protected and (protected := rules.protected_rules_in(model.schema, held)):
        names = ", ".join(str(rule) for rule in protected)
        raise Malformed(f"{place}: protected rules are allowed only in protected roles: {names}")
    try:
        refuse_central_role(model, before, role)
    except Refused as error:
        raise Malformed(f"{place}: {error}") from None


def changed_rule_fields(before: ApplicationModel, after: ApplicationModel) -> Sequence[str]:
    """The names of what differs."""
    roots = [f"schema.{root}" for root in SCHEMA_ROOTS if getattr(before.schema, root) != getattr(after.schema, root)]
    keys = sorted(before.roles.keys() | after.roles.keys())
    changed = [key for key in keys if before.roles.get(key) != after.roles.get(key)]
    return [*roots, *(f"roles.{(after.roles.get(key) or before.roles[key]).name}" for key in changed)]


def rules_document(model: ApplicationModel) -> Document:
    """Application 1's own rules and roles come with the program and are not written."""
    schema = schema_document(model.schema)
    if model.application.is_central:
        schema = {root: schema[root] for root in ("login", "secret_data")}
    roles = {
        role.name: {name: value for name, value in role_document(role).items() if name not in ("name", "version")}
        for key, role in sorted(model.roles.items())
        if not is_builtin_role(model, key)
    }
    return {"schema": schema, "roles": roles}
