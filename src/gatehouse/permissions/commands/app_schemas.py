"""An application's schema and roles (interface §4.9, §4.10).

Both are edited together: a rule that becomes protected affects every role that holds it, and a change of a role is
a new version of the schema (R6).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, Details
from gatehouse.audit.recorder import Recorder, describe_changes
from gatehouse.fields.derive import document_values, with_members
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Conflict, Refused
from gatehouse.permissions.commands.applications import refuse_removed
from gatehouse.permissions.commands.drafts import Draft
from gatehouse.permissions.commands.versions import NEW_VERSION, refuse_old_version
from gatehouse.permissions.documents import grammar, rules
from gatehouse.permissions.documents.differences import differences, tally_differences
from gatehouse.permissions.documents.fields import member_or, read_fields
from gatehouse.permissions.documents.limits import refuse_roles
from gatehouse.permissions.documents.object_types import (
    object_types_document,
    parse_object_types,
    refuse_unknown_type_rules,
)
from gatehouse.permissions.documents.rules import SchemaRules, meta_entries, protected_rules_in, schema_rules
from gatehouse.permissions.errors import Malformed, NoRight, ProtectedHeld, RoleNotFound, VersionConflict
from gatehouse.permissions.model import central
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import CHANGEABLE_ROLE_FIELDS, ROLE_FIELDS, ConditionMode, Role
from gatehouse.permissions.model.rules import RuleSection
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open, require_operation
from gatehouse.permissions.rights.rights import CAN_ADMINISTER
from gatehouse.permissions.store import ApplicationStore, EditResult

SCHEMA_ROOTS: Final = frozenset({"login", "objects", "private_data", "public_data", "roles", "secret_data"})
READ_ONLY_MEMBERS: Final = frozenset({"application_id", "version", "updated_at"})  # in answers only
CENTRAL_ROLES: Final = frozenset(role.key for role in central.roles())
ROOT_PARSERS: Final[Mapping[str, Callable[..., object]]] = {
    "login": rules.parse_login,
    **{section.value: partial(rules.parse_schema_section, section=section) for section in RuleSection},
    "secret_data": rules.parse_secret,
    "objects": parse_object_types,
}


class ProtectedRules(Malformed):
    """A public role may hold no protected rule (interface §3); the detail names them."""


class CentralRole(Refused):
    public = "The permissions and conditions of built-in roles cannot be changed."


class RoleStaysProtected(Conflict):
    public = "The role contains protected rules and cannot become a regular role."


class RoleFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a role that saves and files set."""

    description: str | UnsetType | None = UNSET
    protected: bool | UnsetType | None = UNSET
    default: bool | UnsetType | None = UNSET
    condition: dict[str, object] | UnsetType | None = UNSET
    condition_mode: ConditionMode | UnsetType | None = UNSET
    user_limit: int | UnsetType | None = UNSET
    params: str | UnsetType | None = UNSET
    meta: dict[str, object] | UnsetType | None = UNSET
    permissions: list[dict[str, object]] | UnsetType | None = UNSET  # the flat form of meta (R5)


