"""Groups of projects, found by project and title (R7)."""

import secrets
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import describe_changes
from gatehouse.fields.derive import with_values
from gatehouse.permissions.commands.groups import (
    GROUP_ID_BYTES,
    AccessDraft,
    GroupDraft,
    access_document,
    apply_group_draft,
    opens_to_all,
    read_access,
    text_fields,
)
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.group import Group
from gatehouse.provision.document import Document
from gatehouse.provision.model import (
    AddGroup,
    AuditNote,
    Change,
    ChangeGroup,
    ReadScope,
    RecordKind,
    RemoveGroup,
    StoredState,
)
from gatehouse.provision.sections.references import EntryPlanner, References
from gatehouse.provision.sections.section import Context, Located, Section

Items = list[Any] | UnsetType | None

FIELDS: Final = ("title", "description", "tags", "users", "conditions")
GROUP: Final[RecordKind[Group]] = RecordKind(
    "group",
    name_of=lambda group: f"{group.title} of {group.project_id}",
    subject_of=lambda group: f"group {group.group_id}",
)


class GroupFileEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    project_id: str
    title: str | UnsetType = UNSET
    group_id: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    tags: Items = UNSET
    users: Items = UNSET
    conditions: Items = UNSET


def group_scope(entries: Sequence[GroupFileEntry]) -> ReadScope:
    listed = (entry.users for entry in entries)
    people = frozenset(
        user_id for users in listed if users is not UNSET for user_id in users or () if isinstance(user_id, str)
    )
    return ReadScope(permissions=True, user_ids=people)


class GroupPlanner(EntryPlanner[GroupFileEntry]):
    def plan_entry(self, located: Located[GroupFileEntry]) -> Change | None:
        group, before = self._resolve(located.entry, located.place)
        self.refuse_second_entry(group.group_id, "group", located.place)
        self._permissions = self._permissions.with_group(group)
        return group_change(group, before)

    def removals(self) -> Iterator[Change]:
        for model in self._permissions.projects.values():
            for group in model.groups.values():
                if group.group_id not in self._places and not model.project.removed:
                    yield group_removal(group)

    def _resolve(self, entry: GroupFileEntry, place: str) -> tuple[Group, Group | None]:
        """The group after and before the entry."""
        references = self.references()
        project = references.project(entry.project_id, f"{place}.project_id")
        before = self._find_stored(entry, project, place)
        base = before or self._new_group(entry, project, place)
        group = merge_group(entry, base, references, place)
        others = (other for other in project.groups.values() if other.group_id != group.group_id)
        if any(other.title_key == group.title_key for other in others):
            raise Malformed(f"{place}.title: another group of the project has this title")
        return group, before

    def _find_stored(self, entry: GroupFileEntry, project: ProjectModel, place: str) -> Group | None:
        """By id if the entry has one and the group exists, else by title."""
        if entry.group_id is not UNSET:
            self._refuse_foreign(grammar.check_group_id(entry.group_id, f"{place}.group_id"), project, place)
            if entry.group_id in project.groups:
                return project.groups[entry.group_id]
        if entry.title is UNSET:
            raise Malformed(f"{place}: needs a title")
        key = entry.title.lower().replace(" ", "_")
        return next((group for group in project.groups.values() if group.title_key == key), None)

    def _refuse_foreign(self, group_id: str, project: ProjectModel, place: str) -> None:
        for model in self._permissions.projects.values():
            if group_id in model.groups and model.project.project_id != project.project.project_id:
                raise Malformed(f"{place}.group_id: belongs to the project {model.project.project_id}")

    def _new_group(self, entry: GroupFileEntry, project: ProjectModel, place: str) -> Group:
        if entry.title is UNSET:
            raise Malformed(f"{place}: a new group needs a title")
        return Group(
            group_id=self._new_id() if entry.group_id is UNSET else entry.group_id,
            project_id=project.project.project_id,
            title=entry.title,
            created_at=self._context.now,
        )

    def _new_id(self) -> str:
        named = {located.entry.group_id for located in self._context.file.entries_of("groups")}
        group_id = secrets.token_hex(GROUP_ID_BYTES)
        while group_id in named:
            group_id = secrets.token_hex(GROUP_ID_BYTES)
        return group_id


def merge_group(entry: GroupFileEntry, base: Group, references: References, place: str) -> Group:
    """The group with the fields of the entry. Raises Malformed."""
    after = apply_group_draft(base, GroupDraft(title=entry.title, description=entry.description), place)
    if entry.tags is not UNSET:
        after = replace(after, tags=grammar.check_tags(entry.tags or (), f"{place}.tags"))
    after = with_values(after, read_access(AccessDraft(conditions=entry.conditions, users=entry.users), place))
    if entry.users is not UNSET:
        for index, user_id in enumerate(entry.users or ()):
            references.user(user_id, f"{place}.users[{index}]")
    return after


def group_change(group: Group, before: Group | None) -> Change | None:
    about = {"project_id": group.project_id}
    opened = opens_to_all(group) and (before is None or not opens_to_all(before))
    opening = [AuditNote(event=AuditEvent.GROUP_OPENED, details=about)] if opened else []
    if before is None:
        created = AuditNote(event=AuditEvent.GROUP_CREATED, details={**about, "title": group.title})
        return GROUP.addition(group, AddGroup(group), notes=[created, *opening])
    fields = [name for name in FIELDS if getattr(before, name) != getattr(group, name)]
    details = describe_changes(audited_group(before), audited_group(group))
    changed = AuditNote(event=AuditEvent.GROUP_CHANGED, details={**about, **details})
    return GROUP.change(before, fields, [ChangeGroup(before, group)] if fields else [], notes=[changed, *opening])


def group_removal(group: Group) -> Change:
    details = {"project_id": group.project_id, "title": group.title}
    return GROUP.removal(group, RemoveGroup(group), AuditNote(event=AuditEvent.GROUP_REMOVED, details=details))


def audited_group(group: Group) -> dict[str, object]:
    return {**text_fields(group), "tags": list(group.tags), **access_document(group)}


def group_document(group: Group) -> Document:
    return {
        "project_id": group.project_id,
        "title": group.title,
        "group_id": group.group_id,
        "description": group.description,
        "tags": list(group.tags),
        "users": list(group.users),
        "conditions": access_document(group)["conditions"],
    }


def group_documents(state: StoredState, _: Context) -> list[Document]:
    return [
        group_document(group)
        for model in state.permissions.projects.values()
        if not model.project.removed
        for group in model.groups.values()
    ]


GROUPS: Final = Section(
    name="groups", entry=GroupFileEntry, scope=group_scope, plan=GroupPlanner.plan, documents=group_documents
)
