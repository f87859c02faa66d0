"""The services of projects: they name groups and roles, which the same file may bring along."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec import UNSET

from gatehouse.audit.differences import describe_changes
from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.commands.projects import read_services, settings_document
from gatehouse.permissions.documents.fields import member_or, read_members
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.project import GroupGrant, Project
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import Action, AuditNote, Change, ChangeProject, StoredState
from gatehouse.provision.sections.project_entry import ProjectFileEntry, stored_project
from gatehouse.provision.sections.references import References, collect_problems
from gatehouse.provision.sections.section import Context, Located, Options, SectionPlan

ServiceGrants = Mapping[int, tuple[GroupGrant, ...]]


class ProjectServicesStage:
    name = "projects"

    async def plan(
        self,
        entries: Sequence[Located[ProjectFileEntry]],
        state: StoredState,
        context: Context,
        options: Options,  # noqa: ARG002 - a stage's signature
    ) -> SectionPlan:
        problems, changes = Problems(), []
        references = References(state, context.file)
        for placed in entries:
            project = stored_project(placed.entry, state.permissions)
            if project is None or placed.entry.settings is UNSET:
                continue
            with collect_problems(problems):
                wanted = wanted_services(placed, state.permissions.projects[project.project_id], references)
                if wanted != project.settings.services:
                    changes.append(services_change(project, wanted))
        return SectionPlan(changes=tuple(changes), problems=tuple(problems.lines))


def wanted_services(located: Located[ProjectFileEntry], model: ProjectModel, references: References) -> ServiceGrants:
    """What the record says; raises Malformed."""
    settings = located.entry.settings
    place = f"{located.place}.settings.services"
    given = {} if settings is UNSET or settings is None else member_or(settings, "services", {})
    services = read_services(with_group_ids(given, model, references, place), place)
    for number, grants in services.items():
        if model.project.settings.services.get(number) != grants:  # what is there can be written back as it is
            refuse_unusable_service(number, grants, model, references, f"{place}.{number}")
    return services


def with_group_ids(given: object, model: ProjectModel, references: References, place: str) -> object:
    """The same with every group under its id, also those that are named by title."""
    services: dict[str, object] = {}
    for number, service in read_members(given, place).items():
        where = f"{place}.{number}"
        members = read_members(service, where, ("groups",))
        grants = members.get("groups")
        if isinstance(grants, list):
            grants = [
                with_group_id(grant, model, references, f"{where}.groups[{index}]")
                for index, grant in enumerate(grants)
            ]
        services[number] = {} if grants is None else {"groups": grants}
    return services


def with_group_id(grant: object, model: ProjectModel, references: References, place: str) -> object:
    members = read_members(grant, place, ("group_id", "roles", "action"))
    group = references.group(model, members.get("group_id"), f"{place}.group_id")
    return {"action": "grant", **members, "group_id": group.group_id}


def refuse_unusable_service(
    number: int, grants: Sequence[GroupGrant], model: ProjectModel, references: References, place: str
) -> None:
    """Its own or a published one, never application 1; roles that can be held in a project (R5)."""
    project_id, found = model.project.project_id, references.application(number)
    if found is None or number == CENTRAL_ID:
        raise references.missing_error(number, f"{place}: no application {number} that can be connected")
    if found.application.project_id != project_id and not found.application.is_published:
        raise Malformed(f"{place}: the application does not belong to {project_id} and is not published")
    for grant in grants:
        for key in grant.roles:
            role = found.roles.get(key)
            if role is None or role.protected:
                raise Malformed(f"{place}: {key} is not a role that can be granted in a project")


def services_change(project: Project, services: ServiceGrants) -> Change:
    after = replace(project, settings=replace(project.settings, services=services))
    details = describe_changes(settings_document(project.settings), settings_document(after.settings))
    return Change(
        action=Action.CHANGE,
        kind="project",
        name=project.project_id,
        fields=("settings.services",),
        write=ChangeProject(project, after),
        subject=f"project {project.project_id}",
        notes=(AuditNote(event=AuditEvent.PROJECT_CHANGED, details=details),),
    )
