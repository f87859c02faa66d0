"""A project in a file: its fields, owners and administrators (R7)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import describe_changes
from gatehouse.permissions.commands.projects import ProjectDraft, apply_project_draft, read_domains
from gatehouse.permissions.commands.publishing import ADMINISTRATOR
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.model.facts import NO_HOLDINGS, Assignment, UserRecord
from gatehouse.permissions.model.project import Project, ProjectSettings, settings_document
from gatehouse.permissions.model.rules import Scope
from gatehouse.permissions.rights.granting import PROJECT_OWNER
from gatehouse.provision.document import Document
from gatehouse.provision.model import (
    AddProject,
    AuditNote,
    Change,
    ChangeProject,
    ChangeRecords,
    PermissionState,
    RecordKind,
    Write,
)

Ids = list[Any] | UnsetType | None

ROLE_BY_FIELD: Final = {"owners": PROJECT_OWNER, "administrators": ADMINISTRATOR}
FIELDS: Final = ("title", "description", "aliases", "tags")
PROJECT: Final[RecordKind[Project]] = RecordKind(
    "project",
    name_of=lambda project: project.project_id,
    subject_of=lambda project: f"project {project.project_id}",
)


class ProjectFileEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    owners: Ids = UNSET
    administrators: Ids = UNSET
    aliases: Ids = UNSET
    tags: Ids = UNSET
    settings: dict[str, Any] | UnsetType | None = UNSET
    author: str | UnsetType = UNSET  # this and the next are read for a new project only
    application_id: Annotated[int, Meta(ge=1)] | UnsetType | None = UNSET


def possible_project_ids(entry: ProjectFileEntry) -> frozenset[str]:
    """Ids under which the project may be stored: its own, or the one made from its title."""
    names = {entry.id} if entry.id is not UNSET else set()
    return frozenset(names | ({grammar.project_id_of(entry.title)} if entry.title is not UNSET else set()))


def stored_project(entry: ProjectFileEntry, permissions: PermissionState) -> Project | None:
    """By id or alias if the entry has one, else by title, else by the id made from the title."""
    if entry.id is not UNSET:
        found = permissions.project(entry.id)
        return None if found is None else found.project
    if entry.title is UNSET:
        return None
    key = grammar.project_id_of(entry.title)
    titled = (model.project for model in permissions.projects.values() if model.project.title_key == key)
    by_id = permissions.projects.get(key)
    return next(titled, None if by_id is None else by_id.project)


def merge_project(entry: ProjectFileEntry, base: Project, place: str) -> Project:
    """The project as it will be, but for its services, which may name later groups and roles. Raises Malformed."""
    settings: ProjectSettings | UnsetType = UNSET
    if entry.settings is not UNSET:
        _, domains = read_domains(entry.settings or {}, f"{place}.settings")
        settings = replace(base.settings, allowed_domains=domains)
    draft = ProjectDraft(id=base.project_id, title=entry.title, description=entry.description, aliases=entry.aliases)
    after = apply_project_draft(base, draft, settings, place)
    if entry.tags is not UNSET:
        after = replace(after, tags=grammar.check_tags(entry.tags or (), f"{place}.tags"))
    return after


def role_holders(permissions: PermissionState, project_id: str, role: str, now: int) -> tuple[str, ...]:
    """People who hold the role in the project now, by id; not service accounts, which have their own section."""
    found = {
        record.user_id
        for (number, user_id), record in permissions.records.items()
        if number == CENTRAL_APPLICATION and user_id not in permissions.service_accounts
        if holds_role(record, Scope(project_id), role, now)
    }
    return tuple(sorted(found, key=lambda user_id: (len(user_id), user_id)))


def holds_role(record: UserRecord, scope: Scope, role: str, now: int) -> bool:
    held = record.scopes.get(scope)
    return held is not None and any(one.role == role and not one.end.is_past(now) for one in held.roles)


def with_role_holders(
    records: dict[str, UserRecord], scope: Scope, role: str, wanted: Sequence[str], now: int
) -> dict[str, UserRecord]:
    """Give the role to these users and remove it from others; an assignment that ends keeps its end."""
    changed = dict(records)
    for user_id, record in records.items():
        if holds_role(record, scope, role, now) != (user_id in wanted):
            changed[user_id] = with_role_set(record, scope, role, gives=user_id in wanted)
    return changed


def with_role_set(record: UserRecord, scope: Scope, role: str, *, gives: bool) -> UserRecord:
    held = record.scopes.get(scope)
    kept = tuple(one for one in (() if held is None else held.roles) if one.role != role)
    roles = (*kept, Assignment(role=role)) if gives else kept
    return record.with_holdings(scope, replace(held or NO_HOLDINGS, roles=roles))


# The changes of a project with their audit notes, and its export.


def record_changes(before: Mapping[str, UserRecord], after_all: Mapping[str, UserRecord]) -> ChangeRecords | None:
    touched = [user_id for user_id in sorted(before) if before[user_id] != after_all[user_id]]
    if not touched:
        return None
    return ChangeRecords(
        tuple(before[user_id] for user_id in touched), tuple(after_all[user_id] for user_id in touched)
    )


def project_addition(project: Project, people: Mapping[str, ChangeRecords]) -> Change:
    published = AuditNote(event=AuditEvent.PROJECT_PUBLISHED, details={"title": project.title})
    notes = [published, *people_notes(people, project)]
    return PROJECT.addition(project, AddProject(project), *people.values(), notes=notes)


def project_change(project: Project, before: Project, people: Mapping[str, ChangeRecords]) -> Change | None:
    fields = [name for name in FIELDS if getattr(before, name) != getattr(project, name)]
    if before.settings != project.settings:
        fields.append("settings.allowed_domains")
    writes: list[Write] = [ChangeProject(before, project)] if fields else []
    details = describe_changes(audited_project(before), audited_project(project))
    notes = [AuditNote(event=AuditEvent.PROJECT_CHANGED, details=details)] if fields else []
    return PROJECT.change(
        project,
        [*fields, *people],
        [*writes, *people.values()],
        notes=[*notes, *people_notes(people, project)],
    )


def people_notes(people: Mapping[str, ChangeRecords], project: Project) -> list[AuditNote]:
    return [
        AuditNote(
            event=AuditEvent.USER_SCHEMA_SAVED,
            subject=record.user_id,
            details={"application_id": CENTRAL_APPLICATION, "project_id": project.project_id, "field": name},
        )
        for name, step in people.items()
        for record in step.after
    ]


def project_removal(project: Project) -> Change:
    note = AuditNote(event=AuditEvent.PROJECT_REMOVED)
    return PROJECT.removal(project, ChangeProject(project, replace(project, removed=True)), note)


def audited_project(project: Project) -> Mapping[str, object]:
    return {
        **{name: getattr(project, name) for name in FIELDS},
        "allowed_domains": project.settings.allowed_domains,
    }


def project_document(project: Project, permissions: PermissionState, now: int) -> Document:
    return {
        "id": project.project_id,
        "title": project.title,
        "description": project.description,
        **{
            name: list(role_holders(permissions, project.project_id, role, now))
            for name, role in ROLE_BY_FIELD.items()
        },
        "aliases": list(project.aliases),
        "tags": list(project.tags),
        "settings": settings_document(project.settings),
        "author": project.author,
        **({} if project.application_id is None else {"application_id": project.application_id}),
    }
