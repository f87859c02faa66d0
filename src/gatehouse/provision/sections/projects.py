"""Projects; and, in a later stage, the services they connect."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import describe_changes
from gatehouse.permissions.commands.projects import read_services, refuse_service
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.fields import member_or, read_members
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import FIRST_GENERATED_ID, Application
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel
from gatehouse.permissions.model.project import GroupGrant, Project, settings_document
from gatehouse.permissions.model.rules import Scope
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.provision.document import Document
from gatehouse.provision.model import (
    AuditNote,
    Change,
    ChangeProject,
    ChangeRecords,
    PermissionState,
    ReadScope,
    StoredState,
)
from gatehouse.provision.sections.application_entry import ApplicationFileEntry, application_addition
from gatehouse.provision.sections.project_entry import (
    PROJECT,
    ROLE_BY_FIELD,
    ProjectFileEntry,
    merge_project,
    possible_project_ids,
    project_addition,
    project_change,
    project_document,
    project_removal,
    record_changes,
    role_holders,
    stored_project,
    with_role_holders,
)
from gatehouse.provision.sections.references import EntryPlanner, References
from gatehouse.provision.sections.section import Context, Edit, Located, PlanStage, Section

ProjectEdit = Edit[ProjectFileEntry, Project]


def project_scope(entries: Sequence[ProjectFileEntry]) -> ReadScope:
    people = frozenset(
        user_id
        for entry in entries
        for given in (entry.owners, entry.administrators)
        if given is not UNSET
        for user_id in given or ()
        if isinstance(user_id, str)
    )
    names = frozenset(name for entry in entries for name in possible_project_ids(entry))
    return ReadScope(permissions=True, user_ids=people, record_users=people, member_projects=names)


def project_documents(state: StoredState, context: Context) -> list[Document]:
    live = [model.project for model in state.permissions.projects.values() if not model.project.removed]
    return [project_document(project, state.permissions, context.now) for project in live]


class ProjectPlanner(EntryPlanner[ProjectFileEntry]):
    def plan_entry(self, located: Located[ProjectFileEntry]) -> list[Change]:
        found = self._resolve(located)
        self.refuse_second_entry(found.after.project_id, "project", located.place)
        self._refuse_taken_names(found)
        people = self._people_changes(found)
        self._permissions = self._permissions.with_project(found.after)
        for step in people.values():
            self._permissions = self._permissions.with_records(step.after)
        if found.before is None:
            return self._additions(found, people)
        return list(filter(None, [project_change(found.after, found.before, people)]))

    def removals(self) -> Iterator[Change]:
        for project_id, model in self._permissions.projects.items():
            if project_id not in self._places and not model.project.removed:
                yield project_removal(model.project)

    def _additions(self, found: ProjectEdit, people: Mapping[str, ChangeRecords]) -> list[Change]:
        model = self._new_application(found)
        if model is None:
            listed = {entry.application_id for entry in self._listed_applications(found)} & {
                found.entry.application_id
            }
            number = next((number for number in listed if isinstance(number, int)), None)
            return [project_addition(replace(found.after, application_id=number), people)]
        number = model.application.application_id
        self._permissions = self._permissions.with_application(model)
        return [
            project_addition(replace(found.after, application_id=number), people),
            application_addition(model),
        ]

    def _resolve(self, located: Located[ProjectFileEntry]) -> ProjectEdit:
        place, entry = located.place, located.entry
        before = stored_project(entry, self._permissions)
        if before is not None and before.removed:
            raise Malformed(f"{place}: the project {before.project_id} was removed; IDs are never reused")
        base = before or self._new_project(entry, place)
        return Edit(place=place, entry=entry, before=before, after=merge_project(entry, base, place))

    def _new_project(self, entry: ProjectFileEntry, place: str) -> Project:
        if entry.title is UNSET:
            raise Malformed(f"{place}: a new project needs a title")
        title = grammar.check_title(entry.title, f"{place}.title")
        given = UNSET if entry.id is UNSET else grammar.check_alias(entry.id, f"{place}.id")
        return Project(
            project_id=grammar.project_id_of(title) if given is UNSET else given,
            title=title,
            author=self._author(entry, place),
            created_at=self._context.now,
        )

    def _author(self, entry: ProjectFileEntry, place: str) -> str:
        if entry.author is not UNSET:
            return grammar.check_user_id(entry.author, f"{place}.author") if entry.author else ""
        owners = () if entry.owners is UNSET else entry.owners or ()
        return grammar.check_user_id(owners[0], f"{place}.owners[0]") if owners else ""

    def _refuse_taken_names(self, found: ProjectEdit) -> None:
        """Ids and aliases of all projects, and the ids made from titles, are one namespace (R5)."""
        own = found.after
        for model in self._permissions.projects.values():
            other = model.project
            if other.project_id == own.project_id:
                continue
            taken = {other.project_id, *other.aliases} & {own.project_id, *own.aliases}
            if taken:
                raise Malformed(f"{found.place}: {min(taken)} is already a name of the project {other.project_id}")
            if other.title_key == own.title_key:
                raise Malformed(f"{found.place}.title: the project {other.project_id} already has this title")
        if own.project_id in own.aliases:
            raise Malformed(f"{found.place}.aliases: {own.project_id} is the ID of the project itself")

    def _people_changes(self, found: ProjectEdit) -> Mapping[str, ChangeRecords]:
        """Changes of the records of owners and administrators, by field."""
        references, project_id = self.references(), found.after.project_id
        changes: dict[str, ChangeRecords] = {}
        permissions = self._permissions
        for name, role in ROLE_BY_FIELD.items():
            given = getattr(found.entry, name)
            if given is UNSET:
                continue
            place = f"{found.place}.{name}"
            wanted = [references.person(one, f"{place}[{index}]") for index, one in enumerate(given or ())]
            had = role_holders(permissions, project_id, role, self._context.now)
            if name == "owners" and had and not wanted:
                raise Malformed(f"{place}: a project needs at least one owner")
            touched = sorted({*had, *wanted})
            before = {one: permissions.record(CENTRAL_APPLICATION, one) for one in touched}
            step = record_changes(
                before, with_role_holders(before, Scope(project_id), role, wanted, self._context.now)
            )
            if step is not None:
                changes[name] = step
                permissions = permissions.with_records(step.after)
        return changes

    def _new_application(self, found: ProjectEdit) -> ApplicationModel | None:
        """A new project gets an application of its name only if the file lists none for it (R7)."""
        if self._listed_applications(found) or (
            self._options.prune and "applications" in self._context.file.sections
        ):
            return None
        number, project = self._application_id(found), found.after
        application = Application(
            application_id=number, name=project.title, project_id=project.project_id, created_at=self._context.now
        )
        schema = ApplicationSchema(application_id=number, updated_at=self._context.now)
        return ApplicationModel(application=application, schema=schema, roles={})

    def _listed_applications(self, found: ProjectEdit) -> list[ApplicationFileEntry]:
        """The applications that the file lists for the project."""
        names = (found.after.project_id, *found.after.aliases)
        given = (located.entry for located in self._context.file.entries_of("applications"))
        return [entry for entry in given if entry.project_id in names]

    def _application_id(self, found: ProjectEdit) -> int:
        given = found.entry.application_id
        if given is not UNSET and given is not None and given not in self._permissions.spent_application_ids:
            return given
        named = {one.entry.application_id for one in self._context.file.entries_of("applications")}
        return next_application_id(self._permissions, {number for number in named if isinstance(number, int)})


def next_application_id(permissions: PermissionState, reserved: set[int]) -> int:
    """Ids that the file names are reserved before new ones are generated (R7)."""
    return max({FIRST_GENERATED_ID - 1} | permissions.spent_application_ids | reserved) + 1


# The services of projects: they name groups and roles, which the same file may add.


ServiceGrants = Mapping[int, tuple[GroupGrant, ...]]


class ProjectServicesPlanner(EntryPlanner[ProjectFileEntry]):
    def plan_entry(self, located: Located[ProjectFileEntry]) -> Change | None:
        project = stored_project(located.entry, self._permissions)
        if project is None or located.entry.settings is UNSET:
            return None
        model = self._permissions.projects[project.project_id]
        return services_change(project, wanted_services(located, model, self.references()))


def wanted_services(located: Located[ProjectFileEntry], model: ProjectModel, references: References) -> ServiceGrants:
    """The services of the entry. Raises Malformed."""
    settings = located.entry.settings
    place = f"{located.place}.settings.services"
    given = {} if settings is UNSET or settings is None else member_or(settings, "services", {})
    services = read_services(with_group_ids(given, model, references, place), place)
    for number, grants in services.items():
        if model.project.settings.services.get(number) != grants:  # stored ones can be applied unchanged
            refuse_unusable_service(number, grants, model, references, f"{place}.{number}")
    return services


def with_group_ids(given: object, model: ProjectModel, references: References, place: str) -> object:
    """The same document with the ids of groups that are named by title."""
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
    """As the API does; if the file adds the application, and its entry was refused, a follow-up problem."""
    found = references.application(number)
    try:
        refuse_service(model.project, number, found, grants, place)
    except Malformed as error:
        raise (references.missing_error(number, str(error)) if found is None else error) from None


def services_change(project: Project, services: ServiceGrants) -> Change | None:
    after = replace(project, settings=replace(project.settings, services=services))
    details = describe_changes(settings_document(project.settings), settings_document(after.settings))
    note = AuditNote(event=AuditEvent.PROJECT_CHANGED, details=details)
    writes = [] if after == project else [ChangeProject(project, after)]
    return PROJECT.change(project, ["settings.services"], writes, notes=[note])


PROJECTS: Final = Section(
    name="projects",
    entry=ProjectFileEntry,
    scope=project_scope,
    plan=ProjectPlanner.plan,
    documents=project_documents,
)
PROJECT_SERVICES: Final = PlanStage(name=PROJECTS.name, plan=ProjectServicesPlanner.plan)
