"""The changes of a project, as a plan tells them and the audit log keeps them; and a project as a file writes it."""

from collections.abc import Mapping
from dataclasses import replace

from gatehouse.audit.differences import describe_changes
from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.commands.projects import settings_document
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.project import Project
from gatehouse.permissions.model.user_record import UserRecord
from gatehouse.provision.document import Document
from gatehouse.provision.model import (
    Action,
    AddApplication,
    AddProject,
    AuditNote,
    Change,
    ChangeProject,
    ChangeRecords,
    PermissionState,
    Write,
)
from gatehouse.provision.sections.project_entry import FIELDS, ROLE_BY_FIELD, FoundProject, role_holders


def record_changes(before: Mapping[str, UserRecord], after_all: Mapping[str, UserRecord]) -> ChangeRecords | None:
    touched = [user_id for user_id in sorted(before) if before[user_id] != after_all[user_id]]
    if not touched:
        return None
    return ChangeRecords(
        tuple(before[user_id] for user_id in touched), tuple(after_all[user_id] for user_id in touched)
    )


def project_addition(project: Project, people: Mapping[str, ChangeRecords]) -> Change:
    return Change(
        action=Action.ADD,
        kind="project",
        name=project.project_id,
        write=AddProject(project),
        further_writes=tuple(people.values()),
        subject=f"project {project.project_id}",
        notes=(
            AuditNote(event=AuditEvent.PROJECT_PUBLISHED, details={"title": project.title}),
            *people_notes(people, project),
        ),
    )


def project_change(found: FoundProject, before: Project, people: Mapping[str, ChangeRecords]) -> list[Change]:
    """One change, or none."""
    project = found.after
    fields = [name for name in FIELDS if getattr(before, name) != getattr(project, name)]
    if before.settings != project.settings:
        fields.append("settings.allowed_domains")
    acts: list[Write] = [ChangeProject(before, project)] if fields else []
    acts += people.values()
    if not acts:
        return []
    note = AuditNote(
        event=AuditEvent.PROJECT_CHANGED, details=describe_changes(audited_project(before), audited_project(project))
    )
    return [
        Change(
            action=Action.CHANGE,
            kind="project",
            name=project.project_id,
            fields=(*fields, *people),
            write=acts[0],
            further_writes=tuple(acts[1:]),
            subject=f"project {project.project_id}",
            notes=(*([note] if fields else []), *people_notes(people, project)),
        )
    ]


def people_notes(people: Mapping[str, ChangeRecords], project: Project) -> list[AuditNote]:
    return [
        AuditNote(
            event=AuditEvent.USER_SCHEMA_SAVED,
            subject=record.user_id,
            details={"application_id": CENTRAL_ID, "project_id": project.project_id, "field": name},
        )
        for name, step in people.items()
        for record in step.after
    ]


def project_application_addition(model: ApplicationModel) -> Change:
    application = model.application
    return Change(
        action=Action.ADD,
        kind="application",
        name=str(application.application_id),
        write=AddApplication(model),
        subject=f"application {application.application_id}",
        notes=(
            AuditNote(
                event=AuditEvent.APPLICATION_CREATED,
                details={"name": application.name, "project_id": application.project_id},
            ),
        ),
    )


def project_removal(project: Project) -> Change:
    return Change(
        action=Action.REMOVE,
        kind="project",
        name=project.project_id,
        write=ChangeProject(project, replace(project, removed=True)),
        subject=f"project {project.project_id}",
        notes=(AuditNote(event=AuditEvent.PROJECT_REMOVED),),
    )


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
