"""Projects: find, get, save, delete, publish.

Callers without the right do not learn whether one exists (R6, PA-13).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, Details
from gatehouse.audit.recorder import Recorder, describe_changes
from gatehouse.fields.derive import document_values
from gatehouse.kernel.errors import Conflict
from gatehouse.permissions.commands.drafts import Draft, TagsDraft
from gatehouse.permissions.commands.versions import refuse_old_version
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.fields import member_or, read_fields, read_list, read_members
from gatehouse.permissions.errors import Malformed, NoRight, ProjectNotFound
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel
from gatehouse.permissions.model.project import (
    SAVED_PROJECT_FIELDS,
    GrantAction,
    GroupGrant,
    Project,
    ProjectSettings,
    settings_document,
)
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.permissions.rights.rights import Rights
from gatehouse.permissions.store import EditResult, PermissionStore, ProjectStore


async def find_project(projects: ProjectStore, rights: Rights, name: str) -> ProjectModel:
    """A project by id or alias. Raises ProjectNotFound for administrators, NoRight for others."""
    try:
        return await projects.project(name)
    except ProjectNotFound:
        if rights.administers:
            raise
        raise NoRight(f"no project {name}") from None


async def find_live_project(projects: ProjectStore, rights: Rights, name: str) -> ProjectModel:
    """The same, but refuse a removed project: nothing new is added to it."""
    project = await find_project(projects, rights, name)
    if project.project.removed:
        raise ProjectNotFound(f"project {project.project.project_id} was removed") if rights.administers else NoRight
    return project


# Projects and the services connected to them (interface §4.6, R5).


ALLOWED_DOMAINS: Final = "allowed_domains"  # of the settings
MAX_SERVICES: Final = 200
MAX_GRANTS: Final = 200  # per service
MAX_ROLES_PER_GRANT: Final = 100  # per grant


class ProjectRemoved(Conflict):
    public = "The project was removed."


class ProjectDraft(Draft, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of a project save."""

    id: str
    title: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    aliases: list[object] | UnsetType | None = UNSET
    settings: dict[str, object] | UnsetType | None = UNSET


class ProjectCommands(Struct, kw_only=True, eq=False):
    store: ProjectStore
    models: PermissionStore
    recorder: Recorder

    async def get(self, actor: Actor, name: str) -> Project:
        return (await self._find_allowed_project(actor, name, Operation.PROJECT_GET)).project

    async def save(self, actor: Actor, draft: ProjectDraft) -> Project:
        seen = await self._find_allowed_project(actor, draft.id, Operation.PROJECT_SAVE)
        settings = UNSET if draft.settings is UNSET else await self._read_settings(seen, draft.settings or {})

        def change(state: ProjectModel) -> EditResult[ProjectModel]:
            if state.project.removed:
                raise ProjectRemoved
            refuse_old_version(draft.version, state.project.version)
            after = apply_project_draft(state.project, draft, settings)
            refuse_foreign_groups(state, after.settings)
            details = describe_changes(project_audit_fields(state.project), project_audit_fields(after))
            record = self._record(AuditEvent.PROJECT_CHANGED, actor, after, details)
            return EditResult(replace(state, project=after), (record,))

        return (await self.store.edit_project(seen.project.project_id, change)).project

    async def save_fields(
        self, actor: Actor, project: Project, values: Mapping[str, Any], version: int | UnsetType = UNSET
    ) -> Project:
        """Save fields of the project by name, as the requests of each have them."""
        rest = dict(values)
        tags = TagsDraft(id=project.project_id, tags=rest.pop("tags", project.tags))
        is_tagged = tags.checked_tags != project.tags
        if ALLOWED_DOMAINS in rest:
            settings = rest.get("settings", settings_document(project.settings)) or {}
            rest["settings"] = {**settings, ALLOWED_DOMAINS: rest.pop(ALLOWED_DOMAINS)}
        if rest:
            project = await self.save(actor, ProjectDraft(id=project.project_id, version=version, **rest))
        return await self.save_tags(actor, tags) if is_tagged else project

    async def delete(self, actor: Actor, name: str, version: int | UnsetType = UNSET) -> None:
        seen = await self._find_allowed_project(actor, name, Operation.PROJECT_DELETE)

        def change(state: ProjectModel) -> EditResult[ProjectModel]:
            if state.project.removed:
                return EditResult(state, ())
            refuse_old_version(version, state.project.version)
            record = self._record(AuditEvent.PROJECT_REMOVED, actor, state.project, {})
            return EditResult(replace(state, project=replace(state.project, removed=True)), (record,))

        await self.store.edit_project(seen.project.project_id, change)

    async def save_tags(self, actor: Actor, draft: TagsDraft) -> Project:
        seen = await self._find_allowed_project(actor, draft.id, Operation.PROJECT_TAGS)
        wanted = draft.checked_tags

        def change(state: ProjectModel) -> EditResult[ProjectModel]:
            if state.project.removed:
                raise ProjectRemoved
            refuse_old_version(draft.version, state.project.version)
            details = describe_changes({"tags": list(state.project.tags)}, {"tags": list(wanted)})
            record = self._record(AuditEvent.PROJECT_TAGGED, actor, state.project, details)
            return EditResult(replace(state, project=replace(state.project, tags=wanted)), (record,))

        return (await self.store.edit_project(seen.project.project_id, change)).project

    async def _find_allowed_project(self, actor: Actor, name: str, operation: Operation) -> ProjectModel:
        model = await find_project(self.store, actor.rights, grammar.check_project_id(name, "data.id"))
        require_operation(actor.rights, operation, GuardTarget(project_id=model.project.project_id))
        return model

    async def _read_settings(self, seen: ProjectModel, document: Mapping[str, object]) -> ProjectSettings:
        place = "data.settings"
        members, domains = read_domains(document, place)
        services = read_services(member_or(members, "services", {}), f"{place}.services")
        stored_services = seen.project.settings.services
        fresh = {number: grants for number, grants in services.items() if stored_services.get(number) != grants}
        models = await self.models.application_models(fresh)
        for application_id, grants in fresh.items():  # stored ones can be saved back unchanged
            where = f"{place}.services.{application_id}"
            refuse_service(seen.project, application_id, models.get(application_id), grants, where)
        return ProjectSettings(allowed_domains=domains, services=services)

    def _record(self, event: AuditEvent, actor: Actor, project: Project, details: Details) -> AuditRecord:
        return self.recorder.record(event, actor.origin, subject=f"project {project.project_id}", details=details)


