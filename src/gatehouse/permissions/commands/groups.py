"""Groups of users of a project (interface §4.7, R5)."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.errors import UserNotFound
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, Details
from gatehouse.audit.recorder import Recorder, describe_changes
from gatehouse.fields.derive import document_values, draft_members, with_members, with_values
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.drafts import Draft, TagsDraft
from gatehouse.permissions.commands.projects import find_live_project, find_project
from gatehouse.permissions.commands.versions import NEW_VERSION, expected_version, refuse_old_version
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.fields import read_fields, read_values
from gatehouse.permissions.documents.limits import refuse_groups
from gatehouse.permissions.errors import GroupNotFound, Malformed, NoRight, ProjectNotFound
from gatehouse.permissions.evaluation.condition_index import NO_ADDRESS
from gatehouse.permissions.evaluation.conditions import condition_holds
from gatehouse.permissions.model.common_fields import IN_ACCESS, IN_TAGS
from gatehouse.permissions.model.condition import Condition, ConditionSubject, Everyone, tests_in
from gatehouse.permissions.model.group import (
    ACCESS_FIELDS,
    CHANGEABLE_GROUP_FIELDS,
    GROUP_FIELDS,
    SAVED_GROUP_FIELDS,
    Group,
)
from gatehouse.permissions.model.limits import MAX_GROUPS
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open, require_operation
from gatehouse.permissions.store import EditResult, GroupStore, PermissionStore, ProjectStore

GROUP_ID_BYTES: Final = 12


@with_members(lambda: draft_members(GROUP_FIELDS))
class GroupDraft(Draft, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of a group save; access settings and tags are ignored, they have their own endpoints (R6)."""

    project_id: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET


