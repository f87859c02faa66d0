"""Saves of a user's record in an application (interface §4.5, R5, R6)."""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import Recorder, describe_changes
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.applications import ApplicationRemoved
from gatehouse.permissions.commands.projects import find_live_project
from gatehouse.permissions.commands.versions import refuse_old_version
from gatehouse.permissions.documents import grammar, rules
from gatehouse.permissions.documents.fields import member_or
from gatehouse.permissions.documents.records import parse_assignments, parse_private_data, record_document
from gatehouse.permissions.errors import Malformed, NoRight, PersonNotFound
from gatehouse.permissions.model.facts import NO_HOLDINGS, ApplicationModel, Facts, ScopeHoldings, UserRecord
from gatehouse.permissions.model.rules import PROJECT_ACCESS, ROOT, RuleSection, Scope
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.granting import Granter, changed_entries, refuse_foreign_projects
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open, require_operation
from gatehouse.permissions.rights.rights import Rights
from gatehouse.permissions.rights.secret_data import RecordPart
from gatehouse.permissions.store import EditResult, PermissionStore, ProjectStore, UserRecordStore

PARTS_BY_SECTION: Mapping[str, RecordPart] = {
    "roles": RecordPart.ROLES,
    "public_data": RecordPart.PUBLIC,
    "private_data": RecordPart.PRIVATE,
    "secret_data": RecordPart.SECRET,
    "login": RecordPart.SECRET,  # R5
}


class RecordDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of meta/data; `type` is for get, the sections are for save."""

    user_id: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    roles: list[object] | UnsetType | None = UNSET
    public_data: dict[str, object] | UnsetType | None = UNSET
    private_data: dict[str, object] | UnsetType | None = UNSET
    secret_data: dict[str, object] | UnsetType | None = UNSET
    login: dict[str, object] | UnsetType | None = UNSET
    version: int | UnsetType = UNSET
    application_id: object = UNSET  # this and the following are accepted and ignored (R6)
    removed: object = UNSET
    tags: object = UNSET
    created: object = UNSET
    author: object = UNSET
    updated_at: object = UNSET


class RecordSections(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed sections of a save; what is UNSET stays."""

    roles: tuple[object, ...] | UnsetType = UNSET
    private: Mapping[str, object] | UnsetType = UNSET
    public: Mapping[str, object] | UnsetType = UNSET
    access: Mapping[Scope, ScopeHoldings] | UnsetType = UNSET
    secret: Mapping[str, object] | UnsetType = UNSET
    login: Mapping[str, object] | UnsetType = UNSET