def apply_project_draft(
    project: Project, draft: ProjectDraft, settings: ProjectSettings | UnsetType, place: str = "data"
) -> Project:
    """Return the project with the fields of the draft, and these settings. Raises Malformed."""
    texts = msgspec.structs.replace(draft, settings=UNSET)
    after = read_fields(project, texts, SAVED_PROJECT_FIELDS, f"{place}.")
    return after if settings is UNSET else replace(after, settings=settings)


def read_domains(document: Mapping[str, object], place: str) -> tuple[Mapping[str, object], tuple[str, ...]]:
    """The members of the settings, and the allowed domains among them. Raises Malformed."""
    members = read_members(document, place, ("allowed_domains", "services"))
    domains = member_or(members, "allowed_domains", [])
    return members, grammar.parse_allowed_domains(domains, f"{place}.allowed_domains")


def read_services(document: object, place: str) -> Mapping[int, tuple[GroupGrant, ...]]:
    members = read_members(document, place)
    if len(members) > MAX_SERVICES:
        raise Malformed(f"{place}: at most {MAX_SERVICES} services").on_screen(
            "services_most", max_services=MAX_SERVICES
        )
    return {
        grammar.parse_application_id(name, place): read_grants(entry, f"{place}.{name}")
        for name, entry in members.items()
    }


def read_grants(document: object, place: str) -> tuple[GroupGrant, ...]:
    groups = read_members(document, place, ("groups",)).get("groups", [])
    return tuple(
        read_grant(grant, f"{place}.groups[{index}]")
        for index, grant in enumerate(read_list(groups, f"{place}.groups", MAX_GRANTS))
    )


def read_grant(document: object, place: str) -> GroupGrant:
    members = read_members(document, place, ("group_id", "roles", "action"))
    action = members.get("action")
    if action not in list(GrantAction):
        raise Malformed(f"{place}.action: must be grant or revoke")
    roles = read_list(members.get("roles"), f"{place}.roles", MAX_ROLES_PER_GRANT)
    names = [grammar.check_role_name(role, f"{place}.roles[{index}]") for index, role in enumerate(roles)]
    return GroupGrant(
        group_id=grammar.check_group_id(members.get("group_id"), f"{place}.group_id"),
        roles=tuple(dict.fromkeys(name.lower() for name in names)),
        action=GrantAction(str(action)),
    )


def refuse_service(
    project: Project,
    application_id: int,
    model: ApplicationModel | None,
    grants: Sequence[GroupGrant],
    place: str,
) -> None:
    """Refuse a service unless it is the project's own application or a published one, never application 1 (R5).

    All cases have the same text, which does not reveal whether the application exists.
    """
    if (
        application_id == CENTRAL_APPLICATION
        or model is None
        or not model.application.is_connectable_to(project.project_id)
    ):
        raise Malformed(f"{place}: not an application that can be connected to this project").on_screen(
            "not_connectable"
        )
    for grant in grants:
        for key in grant.roles:
            role = model.roles.get(key)
            if role is None or role.protected:
                raise Malformed(f"{place}: {key} is not a role that can be granted in a project").on_screen(
                    "not_grantable", key=key
                )


def refuse_foreign_groups(model: ProjectModel, settings: ProjectSettings) -> None:
    """Refuse groups of other projects.

    Called in the transaction of the save, so that a deleted group gets no grant.
    """
    for application_id, grants in settings.services.items():
        for grant in grants:
            if grant.group_id not in model.groups:
                raise Malformed(
                    f"data.settings.services.{application_id}: {grant.group_id} is not a group of this project"
                )


def project_audit_fields(project: Project) -> Mapping[str, object]:
    return document_values(project, SAVED_PROJECT_FIELDS)
