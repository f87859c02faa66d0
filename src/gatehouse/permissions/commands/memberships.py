"""Members of a project, and its lists of allowed and disallowed groups (interface §4.6, R5)."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import Recorder, describe_changes
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.projects import ProjectRemoved, find_project
from gatehouse.permissions.commands.user_schemas import refuse_unknown_rules
from gatehouse.permissions.commands.versions import refuse_old_version
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.fields import read_list
from gatehouse.permissions.documents.records import parse_project, project_document
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel, ScopeHoldings, UserRecord
from gatehouse.permissions.model.group import PROJECT_TAG
from gatehouse.permissions.model.limits import MAX_GROUPS
from gatehouse.permissions.model.project import Project
from gatehouse.permissions.model.rules import Scope
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.granting import Granter
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.permissions.store import Change, EditResult, MembershipChange, ProjectStore, UserRecordStore

MAX_USERS_AT_ONCE = 200


class MembershipDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of project/membership: listed users are replaced, null removes a user, others are unchanged."""

    id: str
    user_id: str = ""  # get: only this user
    users: dict[str, object] | UnsetType = UNSET
    allow: list[object] | UnsetType | None = UNSET
    disallow: list[object] | UnsetType | None = UNSET
    version: int | UnsetType = UNSET
    updated_at: object = UNSET  # accepted and ignored (R6)


class MembershipCommands(Struct, kw_only=True, eq=False):
    projects: ProjectStore
    records: UserRecordStore
    recorder: Recorder
    clock: Clock

    async def get(
        self, actor: Actor, central: ApplicationModel, name: str, *, user_id: str = ""
    ) -> dict[str, object]:
        """Return the membership with all users who hold something in the project, or with this one."""
        model = await self._find_allowed_project(actor, name, Operation.MEMBERSHIP_GET)
        members = await self.records.records_in_project(CENTRAL_APPLICATION, model.project.project_id)
        return membership_document(model, [member for member in members if user_id in ("", member.user_id)], central)

    async def save(self, actor: Actor, central: ApplicationModel, draft: MembershipDraft) -> dict[str, object]:
        seen = await self._find_allowed_project(actor, draft.id, Operation.MEMBERSHIP_SAVE)
        if draft.user_id:
            raise Malformed("data.user_id: use `users` to save")
        project_id = seen.project.project_id
        wanted = {} if draft.users is UNSET else self._read_users(draft.users, project_id)
        granter = Granter(rights=actor.rights, model=central, now=self.clock.now())
        record = self.recorder.record(
            AuditEvent.MEMBERSHIP_SAVED,
            actor.origin,
            subject=f"project {project_id}",
            details={"users": ", ".join(sorted(wanted))},
        )

        def lists(state: ProjectModel) -> EditResult[ProjectModel]:
            if state.project.removed:
                raise ProjectRemoved
            refuse_old_version(draft.version, state.project.version)
            project = apply_group_lists(state, draft)
            return EditResult(replace(state, project=project), (record,))

        users = {
            user_id: self._replace_holdings(actor, granter, project_id, scopes) for user_id, scopes in wanted.items()
        }
        change = MembershipChange(project=lists, users=users)
        try:
            model = await self.projects.edit_members(project_id, change, self.clock.now())
        except UserNotFound:  # 404 is only for callers who may read all records (R6)
            raise Malformed("data.users: contains an unknown user").on_screen("unknown_user") from None
        return membership_document(
            model, await self.records.records_in_project(CENTRAL_APPLICATION, project_id), central
        )

    def _read_users(
        self, members: Mapping[str, object], project_id: str
    ) -> Mapping[str, Mapping[Scope, ScopeHoldings]]:
        if len(members) > MAX_USERS_AT_ONCE:
            raise Malformed(f"data.users: at most {MAX_USERS_AT_ONCE} at a time").on_screen(
                "at_once_most", max_users_at_once=MAX_USERS_AT_ONCE
            )
        return {
            grammar.check_user_id(user_id, "data.users"): self._read_member(
                entry, project_id, f"data.users.{user_id}"
            )
            for user_id, entry in members.items()
        }

    def _read_member(self, entry: object, project_id: str, place: str) -> Mapping[Scope, ScopeHoldings]:
        if entry is None:
            return {}
        return parse_project(entry, project_id, place=place)

    def _replace_holdings(
        self, actor: Actor, granter: Granter, project_id: str, scopes: Mapping[Scope, ScopeHoldings]
    ) -> Change[UserRecord]:
        def change(state: UserRecord) -> EditResult[UserRecord]:
            others = {scope: holdings for scope, holdings in state.scopes.items() if scope.project_id != project_id}
            after = replace(state, scopes={**others, **scopes})
            refuse_unknown_rules(granter.model, state, after)
            granter.refuse_change(state, after)
            details = describe_changes(
                project_document(state, project_id, granter.model), project_document(after, project_id, granter.model)
            )
            record = self.recorder.record(
                AuditEvent.USER_SCHEMA_SAVED,
                actor.origin,
                subject=state.user_id,
                details={"application_id": CENTRAL_APPLICATION, "project_id": project_id, **details},
            )
            return EditResult(after, (record,))

        return change

    async def _find_allowed_project(self, actor: Actor, name: str, operation: Operation) -> ProjectModel:
        model = await find_project(self.projects, actor.rights, grammar.check_project_id(name, "data.id"))
        require_operation(actor.rights, operation, GuardTarget(project_id=model.project.project_id))
        return model


def apply_group_lists(model: ProjectModel, draft: MembershipDraft, place: str = "data") -> Project:
    """Return the project with the group lists of the draft. Raises Malformed."""
    project = model.project
    allow = group_list(model, draft.allow, project.allow, f"{place}.allow")
    disallow = group_list(model, draft.disallow, project.disallow, f"{place}.disallow")
    if set(allow) & set(disallow):
        raise Malformed(f"{place}: a group cannot be both allowed and disallowed").on_screen("group_both")
    return replace(project, allow=allow, disallow=disallow)


def group_list(
    model: ProjectModel, document: list[object] | UnsetType | None, current_ids: Sequence[str], place: str
) -> tuple[str, ...]:
    """Ids of groups of this project that have its tag (interface §2.5)."""
    if document is UNSET:
        return tuple(current_ids)
    listed = read_list(document or [], place, MAX_GROUPS)
    ids = tuple(
        dict.fromkeys(grammar.check_group_id(element, f"{place}[{index}]") for index, element in enumerate(listed))
    )
    for group_id in ids:
        group = model.groups.get(group_id)
        if group is None or PROJECT_TAG not in group.tags:
            raise Malformed(
                f"{place}: {group_id} is not a group of this project with the tag {PROJECT_TAG}"
            ).on_screen("not_project_group", group_id=group_id, project_tag=PROJECT_TAG)
    return ids


def membership_document(
    model: ProjectModel, members: Sequence[UserRecord], central: ApplicationModel
) -> dict[str, object]:
    project = model.project
    return {
        "id": project.project_id,
        "users": {
            record.user_id: project_document(record, project.project_id, central)
            for record in sorted(members, key=lambda record: record.user_id)
        },
        "allow": list(project.allow),
        "disallow": list(project.disallow),
        "version": project.version,
    }