class UserRecordCommands(Struct, kw_only=True, eq=False):
    store: UserRecordStore
    people: PermissionStore
    projects: ProjectStore
    recorder: Recorder
    clock: Clock

    async def load_person(self, actor: Actor, user_id: str, application_id: int) -> Facts:
        """Facts of another user. Only callers who may learn who exists get PersonNotFound, others NoRight (R6)."""
        facts = await self.people.facts(user_id, (application_id,))
        if facts is None:
            raise PersonNotFound if actor.rights.knows_who_exists else NoRight(f"no user {user_id}")
        return facts

    async def save(
        self, actor: Actor, model: ApplicationModel, user_id: str, draft: RecordDraft, expired: int
    ) -> UserRecord:
        """Save all sections or none (checklist SC-07)."""
        refuse_sections(actor, user_id, draft)
        application_id = model.application.application_id
        if not actor.rights.can_write(RecordPart.PRIVATE, user_id) and draft.private_data is not UNSET:
            await self._refuse_stranger(actor, model, user_id, draft.private_data or {})
        before = (await self.load_person(actor, user_id, application_id)).records[application_id]
        wanted = read_draft(draft, expired)
        if not covers_root_entries(actor.rights, user_id):
            wanted = replace(wanted, private=UNSET)
        if model.application.removed:
            raise ApplicationRemoved
        if wanted.access is not UNSET:
            wanted = replace(wanted, access=await self._resolve_projects(actor, model, wanted.access, before))
        granter = Granter(rights=actor.rights, model=model, now=self.clock.now())

        def change(state: UserRecord) -> EditResult[UserRecord]:
            refuse_old_version(draft.version, state.version)
            after = apply_record_sections(state, wanted)
            refuse_root_entries(actor.rights, state, after)
            rules.refuse_duplicate_paths(after.root.private_data, after.root.public_data)
            refuse_foreign_projects(actor.rights, below_root(state), below_root(after))
            refuse_unknown_rules(model, state, after)
            granter.refuse_change(state, after)
            names = role_names(model)
            details = describe_changes(record_document(state, names), record_document(after, names))
            record = self.recorder.record(
                AuditEvent.USER_SCHEMA_SAVED,
                actor.origin,
                subject=user_id,
                details={"application_id": application_id, **details},
            )
            return EditResult(after, (record,))

        return await self.store.edit_record(application_id, user_id, change, self.clock.now())

    async def _refuse_stranger(
        self, actor: Actor, model: ApplicationModel, user_id: str, members: Mapping[str, object]
    ) -> None:
        """Refuse a caller who may write only projectAccess and manages no project that it names, changed or not.

        This is checked first: any other response would reveal who exists or what they hold (R6).
        """
        application_id = model.application.application_id
        facts = await self.people.facts(user_id, (application_id,))
        scopes = () if facts is None else below_root(facts.records[application_id])
        access = member_or(members, PROJECT_ACCESS, {})
        named = {*(access if isinstance(access, Mapping) else ()), *(scope.project_id for scope in scopes)}
        for project_id in managed_project_ids(actor, model):
            project = (await self.projects.project(project_id)).project
            if not named.isdisjoint((project_id, *project.aliases)):
                return
        raise NoRight(f"projectAccess of user {user_id}")

    async def _resolve_projects(
        self, actor: Actor, model: ApplicationModel, access: Mapping[Scope, ScopeHoldings], before: UserRecord
    ) -> Mapping[Scope, ScopeHoldings]:
        """Return the sections with project ids instead of aliases; projects with new entries must exist."""
        resolved: dict[Scope, ScopeHoldings] = {}
        for name in dict.fromkeys(scope.project_id for scope in access):
            scopes = {scope: holdings for scope, holdings in access.items() if scope.project_id == name}
            if all(before.scopes.get(scope) == holdings for scope, holdings in scopes.items()):
                resolved |= scopes  # unchanged: not checked again
                continue
            project = await find_live_project(self.projects, actor.rights, name)
            require_operation(
                actor.rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=project.project.project_id)
            )
            refuse_unrelated(model, project.project.project_id)
            moved = {
                replace(scope, project_id=project.project.project_id): holdings for scope, holdings in scopes.items()
            }
            if resolved.keys() & moved.keys():
                raise Malformed(f"data.private_data.{PROJECT_ACCESS}: {name} names a project that is already listed")
            resolved |= moved
        return resolved


def refuse_unrelated(
    model: ApplicationModel, project_id: str, place: str = f"data.private_data.{PROJECT_ACCESS}"
) -> None:
    """Refuse permissions in a project of applications other than its own, published ones and application 1 (R5)."""
    if not is_related(model, project_id):
        raise Malformed(f"{place}: the application does not belong to {project_id} and is not published").on_screen(
            "not_published", project_id=project_id
        )


def is_related(model: ApplicationModel, project_id: str) -> bool:
    application = model.application
    return application.is_central or application.is_published or application.project_id == project_id


def managed_project_ids(actor: Actor, model: ApplicationModel) -> list[str]:
    """Ids of the projects in which the actor manages what people hold of the application."""
    return [
        scope.project_id
        for scope in actor.rights.central.open_scopes
        if scope.kind is None
        and is_related(model, scope.project_id)
        and is_open(actor.rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=scope.project_id))
    ]


def refuse_sections(actor: Actor, user_id: str, draft: RecordDraft) -> None:
    """Refuse sections that the caller may not write; parts of private_data are checked later."""
    sections = [name for name in PARTS_BY_SECTION if getattr(draft, name) is not UNSET]
    if not sections:
        raise Malformed("data: nothing to save").on_screen("nothing_to_save")
    for name in sections:
        in_parts = name == "private_data" and (
            is_only_projects(draft.private_data) or covers_root_entries(actor.rights, user_id)
        )
        if not in_parts and not actor.rights.can_write(PARTS_BY_SECTION[name], user_id):
            raise NoRight(f"{name} of user {user_id}")


