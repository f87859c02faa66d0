"""Stores groups (GroupStore)."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace
from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.errors import UserNotFound
from gatehouse.audit.model import AuditRecord
from gatehouse.permissions.documents.conditions import conditions_document
from gatehouse.permissions.documents.limits import refuse_groups
from gatehouse.permissions.errors import GroupListed, GroupNotFound, NameTaken, VersionConflict
from gatehouse.permissions.model.group import PROJECT_TAG, Group
from gatehouse.permissions.model.objects import Holder, HolderKind
from gatehouse.permissions.model.project import Project
from gatehouse.permissions.model.rules import ResourceKind
from gatehouse.permissions.store import Change, EditResult
from gatehouse.storage.audit import add_audit_records
from gatehouse.storage.objects.endings import drop_holder
from gatehouse.storage.permissions.grant_keys import add_keys_of_group, update_grant_keys
from gatehouse.storage.permissions.project_models import group_by_id, project_by_name
from gatehouse.storage.permissions.projects import lock_project, write_project
from gatehouse.storage.permissions.structure import begin_project_change, lock_structure, lock_structure_shared
from gatehouse.storage.permissions.user_records import drop_holdings_on
from gatehouse.storage.runner import SqlStore, heavy_write, read
from gatehouse.storage.statements import InStringList, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.projects import group_members, groups

_FIXED_COLUMNS: Final = frozenset({"group_id", "project_id", "created_at", "version"})
_CHANGEABLE_COLUMNS: Final = tuple(column.name for column in groups.c if column.name not in _FIXED_COLUMNS)
_THIS_GROUP = groups.c.group_id == bindparam("of")
PROJECT_OF_GROUP = Statement(lambda: select(groups.c.project_id).where(_THIS_GROUP))
LOCK_GROUP = Statement(lambda: select(groups.c.group_id).where(_THIS_GROUP).with_for_update())
INSERT_GROUP = Statement(lambda: insert(groups).on_conflict_do_nothing().returning(groups.c.group_id))
UPDATE_GROUP = Statement(
    lambda: (
        update(groups)
        .where(_THIS_GROUP)
        .values({name: bindparam(name) for name in _CHANGEABLE_COLUMNS} | {"version": groups.c.version + 1})
    )
)
FIND_SAME_TITLE = Statement(
    lambda: select(groups.c.group_id).where(
        groups.c.project_id == bindparam("project"),
        groups.c.title_key == bindparam("title_key"),
        groups.c.group_id != bindparam("but"),
    )
)
DROP_GROUP = Statement(lambda: delete(groups).where(_THIS_GROUP))
DROP_MEMBERS = Statement(lambda: delete(group_members).where(group_members.c.group_id == bindparam("of")))
INSERT_MEMBER = Statement(lambda: insert(group_members))
LOCK_USERS_SHARED = Statement(
    lambda: (
        select(users.c.user_id)
        .where(InStringList(users.c.user_id, "ids"))
        .order_by(users.c.user_id)
        .with_for_update(read=True, key_share=True)
    )
)


def edit_group(group_id: str, change: Change[Group]) -> Verb[Group]:
    before = yield from lock_group(group_id)
    return (yield from write_group(before, change(before)))


def edit_group_keeping_lists(group_id: str, change: Change[Group]) -> Verb[Group]:
    """Edit a group.

    One in allow or disallow keeps the tag it needs there, because group managers may not change these lists.
    """
    before = yield from lock_group(group_id)
    edited = change(before)
    if loses_project_tag(before, edited.state):
        refuse_listed((yield from project_by_name(before.project_id)).project, group_id)
    return (yield from write_group(before, edited))


def loses_project_tag(before: Group, after: Group) -> bool:
    return PROJECT_TAG in before.tags and PROJECT_TAG not in after.tags


def refuse_listed(project: Project, group_id: str) -> None:
    if group_id in (*project.allow, *project.disallow):
        raise GroupListed(f"group {group_id} of {project.project_id}")


def edit_group_access(group_id: str, change: Callable[[Group, Sequence[Group]], EditResult[Group]]) -> Verb[Group]:
    before = yield from lock_group(group_id)
    model = yield from project_by_name(before.project_id)
    beside = [other for other in model.groups.values() if other.group_id != group_id]
    return (yield from write_group(before, change(before, beside)))


def lock_group(group_id: str) -> Verb[Group]:
    """Return the group and lock its project, which begins to change: none of its groups changes before the commit.

    Raises GroupNotFound.
    """
    yield from lock_structure_shared()
    rows = yield PROJECT_OF_GROUP(of=group_id)
    if not rows:
        raise GroupNotFound
    yield from begin_project_change(rows[0].project_id)
    if not (yield LOCK_GROUP(of=group_id)):
        raise GroupNotFound
    return (yield from group_by_id(group_id))


def write_group(before: Group, edited: EditResult[Group]) -> Verb[Group]:
    group_id = before.group_id
    after = replace(
        edited.state,
        group_id=group_id,
        project_id=before.project_id,
        created_at=before.created_at,
        version=before.version + 1,
    )
    if (yield FIND_SAME_TITLE(project=after.project_id, title_key=after.title_key, but=group_id)):
        raise NameTaken(after.title)
    yield UPDATE_GROUP(of=group_id, **_group_columns(after))
    if after.users != before.users:
        yield DROP_MEMBERS(of=group_id)
        yield from insert_members(after)
    if after.conditions != before.conditions:
        yield from update_grant_keys([after.project_id])
    yield from add_audit_records(edited.records)
    return after


def create_group(group: Group, records: Sequence[AuditRecord], *, most: int | None = None) -> Verb[Group]:
    yield from lock_structure_shared()
    model = yield from lock_project(group.project_id)
    if most is not None:
        refuse_groups(model.groups.values(), [*model.groups.values(), group], most=most)
    yield from insert_group(group)
    yield from add_audit_records(records)
    return group


def insert_group(group: Group) -> Verb[None]:
    """Insert a group; part of verbs that have locked its project. Raises NameTaken, UserNotFound."""
    fields = {"group_id": group.group_id, "project_id": group.project_id, "created_at": group.created_at}
    if not (yield INSERT_GROUP(**_group_columns(group), **fields, version=group.version)):
        raise NameTaken(group.title)
    yield from insert_members(group)
    yield from add_keys_of_group(group)


def insert_members(group: Group) -> Verb[None]:
    if not group.users:
        return
    known_ids = {row.user_id for row in (yield LOCK_USERS_SHARED(ids=list(group.users)))}
    if unknown := sorted(set(group.users) - known_ids):
        raise UserNotFound(", ".join(unknown))
    yield INSERT_MEMBER.bulk(
        [
            {"group_id": group.group_id, "user_id": user_id, "position": position}
            for position, user_id in enumerate(group.users, start=1)
        ]
    )


def _group_columns(group: Group) -> dict[str, object]:
    return {name: getattr(group, name) for name in _CHANGEABLE_COLUMNS} | {
        "conditions": conditions_document(group.conditions)
    }


def delete_unlisted_group(group_id: str, records: Sequence[AuditRecord], *, seen: int | None = None) -> Verb[None]:
    """Refuse to delete a group of allow or disallow: group managers may not open a closed project."""
    yield from lock_structure()
    gone = yield from group_by_id(group_id)
    if seen not in (None, gone.version):
        raise VersionConflict(f"deleted from version {seen}, but version {gone.version} is stored")
    refuse_listed((yield from project_by_name(gone.project_id)).project, group_id)
    yield from _delete_group(group_id, records)


def delete_group(group_id: str, records: Sequence[AuditRecord]) -> Verb[None]:
    """Delete a group; for `apply`, which may also change the project's allow and disallow lists."""
    yield from lock_structure()
    yield from _delete_group(group_id, records)


