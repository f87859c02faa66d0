"""Groups of projects, found by project and title (R7)."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from gatehouse.audit.differences import difference
from gatehouse.audit.events import Event
from gatehouse.permissions.commands.groups import (
    GROUP_ID_BYTES,
    access_document,
    opens_to_all,
    read_conditions,
    words_of,
)
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.group import Group
from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import Action, AddGroup, Change, ChangeGroup, Note, RemoveGroup, Scope, State
from gatehouse.provision.outcome import after
from gatehouse.provision.sections.references import References, collected, known_users
from gatehouse.provision.sections.section import Draft, Placed, Terms, Tools

Items = tuple[Any, ...] | UnsetType | None

FIELDS: Final = ("title", "description", "tags", "users", "conditions")


class GroupEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    project_id: str
    title: str | UnsetType = UNSET
    group_id: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    tags: Items = UNSET
    users: Items = UNSET
    conditions: Items = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGroup:
    place: str
    before: Group | None  # None: to be made
    after: Group


class GroupSection:
    name = "groups"
    entry = GroupEntry

    def scope(self, entries: Sequence[Placed[GroupEntry]], *, prune: bool) -> Scope:  # noqa: ARG002 - all are read
        listed = (placed.entry.users for placed in entries)
        people = frozenset(
            user_id for users in listed if users is not UNSET for user_id in users or () if isinstance(user_id, str)
        )
        return Scope(world=True, user_ids=people)

    async def draft(self, entries: Sequence[Placed[GroupEntry]], state: State, tools: Tools, terms: Terms) -> Draft:
        planning = Planning(state, tools)
        for placed in entries:
            with collected(planning.problems):
                planning.plan(placed)
        if terms.prune:
            planning.remove_unnamed()
        return Draft(changes=tuple(planning.changes), problems=tuple(planning.problems.lines))

    def documents(self, state: State, tools: Tools, *, secrets: bool) -> list[Document]:  # noqa: ARG002 - has none
        return [
            document(group)
            for model in state.world.projects.values()
            if not model.project.removed
            for group in model.groups.values()
        ]


class Planning:
    """One record after the other, each against what the ones before it leave."""

    def __init__(self, state: State, tools: Tools) -> None:
        self.changes: list[Change] = []
        self.problems = Problems()
        self._state = state
        self._tools = tools
        self._places: dict[str, str] = {}
        self._users = known_users(state, tools.file)
        self._named = {
            placed.entry.group_id for placed in tools.file.of("groups") if placed.entry.group_id is not UNSET
        }

    def plan(self, placed: Placed[GroupEntry]) -> None:
        found = self._found(placed.entry, placed.place)
        first = self._places.setdefault(found.after.group_id, placed.place)
        if first != placed.place:
            raise Malformed(f"{placed.place}: is the same group as {first}")
        change = added(found) if found.before is None else changed(found, found.before)
        if change is not None:
            self.changes.append(change)
            self._state = after(self._state, change.acts)

    def remove_unnamed(self) -> None:
        for model in self._state.world.projects.values():
            for group in model.groups.values():
                if group.group_id not in self._places and not model.project.removed:
                    self.changes.append(removal(group))

    def _found(self, entry: GroupEntry, place: str) -> FoundGroup:
        references = References(self._state, self._tools.file, self._users)
        project = references.project(entry.project_id, f"{place}.project_id")
        before = self._stored(entry, project, place)
        base = before or self._blank(entry, project, place)
        group = merged(entry, base, references, place)
        others = (other for other in project.groups.values() if other.group_id != group.group_id)
        if any(other.title_key == group.title_key for other in others):
            raise Malformed(f"{place}.title: another group of the project has this title")
        return FoundGroup(place=place, before=before, after=group)

    def _stored(self, entry: GroupEntry, project: ProjectModel, place: str) -> Group | None:
        """By its id if the record has one and there is such a group, else by its title."""
        if entry.group_id is not UNSET:
            self._refuse_foreign(grammar.check_group_id(entry.group_id, f"{place}.group_id"), project, place)
            if entry.group_id in project.groups:
                return project.groups[entry.group_id]
        if entry.title is UNSET:
            raise Malformed(f"{place}: needs a title")
        key = entry.title.lower().replace(" ", "_")
        return next((group for group in project.groups.values() if group.title_key == key), None)

    def _refuse_foreign(self, group_id: str, project: ProjectModel, place: str) -> None:
        for model in self._state.world.projects.values():
            if group_id in model.groups and model.project.project_id != project.project.project_id:
                raise Malformed(f"{place}.group_id: belongs to the project {model.project.project_id}")

    def _blank(self, entry: GroupEntry, project: ProjectModel, place: str) -> Group:
        if entry.title is UNSET:
            raise Malformed(f"{place}: a new group needs a title")
        return Group(
            group_id=self._new_id() if entry.group_id is UNSET else entry.group_id,
            project_id=project.project.project_id,
            title=entry.title,
            created_at=self._tools.now,
        )

    def _new_id(self) -> str:
        group_id = secrets.token_hex(GROUP_ID_BYTES)
        while group_id in self._named:
            group_id = secrets.token_hex(GROUP_ID_BYTES)
        return group_id


def merged(entry: GroupEntry, base: Group, references: References, place: str) -> Group:
    """The group as it will be; raises Malformed."""
    after_all = base
    if entry.title is not UNSET:
        after_all = replace(after_all, title=grammar.check_group_title(entry.title, f"{place}.title"))
    if entry.description is not UNSET:
        text = grammar.check_description(entry.description or "", f"{place}.description")
        after_all = replace(after_all, description=text)
    if entry.tags is not UNSET:
        after_all = replace(after_all, tags=grammar.check_tags(entry.tags or (), f"{place}.tags"))
    if entry.users is not UNSET:
        after_all = replace(after_all, users=references.users(entry.users or (), f"{place}.users"))
    if entry.conditions is not UNSET:
        conditions = read_conditions(entry.conditions or (), f"{place}.conditions")
        after_all = replace(after_all, conditions=conditions)
    return after_all


def added(found: FoundGroup) -> Change:
    group = found.after
    return Change(
        action=Action.ADD,
        kind="group",
        name=name_of(group),
        act=AddGroup(group),
        subject=f"group {group.group_id}",
        notes=(
            Note(event=Event.GROUP_CREATED, details={"project_id": group.project_id, "title": group.title}),
            *([opened(group)] if opens_to_all(group) else []),
        ),
    )


def changed(found: FoundGroup, before: Group) -> Change | None:
    group = found.after
    fields = tuple(name for name in FIELDS if getattr(before, name) != getattr(group, name))
    if not fields:
        return None
    details = difference(audited(before), audited(group))
    return Change(
        action=Action.CHANGE,
        kind="group",
        name=name_of(before),
        fields=fields,
        act=ChangeGroup(before, group),
        subject=f"group {group.group_id}",
        notes=(
            Note(event=Event.GROUP_CHANGED, details={"project_id": group.project_id, **details}),
            *([opened(group)] if opens_to_all(group) and not opens_to_all(before) else []),
        ),
    )


def opened(group: Group) -> Note:
    return Note(event=Event.GROUP_OPENED, details={"project_id": group.project_id})


def removal(group: Group) -> Change:
    return Change(
        action=Action.REMOVE,
        kind="group",
        name=name_of(group),
        act=RemoveGroup(group),
        subject=f"group {group.group_id}",
        notes=(Note(event=Event.GROUP_REMOVED, details={"project_id": group.project_id, "title": group.title}),),
    )


def name_of(group: Group) -> str:
    return f"{group.title} of {group.project_id}"


def audited(group: Group) -> dict[str, object]:
    return {**words_of(group), "tags": list(group.tags), **access_document(group)}


def document(group: Group) -> Document:
    return {
        "project_id": group.project_id,
        "title": group.title,
        "group_id": group.group_id,
        "description": group.description,
        "tags": list(group.tags),
        "users": list(group.users),
        "conditions": access_document(group)["conditions"],
    }