@with_members(lambda: draft_members(GROUP_FIELDS))
class AccessDraft(Draft, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of group/access: conditions and users; title and project are ignored."""

    conditions: list[object] | UnsetType | None = UNSET
    users: list[object] | UnsetType | None = UNSET


class GroupCommands(Struct, kw_only=True, eq=False):
    store: GroupStore
    projects: ProjectStore
    people: PermissionStore
    recorder: Recorder
    clock: Clock

    async def list_in_project(self, actor: Actor, name: str) -> Sequence[Group]:
        """The groups the actor manages. Raises NoRight if they may manage none."""
        model = await find_project(self.projects, actor.rights, grammar.check_project_id(name, "data.project_id"))
        project_id = model.project.project_id
        managed = [
            group
            for group in sorted(model.groups.values(), key=lambda group: group.title_key)
            if is_open(actor.rights, Operation.GROUP_GET, GuardTarget(project_id=project_id, group_id=group.group_id))
        ]
        if not managed:
            require_operation(actor.rights, Operation.GROUP_LIST, GuardTarget(project_id=project_id))
        return managed

    async def save(self, actor: Actor, group_id: str | None, draft: GroupDraft) -> Group:
        return await (self._create(actor, draft) if group_id is None else self._change(actor, group_id, draft))

    async def delete(self, actor: Actor, group_id: str, version: int | UnsetType = UNSET) -> None:
        group = await self.find_group(actor, group_id, Operation.GROUP_DELETE)
        record = self._record(AuditEvent.GROUP_REMOVED, actor, group, {"title": group.title})
        people = self._person_records(actor, group, group.users, ())
        await self.store.delete_group(group_id, (record, *people), seen=expected_version(version))

    async def save_fields(
        self, actor: Actor, group: Group, values: Mapping[str, Any], version: int | UnsetType = UNSET
    ) -> Group:
        """Save fields of the group by name, as the requests of each have them."""
        parts: dict[str, dict[str, Any]] = {request: {} for request in ("", IN_ACCESS, IN_TAGS)}
        for field in CHANGEABLE_GROUP_FIELDS:
            if field.name in values:
                parts[field.field.request][field.name] = values[field.name]
        tags = TagsDraft(tags=parts[IN_TAGS].get("tags", group.tags))
        is_tagged = tags.checked_tags != group.tags
        if parts[""]:
            group = await self.save(actor, group.group_id, GroupDraft(version=version, **parts[""]))
        if parts[IN_ACCESS]:
            group = await self.save_access(actor, group.group_id, AccessDraft(**parts[IN_ACCESS]))
        return await self.save_tags(actor, group.group_id, tags) if is_tagged else group

    async def save_access(self, actor: Actor, group_id: str, draft: AccessDraft) -> Group:
        """Save conditions and listed users; what is absent stays."""
        await self.find_group(actor, group_id, Operation.GROUP_ACCESS)
        access = read_access(draft, "data")
        who = await self._subject(actor)

        def change(state: Group, beside: Sequence[Group]) -> EditResult[Group]:
            refuse_old_version(draft.version, state.version)
            after = with_values(state, access)
            refuse_groups([*beside, state], [*beside, after])
            details = describe_changes(access_document(state), access_document(after))
            event = AuditEvent.GROUP_OPENED if opens_group(state, after, who) else AuditEvent.GROUP_ACCESS_SAVED
            people = self._person_records(actor, after, state.users, after.users)
            return EditResult(after, (self._record(event, actor, after, details), *people))

        try:
            return await self.store.edit_group_access(group_id, change)
        except UserNotFound as error:  # 404 would refer to the group
            raise Malformed(f"data.users: no user {error.detail}") from None

    async def save_tags(self, actor: Actor, group_id: str, draft: TagsDraft) -> Group:
        await self.find_group(actor, group_id, Operation.GROUP_TAGS)
        wanted = draft.checked_tags

        def change(state: Group) -> EditResult[Group]:
            refuse_old_version(draft.version, state.version)
            details = describe_changes({"tags": list(state.tags)}, {"tags": list(wanted)})
            return EditResult(
                replace(state, tags=wanted), (self._record(AuditEvent.GROUP_TAGGED, actor, state, details),)
            )

        return await self.store.edit_group(group_id, change)

    async def _create(self, actor: Actor, draft: GroupDraft) -> Group:
        if draft.project_id is UNSET:
            raise Malformed("data.project_id: required").on_screen("required")
        home = grammar.check_project_id(draft.project_id, "data.project_id")
        model = await find_live_project(self.projects, actor.rights, home)
        project = model.project
        require_operation(actor.rights, Operation.GROUP_SAVE, GuardTarget(project_id=project.project_id))
        refuse_old_version(draft.version, NEW_VERSION)
        if draft.title is UNSET:
            raise Malformed("data.title: required for a new group").on_screen("required_group")
        blank = Group(
            group_id=secrets.token_hex(GROUP_ID_BYTES),
            project_id=project.project_id,
            title="",
            created_at=self.clock.now(),
        )
        group = apply_group_draft(blank, draft, "data")
        entry = self._record(AuditEvent.GROUP_CREATED, actor, group, {"title": group.title})
        return await self.store.create_group(group, (entry,), most=MAX_GROUPS)

    async def _change(self, actor: Actor, group_id: str, draft: GroupDraft) -> Group:
        seen = await self.find_group(actor, group_id, Operation.GROUP_SAVE)
        if draft.project_id is not UNSET and not await self._is_in(seen, draft.project_id):
            raise Malformed("data.project_id: a group cannot be moved to another project").on_screen("group_moved")

        def change(state: Group) -> EditResult[Group]:
            refuse_old_version(draft.version, state.version)
            after = apply_group_draft(state, draft, "data")
            details = describe_changes(text_fields(state), text_fields(after))
            return EditResult(after, (self._record(AuditEvent.GROUP_CHANGED, actor, after, details),))

        return await self.store.edit_group(group_id, change)

    async def _is_in(self, group: Group, name: str) -> bool:
        """Whether the group is in the project.

        Another project looks the same whether it exists or not (checklist PA-13).
        """
        named = grammar.check_project_id(name, "data.project_id")
        try:
            return (await self.projects.project(named)).project.project_id == group.project_id
        except ProjectNotFound:
            return False

    async def _subject(self, actor: Actor) -> ConditionSubject:
        facts = await self.people.facts(actor.user_id, ())
        return ConditionSubject(actor.user_id) if facts is None else facts.subject

    async def find_group(self, actor: Actor, group_id: str, operation: Operation) -> Group:
        """The group, if the actor may do this; others do not learn whether it exists."""
        try:
            group = await self.store.group(grammar.check_group_id(group_id, "group_id"))
        except GroupNotFound:
            if actor.rights.administers:
                raise
            raise NoRight(f"no group {group_id}") from None
        require_operation(actor.rights, operation, GuardTarget(project_id=group.project_id, group_id=group.group_id))
        return group

    def _record(self, event: AuditEvent, actor: Actor, group: Group, details: Details) -> AuditRecord:
        about = {"project_id": group.project_id, **details}
        return self.recorder.record(event, actor.origin, subject=f"group {group.group_id}", details=about)

    def _person_records(
        self, actor: Actor, group: Group, before: Sequence[str], after: Sequence[str]
    ) -> list[AuditRecord]:
        """Return a record about each person who was added or removed: a history of theirs is found by them."""
        about = {"project_id": group.project_id, "group_id": group.group_id, "title": group.title}
        changed = [
            *((AuditEvent.GROUP_JOINED, one) for one in after if one not in before),
            *((AuditEvent.GROUP_LEFT, one) for one in before if one not in after),
        ]
        return [self.recorder.record(event, actor.origin, subject=one, details=about) for event, one in changed]


def apply_group_draft(state: Group, draft: GroupDraft, place: str) -> Group:
    """Return the group with the title and description of the draft. Raises Malformed."""
    return read_fields(state, draft, SAVED_GROUP_FIELDS, f"{place}.")


def read_access(draft: AccessDraft, place: str) -> Mapping[str, Any]:
    """Parse the access settings before the transaction, which other saves wait for. Raises Malformed."""
    return read_values(draft, ACCESS_FIELDS, f"{place}.")


def opens_group(before: Group, after: Group, actor: ConditionSubject) -> bool:
    """Whether a change opens the group to everyone or to the actor: allowed, and audited as high (R5)."""
    listed = actor.user_id in set(after.users) - set(before.users)
    enters = has_member(after, actor) and not has_member(before, actor)
    return listed or enters or (opens_to_all(after) and not opens_to_all(before))


def has_member(group: Group, who: ConditionSubject) -> bool:
    """Whether the person is listed or meets one of the group's conditions (R5)."""
    return who.user_id in group.users or any(
        condition_holds(condition.test, who, NO_ADDRESS) for condition in conditions_in(group)
    )


def conditions_in(group: Group) -> Sequence[Condition]:
    return [condition.condition for condition in group.conditions]


def opens_to_all(group: Group) -> bool:
    return any(
        isinstance(test, Everyone) and test.holds
        for condition in group.conditions
        for test in tests_in(condition.condition.test)
    )


def access_document(group: Group) -> Mapping[str, object]:
    return document_values(group, ACCESS_FIELDS)


def text_fields(group: Group) -> Mapping[str, object]:
    return document_values(group, SAVED_GROUP_FIELDS)