@with_members(lambda: ((name, object, UNSET) for name in Draft.__struct_fields__))
class RoleDraft(RoleFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of a role save, and an entry of `roles` in a schema save."""

    name: str | UnsetType = UNSET
    version: int | UnsetType = UNSET
    users_count: object = UNSET  # in answers only


class SavedSchema(msgspec.Struct, frozen=True, kw_only=True):
    model: ApplicationModel
    warnings: tuple[str, ...] = ()  # what was ignored, by name (R6)


class SchemaCommands(Struct, kw_only=True, eq=False):
    store: ApplicationStore
    recorder: Recorder
    clock: Clock

    async def save(self, actor: Actor, seen: ApplicationModel, members: Mapping[str, object]) -> SavedSchema:
        """Save a schema: a present root is replaced, an absent one stays, null empties it."""
        require_operation(actor.rights, Operation.SCHEMA_SAVE, model_target(seen))
        ignored = tuple(sorted(members.keys() - SCHEMA_ROOTS - READ_ONLY_MEMBERS))
        warnings = [f"{name}: outside the sections of a schema, ignored" for name in ignored]
        if "secret_data" in members and not actor.rights.administers:
            warnings.append("secret_data: not editable here, ignored")
        version = version_of(members)

        def change(state: ApplicationModel) -> EditResult[ApplicationModel]:
            refuse_other_project(state, seen)
            refuse_old_version(version, state.schema.version)
            after = self._apply_roots(actor, state, members)
            known = SchemaRules(after.schema)
            refuse_exposed(state, after, known)
            for role in after.roles.values():
                refuse_colliding(after, role, known)
            return self._edit_result(actor, state, after)

        return SavedSchema(
            model=await self.store.edit_schema(seen.application.application_id, change), warnings=tuple(warnings)
        )

    async def save_role(self, actor: Actor, seen: ApplicationModel, draft: RoleDraft) -> ApplicationModel:
        name = role_name(draft)

        def change(state: ApplicationModel) -> EditResult[ApplicationModel]:
            refuse_other_project(state, seen)
            before = state.roles.get(name.lower())
            refuse_old_version(draft.version, before.version if before else NEW_VERSION)
            after = apply_role_draft(state, before, draft)
            self._refuse_role(actor, state, before, after)
            new = replace(state, roles={**state.roles, after.key: after})
            refuse_roles(new.roles.values())
            return self._edit_result(actor, state, new)

        return await self.store.edit_schema(seen.application.application_id, change)

    async def delete_role(
        self, actor: Actor, seen: ApplicationModel, name: str, version: int | UnsetType = UNSET
    ) -> ApplicationModel:
        key = grammar.check_role_name(name, "data.name").lower()

        def change(state: ApplicationModel) -> EditResult[ApplicationModel]:
            refuse_other_project(state, seen)
            before = state.roles.get(key)
            self._refuse_role(actor, state, before, None)
            if before is None:
                raise RoleNotFound
            refuse_old_version(version, before.version)
            new = replace(state, roles={other: role for other, role in state.roles.items() if other != key})
            return self._edit_result(actor, state, new)

        return await self.store.edit_schema(seen.application.application_id, change)

    def _apply_roots(self, actor: Actor, state: ApplicationModel, members: Mapping[str, object]) -> ApplicationModel:
        hidden = () if actor.rights.administers else ("secret_data",)
        writable = {name: value for name, value in members.items() if name not in hidden}
        schema = replace(apply_schema_roots(state, writable), updated_at=self.clock.now())
        after = replace(state, schema=schema)
        if "roles" in members:
            after = replace(after, roles=self._apply_roles(actor, after, member_or(members, "roles", {})))
            refuse_roles(after.roles.values())
        return after

    def _apply_roles(self, actor: Actor, state: ApplicationModel, document: object) -> Mapping[str, Role]:
        """Return exactly the roles of the object; roles it does not name are deleted (R6)."""
        new: dict[str, Role] = {}
        for name, fields in rules.read_roles(document, place="data.roles").items():
            draft = read_role(fields, name)
            before = state.roles.get(name.lower())
            after = apply_role_draft(state, before, draft)
            if after != before:
                self._refuse_role(actor, state, before, after)
            if after.key in new:
                raise Malformed(f"data.roles.{name}: role names must be unique ignoring case").on_screen("role_names")
            new[after.key] = after
        for key in state.roles.keys() - new.keys():
            self._refuse_role(actor, state, state.roles[key], None)
        return new

    def _refuse_role(self, actor: Actor, state: ApplicationModel, before: Role | None, after: Role | None) -> None:
        """Check rights first, then what the role may hold (interface §3, R6)."""
        where = model_target(state)
        require_operation(actor.rights, Operation.ROLES_SAVE, where)
        if state.application.is_central and not actor.rights.administers:
            raise NoRight("roles of application 1 can grant access to everything")
        if not is_open(actor.rights, Operation.SCHEMA_SAVE, where):
            for role in (before, after):
                if role is not None and (role.protected or role.is_default):
                    raise NoRight(f"role {role.name} needs canModifySchema")
        if after is None:
            refuse_central_role(state, before, None)
        else:
            refuse_role(state, before, after, place=f"role {after.name}")

    def _edit_result(
        self, actor: Actor, before: ApplicationModel, after: ApplicationModel
    ) -> EditResult[ApplicationModel]:
        return EditResult(after, self._records(actor, before, after), tally_differences(differences(before, after)))

    def _records(self, actor: Actor, before: ApplicationModel, after: ApplicationModel) -> Sequence[AuditRecord]:
        subject = f"application {before.application.application_id}"
        # A save that changes nothing is recorded too: it makes a new version (interface §9).
        changes = describe_rule_changes(before, after) or [(AuditEvent.SCHEMA_SAVED, {})]
        return [
            self.recorder.record(event, actor.origin, subject=subject, details=details) for event, details in changes
        ]


def model_target(model: ApplicationModel) -> GuardTarget:
    return GuardTarget(application_id=model.application.application_id, project_id=model.application.project_id)


def refuse_other_project(state: ApplicationModel, seen: ApplicationModel) -> None:
    """Refuse an application that moved or was removed since rights were checked."""
    if (state.application.project_id, state.application.removed) != (
        seen.application.project_id,
        seen.application.removed,
    ):
        raise VersionConflict
    refuse_removed(state.application)


def apply_schema_roots(
    model: ApplicationModel, members: Mapping[str, object], place: str = "data"
) -> ApplicationSchema:
    """Return the schema with the present roots; an absent one stays, null empties it. Raises Malformed."""
    read: dict[str, object] = {}
    for root, parse_root in ROOT_PARSERS.items():
        if root in members:
            read[root] = parse_root(member_or(members, root, {}), place=f"{place}.{root}")
    after = replace(model.schema, **read)
    rules.refuse_duplicate_paths(after.private_data, after.public_data, place=place)
    refuse_unknown_type_rules(after, place)
    refuse_changed_central(model, after, place)
    return after


def version_of(members: Mapping[str, object]) -> int | UnsetType:
    version = members.get("version", UNSET)
    if version is UNSET:
        return UNSET
    if isinstance(version, bool) or not isinstance(version, int):
        raise Malformed("data.version: must be an integer").on_screen("integer")
    return version


def role_name(draft: RoleDraft) -> str:
    if draft.name is UNSET:
        raise Malformed("data.name: required").on_screen("required")
    return grammar.check_role_name(draft.name, "data.name")


def read_role(fields: object, name: str) -> RoleDraft:
    place = f"data.roles.{name}"
    try:
        draft = msgspec.convert(fields, RoleDraft, strict=True)
    except msgspec.ValidationError as error:
        raise Malformed(f"{place}: {error}") from None
    if draft.name not in (UNSET, name):
        raise Malformed(f"{place}.name: does not match the key").on_screen("key_mismatch")
    return msgspec.structs.replace(draft, name=grammar.check_role_name(name, place))


def apply_role_draft(state: ApplicationModel, before: Role | None, draft: RoleDraft, place: str = "") -> Role:
    """The role as it will be: an absent field stays, null clears it (R6). Its name never changes.

    `place` is what an error puts before the name of a field.
    """
    place = place or f"role {draft.name}: "
    base = before or Role(application_id=state.application.application_id, name=role_name(draft))
    return read_fields(base, with_meta(draft, f"{place}meta"), CHANGEABLE_ROLE_FIELDS, place)


def with_meta(draft: RoleDraft, place: str) -> RoleDraft:
    """Return the draft with `permissions`, the flat form of `meta`, in `meta`. Raises Malformed."""
    if draft.permissions is UNSET:
        return draft
    if draft.meta is not UNSET:
        raise Malformed(f"{place}: use either meta or permissions")
    return msgspec.structs.replace(draft, meta={"permissions": draft.permissions or []})


def refuse_role(model: ApplicationModel, before: Role | None, after: Role, *, place: str) -> None:
    """Check what a role of the model may hold (interface §3).

    Raises CentralRole, ProtectedRules, RoleStaysProtected.
    """
    refuse_central_role(model, before, after)
    protected_rules = protected_rules_in(model.schema, meta_entries(after.meta))
    if protected_rules and not after.protected:
        names = ", ".join(str(rule) for rule in protected_rules)
        if before is not None and before.protected:
            raise RoleStaysProtected(f"role {after.name} contains {names}")
        raise ProtectedRules(f"{place}: protected rules are allowed only in protected roles: {names}").on_screen(
            "protected_rules", names=names
        )
    refuse_colliding(model, after, place=place)


def refuse_colliding(
    model: ApplicationModel, role: Role, known: SchemaRules | None = None, *, place: str = ""
) -> None:
    """Refuse rules that conflict with a rule of the schema; other unknown rules are allowed (R5)."""
    rules.refuse_collisions(
        known or model.schema,
        meta_entries(role.meta),
        place=place or f"role {role.name}",
        central=model.application.is_central,
    )


def refuse_exposed(before: ApplicationModel, after: ApplicationModel, known: SchemaRules) -> None:
    """Refuse a rule that becomes protected while public roles hold it; the error names the roles (R5)."""
    holders = [
        role.name
        for role in after.roles.values()
        if not role.protected and protected_rules_in(known, meta_entries(role.meta))
    ]
    if holders and before.schema != after.schema:
        raise ProtectedHeld(
            f"Public roles contain a rule that would become protected: {', '.join(sorted(holders))}"
        ).on_screen("protected_held", names=", ".join(sorted(holders)))


def refuse_changed_central(before: ApplicationModel, schema: ApplicationSchema, place: str) -> None:
    """Refuse changes to the built-in rules of application 1, except their descriptions."""
    if not before.application.is_central:
        return
    known = schema_rules(before.schema.private_data, before.schema.public_data)
    wanted = schema_rules(schema.private_data, schema.public_data)
    same = known.keys() == wanted.keys() and all(
        (leaf.value, leaf.protected) == (wanted[rule].value, wanted[rule].protected) for rule, leaf in known.items()
    )
    if not same or schema.objects:
        raise Malformed(f"{place}: application 1: its rules cannot be changed").on_screen("central_rules")


def refuse_central_role(state: ApplicationModel, before: Role | None, after: Role | None) -> None:
    """Refuse changes to the grants of built-in roles of application 1, and any role that denies can_administer."""
    if not state.application.is_central:
        return
    built_in = before if before is not None and before.key in CENTRAL_ROLES else None
    if built_in is not None and (after is None or role_effect(after) != role_effect(built_in)):
        raise CentralRole
    denied = None if after is None else meta_entries(after.meta).get(CAN_ADMINISTER)
    if denied is not None and not denied.value:
        raise Malformed("application 1: no role can deny can_administer").on_screen("central_deny")


def role_effect(role: Role) -> tuple[object, ...]:
    """What a role grants, and to whom."""
    condition = None if role.condition is None else role.condition.document
    return meta_entries(role.meta), role.protected, role.default, condition, role.condition_mode


def role_event(role: Role | None) -> AuditEvent:
    if role is None:
        return AuditEvent.ROLE_REMOVED
    return AuditEvent.DEFAULT_ROLE_SAVED if role.is_default else AuditEvent.ROLE_SAVED


def describe_rule_changes(before: ApplicationModel, after: ApplicationModel) -> list[tuple[AuditEvent, Details]]:
    """Events and details for the audit log about a change of schema and roles."""
    old, new = schema_document(before.schema), schema_document(after.schema)
    events: list[tuple[AuditEvent, Details]] = []
    if old != new:
        events.append((AuditEvent.SCHEMA_SAVED, describe_changes(old, new)))
    for key in sorted(before.roles.keys() | after.roles.keys()):
        was, role = before.roles.get(key), after.roles.get(key)
        if was != role:
            details = {"role": key, **describe_changes(role_audit_fields(was), role_audit_fields(role))}
            events.append((role_event(role), details))
    return events


def schema_document(schema: ApplicationSchema) -> dict[str, object]:
    return {
        "login": schema.login,
        "private_data": schema.private_data,
        "public_data": schema.public_data,
        "secret_data": schema.secret_data,
        "objects": object_types_document(schema.objects),
    }


def role_document(role: Role) -> dict[str, object]:
    """A role as in answers, without users_count (R6)."""
    return document_values(role, ROLE_FIELDS)


def role_audit_fields(role: Role | None) -> dict[str, object]:
    return {} if role is None else {name: value for name, value in role_document(role).items() if name != "version"}


# Schema and roles as one document, the answer of meta/schema (interface §4.10).


def full_schema_document(model: ApplicationModel) -> dict[str, object]:
    roles = sorted(model.roles.values(), key=lambda role: role.key)
    return {
        "application_id": model.application.application_id,
        **schema_document(model.schema),
        "roles": {role.name: role_document(role) for role in roles},
        "version": model.schema.version,
        "updated_at": model.schema.updated_at,
    }
