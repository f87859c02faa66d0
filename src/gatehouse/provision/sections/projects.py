"""Projects, without the services they connect: these name groups and roles (project_services.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec import UNSET

from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import CENTRAL_ID, FIRST_GENERATED_ID, Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.project import Project
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.permissions.model.scope import Scope as Held
from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import (
    Change,
    ChangeRecords,
    Scope,
    State,
    World,
)
from gatehouse.provision.outcome import after
from gatehouse.provision.sections.application_entry import ApplicationEntry
from gatehouse.provision.sections.project_changes import (
    added,
    application_added,
    changed,
    document,
    records_changed,
    removal,
)
from gatehouse.provision.sections.project_entry import (
    PEOPLE,
    FoundProject,
    ProjectEntry,
    holders,
    merged,
    names_in,
    stored_project,
    with_people,
)
from gatehouse.provision.sections.references import References, collected, known_users
from gatehouse.provision.sections.section import Draft, Placed, Terms, Tools


class ProjectSection:
    name = "projects"
    entry = ProjectEntry

    def scope(self, entries: Sequence[Placed[ProjectEntry]], *, prune: bool) -> Scope:  # noqa: ARG002 - all are read
        people = frozenset(
            user_id
            for placed in entries
            for given in (placed.entry.owners, placed.entry.administrators)
            if given is not UNSET
            for user_id in given or ()
            if isinstance(user_id, str)
        )
        names = frozenset(name for placed in entries for name in names_in(placed.entry))
        return Scope(world=True, user_ids=people, record_users=people, member_projects=names)

    async def draft(self, entries: Sequence[Placed[ProjectEntry]], state: State, tools: Tools, terms: Terms) -> Draft:
        planning = Planning(state, tools, terms)
        for placed in entries:
            with collected(planning.problems):
                planning.plan(placed)
        if terms.prune:
            planning.remove_unnamed()
        return Draft(changes=tuple(planning.changes), problems=tuple(planning.problems.lines))

    def documents(self, state: State, tools: Tools, *, secrets: bool) -> list[Document]:  # noqa: ARG002 - has none
        live = [model.project for model in state.world.projects.values() if not model.project.removed]
        return [document(project, state.world, tools.now) for project in live]


class Planning:
    """One record after the other, each against what the ones before it leave."""

    def __init__(self, state: State, tools: Tools, terms: Terms) -> None:
        self.changes: list[Change] = []
        self.problems = Problems()
        self._state = state
        self._tools = tools
        self._terms = terms
        self._places: dict[str, str] = {}
        self._users = known_users(state, tools.file)

    @property
    def _world(self) -> World:
        return self._state.world

    def plan(self, placed: Placed[ProjectEntry]) -> None:
        found = self._found(placed)
        first = self._places.setdefault(found.after.project_id, placed.place)
        if first != placed.place:
            raise Malformed(f"{placed.place}: is the same project as {first}")
        self._refuse_taken_names(found)
        people = self._people(found)
        for change in self._added(found, people) if found.before is None else changed(found, found.before, people):
            self._make(change)

    def remove_unnamed(self) -> None:
        for project_id, model in self._world.projects.items():
            if project_id not in self._places and not model.project.removed:
                self._make(removal(model.project))

    def _added(self, found: FoundProject, people: Mapping[str, ChangeRecords]) -> list[Change]:
        model = self._application(found)
        if model is None:
            listed = {entry.application_id for entry in self._listed(found)} & {found.entry.application_id}
            number = next((number for number in listed if isinstance(number, int)), None)
            return [added(replace(found.after, application_id=number), people)]
        number = model.application.application_id
        return [added(replace(found.after, application_id=number), people), application_added(model)]

    def _make(self, change: Change) -> None:
        self.changes.append(change)
        self._state = after(self._state, change.acts)

    def _found(self, placed: Placed[ProjectEntry]) -> FoundProject:
        place, entry = placed.place, placed.entry
        before = stored_project(entry, self._world)
        if before is not None and before.removed:
            raise Malformed(f"{place}: the project {before.project_id} was removed; IDs are never reused")
        base = before or self._blank(entry, place)
        return FoundProject(place=place, entry=entry, before=before, after=merged(entry, base, place))

    def _blank(self, entry: ProjectEntry, place: str) -> Project:
        if entry.title is UNSET:
            raise Malformed(f"{place}: a new project needs a title")
        title = grammar.check_title(entry.title, f"{place}.title")
        given = UNSET if entry.id is UNSET else grammar.check_alias(entry.id, f"{place}.id")
        return Project(
            project_id=grammar.project_id_of(title) if given is UNSET else given,
            title=title,
            author=self._author(entry, place),
            created_at=self._tools.now,
        )

    def _author(self, entry: ProjectEntry, place: str) -> str:
        if entry.author is not UNSET:
            return grammar.check_user_id(entry.author, f"{place}.author") if entry.author else ""
        owners = () if entry.owners is UNSET else entry.owners or ()
        return grammar.check_user_id(owners[0], f"{place}.owners[0]") if owners else ""

    def _refuse_taken_names(self, found: FoundProject) -> None:
        """Ids and aliases of all projects, and the ids that titles would give, are one set of names (R5)."""
        own = found.after
        for model in self._world.projects.values():
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

    def _people(self, found: FoundProject) -> Mapping[str, ChangeRecords]:
        """What becomes of the records of owners and administrators, by the field that says so."""
        references, project_id = References(self._state, self._tools.file, self._users), found.after.project_id
        changes: dict[str, ChangeRecords] = {}
        state = self._state
        for name, role in PEOPLE.items():
            given = getattr(found.entry, name)
            if given is UNSET:
                continue
            place = f"{found.place}.{name}"
            wanted = [references.person(one, f"{place}[{index}]") for index, one in enumerate(given or ())]
            had = holders(state.world, project_id, role, self._tools.now)
            if name == "owners" and had and not wanted:
                raise Malformed(f"{place}: a project needs at least one owner")
            touched = sorted({*had, *wanted})
            before = {one: state.world.record(CENTRAL_ID, one) for one in touched}
            step = records_changed(before, with_people(before, Held(project_id), role, wanted, self._tools.now))
            if step is not None:
                changes[name] = step
                state = after(state, [step])
        return changes

    def _application(self, found: FoundProject) -> ApplicationModel | None:
        """A project made by a file gets the application of its name only if the file lists none for it (R7)."""
        if self._listed(found) or (self._terms.prune and "applications" in self._tools.file.sections):
            return None
        number, project = self._application_id(found), found.after
        application = Application(
            application_id=number, name=project.title, project_id=project.project_id, created_at=self._tools.now
        )
        schema = ApplicationSchema(application_id=number, updated_at=self._tools.now)
        return ApplicationModel(application=application, schema=schema, roles={})

    def _listed(self, found: FoundProject) -> list[ApplicationEntry]:
        """The applications that the file lists for the project."""
        names = (found.after.project_id, *found.after.aliases)
        given = (placed.entry for placed in self._tools.file.of("applications"))
        return [entry for entry in given if entry.project_id in names]

    def _application_id(self, found: FoundProject) -> int:
        given = found.entry.application_id
        if given is not UNSET and given is not None and given not in self._world.spent_application_ids:
            return given
        named = {one.entry.application_id for one in self._tools.file.of("applications")}
        return next_application_id(self._world, {number for number in named if isinstance(number, int)})


def next_application_id(world: World, reserved: set[int]) -> int:
    """Ids the file names are reserved before any is made up (R7)."""
    return max({FIRST_GENERATED_ID - 1} | world.spent_application_ids | reserved) + 1