def is_only_projects(section: Mapping[str, object] | UnsetType | None) -> bool:
    return isinstance(section, Mapping) and section.keys() == {PROJECT_ACCESS}


def covers_root_entries(rights: Rights, user_id: str) -> bool:
    """Whether a save of private_data by this caller covers the entries outside projectAccess as well.

    Then it replaces them, and what is left out is removed or refused (checklist SC-22). A caller who may neither read
    nor write private_data manages projects: the section in their save is only `projectAccess`.
    """
    return rights.can_write(RecordPart.PRIVATE, user_id) or rights.can_see(RecordPart.PRIVATE, user_id)


def refuse_root_entries(rights: Rights, before: UserRecord, after: UserRecord) -> None:
    changed = before.root.private_data != after.root.private_data
    if changed and not rights.can_write(RecordPart.PRIVATE, before.user_id):
        raise NoRight(f"private_data of user {before.user_id}")


def private_data_to_save(
    rights: Rights, user_id: str, private: Mapping[str, object], access: object
) -> dict[str, object]:
    """The section with another `projectAccess` and the same other entries, as this caller has to save it."""
    entries = private if covers_root_entries(rights, user_id) else {}
    return {**entries, PROJECT_ACCESS: access}


def read_draft(draft: RecordDraft, expired: int = 0, place: str = "data") -> RecordSections:
    """Parse the sections; null empties one. Raises Malformed."""
    wanted = RecordSections()
    if draft.roles is not UNSET:
        wanted = replace(wanted, roles=parse_assignments(draft.roles or [], place=f"{place}.roles", expired=expired))
    if draft.public_data is not UNSET:
        tree = rules.parse_entries(
            draft.public_data or {}, RuleSection.PUBLIC, place=f"{place}.public_data", expired=expired
        )
        wanted = replace(wanted, public=tree)
    if draft.private_data is not UNSET:
        root, access = parse_private_data(draft.private_data or {}, place=f"{place}.private_data", expired=expired)
        wanted = replace(wanted, private=root, access=access)
    if draft.secret_data is not UNSET:
        secret = rules.parse_own_secret(draft.secret_data or {}, place=f"{place}.secret_data", expired=expired)
        wanted = replace(wanted, secret=secret)
    if draft.login is not UNSET:
        login = rules.parse_own_login(draft.login or {}, place=f"{place}.login", expired=expired)
        wanted = replace(wanted, login=login)
    return wanted


def apply_record_sections(state: UserRecord, sections: RecordSections) -> UserRecord:
    root = state.root
    root = root if sections.roles is UNSET else replace(root, roles=sections.roles)
    root = root if sections.private is UNSET else replace(root, private_data=sections.private)
    root = root if sections.public is UNSET else replace(root, public_data=sections.public)
    below = below_root(state) if sections.access is UNSET else sections.access
    scopes = {scope: holdings for scope, holdings in {ROOT: root, **below}.items() if not holdings.is_empty}
    return replace(
        state,
        scopes=scopes,
        secret_data=state.secret_data if sections.secret is UNSET else sections.secret,
        login=state.login if sections.login is UNSET else sections.login,
    )


def below_root(record: UserRecord) -> Mapping[Scope, ScopeHoldings]:
    return {scope: holdings for scope, holdings in record.scopes.items() if not scope.is_root}


def refuse_unknown_rules(model: ApplicationModel, before: UserRecord, after: UserRecord, place: str = "data") -> None:
    """Check what is new in the record; entries that a later schema conflicts with stay."""
    for scope, holdings in after.scopes.items():
        fresh = [
            rule
            for rule, entry in changed_entries(before.scopes.get(scope, NO_HOLDINGS), holdings)
            if entry is not None
        ]
        rules.refuse_collisions(
            model.schema,
            fresh,
            place=f"{place} of {scope.project_id}" if scope.project_id else place,
            central=model.application.is_central,
        )


def role_names(model: ApplicationModel) -> Mapping[str, str]:
    return {key: role.name for key, role in model.roles.items()}


def record_user_id(draft: RecordDraft, own: str) -> str:
    """Return the named user, otherwise the caller; without a user JWT the user must be named (R6)."""
    if draft.user_id is not UNSET:
        return grammar.check_user_id(draft.user_id, "data.user_id")
    if not own:
        raise Malformed("data.user_id: whose?")
    return own
