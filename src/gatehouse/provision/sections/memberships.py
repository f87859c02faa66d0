"""Who holds what of application 1 in projects, and which groups may hold anything there (R5)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from gatehouse.audit.differences import difference
from gatehouse.audit.events import Event
from gatehouse.permissions.documents.fields import read_list, read_members, shown
from gatehouse.permissions.documents.records import parse_project, project_access_document
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.group import PROJECT_TAG
from gatehouse.permissions.model.project import Project
from gatehouse.permissions.model.scope import Scope as Held
from gatehouse.permissions.model.user_record import NOTHING, Holdings, UserRecord
from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import (
    Act,
    Action,
    Change,
    ChangeProject,
    ChangeRecords,
    Note,
    Scope,
    State,
    World,
)
from gatehouse.provision.outcome import after, with_holdings
from gatehouse.provision.sections.project_changes import records_changed
from gatehouse.provision.sections.project_entry import PEOPLE, ProjectEntry, holders, stored_project
from gatehouse.provision.sections.references import (
    References,
    central,
    collected,
    in_project,
    refuse_holdings,
    role_names,
)
from gatehouse.provision.sections.section import Draft, Placed, Terms, Tools

GROUPS_MOST: Final = 1_000
MEMBER: Final = ("roles", "private_data", "public_data", "applications", "services", "groups")

Items = tuple[Any, ...] | UnsetType | None


class MembershipEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    users: dict[str, Any] | UnsetType = UNSET
    allow: Items = UNSET
    disallow: Items = UNSET


class MembershipSection:
    name = "memberships"
    entry = MembershipEntry

    def scope(self, entries: Sequence[Placed[MembershipEntry]], *, prune: bool) -> Scope:  # noqa: ARG002 - of the named
        given = [placed.entry for placed in entries]
        people = frozenset(user_id for entry in given if entry.users is not UNSET for user_id in entry.users)
        return Scope(
            world=True,
            user_ids=people,
            record_users=people,
            member_projects=frozenset(entry.id for entry in given),
        )

    async def draft(
        self, entries: Sequence[Placed[MembershipEntry]], state: State, tools: Tools, terms: Terms
    ) -> Draft:
        problems, changes = Problems(), []
        first: dict[str, str] = {}
        for placed in entries:
            planning = Planning(state, tools, terms)
            with collected(problems):
                model = planning.references.project(placed.entry.id, f"{placed.place}.id")
                if first.setdefault(model.project.project_id, placed.place) != placed.place:
                    raise Malformed(f"{placed.place}: is the same project as {first[model.project.project_id]}")
                change = planning.change(placed, model)
                if change is not None:
                    changes.append(change)
                    state = after(state, change.acts)  # somebody may belong to several projects, in one record
        return Draft(changes=tuple(changes), problems=tuple(problems.lines))

    def documents(self, state: State, tools: Tools, *, secrets: bool) -> list[Document]:  # noqa: ARG002 - has none
        return [
            document(model.project, state) for model in state.world.projects.values() if not model.project.removed
        ]


@dataclass(frozen=True, slots=True)
class People:
    """Who owns and who administers a project according to `projects` of the same file, where that says so."""

    place: str
    by_role: Mapping[str, frozenset[str]]

    def refuse_contradiction(self, user_id: str, held: Holdings, place: str, now: int) -> None:
        """Each section would undo what the other did, for ever."""
        roles = {one.role for one in held.roles if not one.end.is_past(now)}
        for role, listed in self.by_role.items():
            if (role in roles) != (user_id in listed):
                says = "lists" if user_id in listed else "does not list"
                field = next(name for name, one in PEOPLE.items() if one == role)
                raise Malformed(f"{place}: {self.place}.{field} {says} {user_id}")

    def kept_of(self, user_id: str, held: Holdings) -> Holdings:
        """What is left of somebody whom only that section names."""
        kept = {role for role, listed in self.by_role.items() if user_id in listed}
        return Holdings(roles=tuple(one for one in held.roles if one.role in kept))


class Planning:
    def __init__(self, state: State, tools: Tools, terms: Terms) -> None:
        self.references = References(state, tools.file)
        self._state = state
        self._tools = tools
        self._terms = terms

    @property
    def _world(self) -> World:
        return self._state.world

    def change(self, placed: Placed[MembershipEntry], model: ProjectModel) -> Change | None:
        lists = self._lists(placed, model)
        step = self._people(placed, model.project)
        if lists == model.project and step is None:
            return None
        return change_of(model.project, lists, step, self._state)

    def _lists(self, placed: Placed[MembershipEntry], model: ProjectModel) -> Project:
        project = model.project
        allow = self._groups(placed.entry.allow, project.allow, model, f"{placed.place}.allow")
        disallow = self._groups(placed.entry.disallow, project.disallow, model, f"{placed.place}.disallow")
        if set(allow) & set(disallow):
            raise Malformed(f"{placed.place}: a group cannot be both allowed and disallowed")
        return replace(project, allow=allow, disallow=disallow)

    def _groups(self, given: Items, kept: tuple[str, ...], model: ProjectModel, place: str) -> tuple[str, ...]:
        if given is UNSET:
            return kept
        found: dict[str, None] = {}
        for index, name in enumerate(read_list(given or (), place, GROUPS_MOST)):
            group = self.references.group(model, name, f"{place}[{index}]")
            if PROJECT_TAG not in group.tags:
                raise Malformed(f"{place}[{index}]: {group.title} does not have the tag {PROJECT_TAG}")
            found[group.group_id] = None
        return tuple(found)

    def _people(self, placed: Placed[MembershipEntry], project: Project) -> ChangeRecords | None:
        if placed.entry.users is UNSET:
            return None
        place, project_id = f"{placed.place}.users", project.project_id
        named = {
            user_id: self._member(user_id, given, project, f"{place}.{shown(user_id)}")
            for user_id, given in placed.entry.users.items()
        }
        if self._terms.prune:
            named |= self._unnamed(project, named.keys())
        before = {user_id: self._world.record(CENTRAL_ID, user_id) for user_id in named}
        wanted = {user_id: self._replaced(before[user_id], project_id, scopes) for user_id, scopes in named.items()}
        for user_id, record in wanted.items():
            refuse_holdings(central(self._state), before[user_id].scopes, record.scopes, f"{place}.{shown(user_id)}")
        self._refuse_ownerless(project_id, wanted, place)
        return records_changed(before, wanted)

    def _member(self, user_id: str, given: object, project: Project, place: str) -> Mapping[Held, Holdings]:
        self.references.person(user_id, place)
        members = {} if given is None else read_members(given, place, MEMBER)
        resolved = self.references.with_group_ids(members, project.project_id, place)
        scopes = parse_project(resolved, project.project_id, place=place)
        had = self._world.record(CENTRAL_ID, user_id).scopes
        self.references.refuse_unknown_resources((one for one in scopes if scopes[one] != had.get(one)), place)
        held = scopes.get(Held(project.project_id), NOTHING)
        people_of(project, self._state, self._tools).refuse_contradiction(user_id, held, place, self._tools.now)
        return scopes

    def _unnamed(self, project: Project, named: Iterable[str]) -> dict[str, Mapping[Held, Holdings]]:
        """Whoever else holds something there: no more than `projects` of the same file says."""
        people, scope = people_of(project, self._state, self._tools), Held(project.project_id)
        return {
            record.user_id: {scope: people.kept_of(record.user_id, record.scopes.get(scope, NOTHING))}
            for record in members(self._world, project.project_id)
            if record.user_id not in named
        }

    def _replaced(self, record: UserRecord, project_id: str, scopes: Mapping[Held, Holdings]) -> UserRecord:
        """The record with exactly this in the project, but for what is held where nothing is any more."""
        kept = {
            scope: held
            for scope, held in record.scopes.items()
            if scope.project_id != project_id or not self._world.has(scope)
        }
        replaced = replace(record, scopes=kept)
        for scope, held in scopes.items():
            replaced = with_holdings(replaced, scope, held)
        return replaced

    def _refuse_ownerless(self, project_id: str, wanted: Mapping[str, UserRecord], place: str) -> None:
        owner = PEOPLE["owners"]
        before = holders(self._world, project_id, owner, self._tools.now)
        records = {
            **self._world.records,
            **{(CENTRAL_ID, user_id): record for user_id, record in wanted.items()},
        }
        if before and not holders(replace(self._world, records=records), project_id, owner, self._tools.now):
            raise Malformed(f"{place}: a project needs at least one owner")


def people_of(project: Project, state: State, tools: Tools) -> People:
    for placed in tools.file.of("projects"):
        found = stored_project(placed.entry, state.world)
        if found is not None and found.project_id == project.project_id:
            return People(placed.place, listed_in(placed.entry))
    return People("", {})


def listed_in(entry: ProjectEntry) -> Mapping[str, frozenset[str]]:
    given = {role: getattr(entry, name) for name, role in PEOPLE.items()}
    return {role: frozenset(users or ()) for role, users in given.items() if users is not UNSET}


def members(world: World, project_id: str) -> list[UserRecord]:
    """People who hold something in the project; service accounts have a section of their own."""
    return [
        record
        for (number, user_id), record in sorted(world.records.items())
        if number == CENTRAL_ID and user_id not in world.service_accounts and visible(record, project_id, world)
    ]


def visible(record: UserRecord, project_id: str, world: World) -> dict[Held, Holdings]:
    return {scope: held for scope, held in in_project(record, project_id).items() if world.has(scope)}


def change_of(project: Project, lists: Project, step: ChangeRecords | None, state: State) -> Change:
    acts: list[Act] = [] if lists == project else [ChangeProject(project, lists)]
    acts += [] if step is None else [step]
    touched = [] if step is None else [record.user_id for record in step.after]
    fields = [f"users.{user_id}" for user_id in touched]
    fields += [name for name in ("allow", "disallow") if getattr(lists, name) != getattr(project, name)]
    note = Note(event=Event.MEMBERSHIP_SAVED, details={"users": ", ".join(touched)})
    return Change(
        action=Action.CHANGE,
        kind="membership",
        name=project.project_id,
        fields=tuple(fields),
        act=acts[0],
        further=tuple(acts[1:]),
        subject=f"project {project.project_id}",
        notes=(note, *([] if step is None else record_notes(step, project.project_id, state))),
    )


def record_notes(step: ChangeRecords, project_id: str, state: State) -> list[Note]:
    return [
        Note(
            event=Event.USER_SCHEMA_SAVED,
            subject=record.user_id,
            details={
                "application_id": CENTRAL_ID,
                "project_id": project_id,
                **difference(held_document(before, project_id, state), held_document(record, project_id, state)),
            },
        )
        for before, record in zip(step.before, step.after, strict=True)
    ]


def held_document(record: UserRecord, project_id: str, state: State) -> Document:
    """What is held in the project, as `parse_project` reads it."""
    scopes = visible(record, project_id, state.world)
    return project_access_document(scopes, role_names(central(state))).get(project_id, {})


def document(project: Project, state: State) -> Document:
    project_id = project.project_id
    return {
        "id": project_id,
        "users": {
            record.user_id: held_document(record, project_id, state) for record in members(state.world, project_id)
        },
        "allow": list(project.allow),
        "disallow": list(project.disallow),
    }