def _delete_group(group_id: str, records: Sequence[AuditRecord]) -> Verb[None]:
    gone = yield from group_by_id(group_id)
    around = yield from lock_project(gone.project_id)
    left = _without_group(around.project, group_id)
    if left != around.project:
        yield from write_project(around, left)
    yield DROP_GROUP(of=group_id)
    yield DROP_MEMBERS(of=group_id)
    yield from drop_holder(Holder(HolderKind.GROUP, group_id))
    yield from drop_holdings_on(ResourceKind.GROUP, group_id, [gone.project_id])
    yield from add_audit_records(records)


def _without_group(project: Project, group_id: str) -> Project:
    services = {
        application_id: tuple(grant for grant in grants if grant.group_id != group_id)
        for application_id, grants in project.settings.services.items()
    }
    return replace(
        project,
        settings=replace(project.settings, services=services),
        allow=tuple(listed for listed in project.allow if listed != group_id),
        disallow=tuple(listed for listed in project.disallow if listed != group_id),
    )


class GroupStorage(SqlStore):
    group = read(group_by_id)
    create_group = heavy_write(create_group)
    edit_group = heavy_write(edit_group_keeping_lists)
    edit_group_access = heavy_write(edit_group_access)
    delete_group = heavy_write(delete_unlisted_group)
