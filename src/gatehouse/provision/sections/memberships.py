"""What users hold of application 1 in projects, and the lists of allowed and disallowed groups (R5)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import describe_changes
from gatehouse.permissions.commands.memberships import MembershipDraft, apply_group_lists
from gatehouse.permissions.commands.user_schemas import role_names
from gatehouse.permissions.documents.fields import printable, read_members
from gatehouse.permissions.documents.records import IN_PROJECT, parse_project, project_access_document
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import NO_HOLDINGS, ProjectModel, ScopeHoldings, UserRecord
from gatehouse.permissions.model.project import Project
from gatehouse.permissions.model.rules import Scope
from gatehouse.provision.document import Document
from gatehouse.provision.model import (
    AuditNote,
    Change,
    ChangeProject,
    ChangeRecords,
    PermissionState,
    ReadScope,
    RecordKind,
    StoredState,
    Write,
)
from gatehouse.provision.sections.project_entry import (
    ROLE_BY_FIELD,
    ProjectFileEntry,
    record_changes,
    role_holders,
    stored_project,
)
from gatehouse.provision.sections.references import (
    EntryPlanner,
    central_application,
    holdings_in_project,
    refuse_invalid_record,
)
from gatehouse.provision.sections.section import Context, Located, Section

Items = tuple[Any, ...] | UnsetType | None


MEMBERSHIP: Final[RecordKind[Project]] = RecordKind(
    "membership",
    name_of=lambda project: project.project_id,
    subject_of=lambda project: f"project {project.project_id}",
)


class MembershipFileEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    users: dict[str, Any] | UnsetType = UNSET
    allow: Items = UNSET
    disallow: Items = UNSET


def membership_scope(entries: Sequence[MembershipFileEntry]) -> ReadScope:
    people = frozenset(user_id for entry in entries if entry.users is not UNSET for user_id in entry.users)
    return ReadScope(
        permissions=True,
        user_ids=people,
        record_users=people,
        member_projects=frozenset(entry.id for entry in entries),
    )


def membership_documents(state: StoredState, _: Context) -> list[Document]:
    return [
        membership_document(model.project, state)
        for model in state.permissions.projects.values()
        if not model.project.removed
    ]


class ListedPeople(Struct, frozen=True):
    """Owners and administrators of a project as `projects` of the same file lists them, if it does."""

    place: str
    by_role: Mapping[str, frozenset[str]]

    def refuse_contradiction(self, user_id: str, held: ScopeHoldings, place: str, now: int) -> None:
        """Refuse what `projects` contradicts: each apply would undo what the other section did."""
        roles = {one.role for one in held.roles if not one.end.is_past(now)}
        for role, listed in self.by_role.items():
            if (role in roles) != (user_id in listed):
                says = "lists" if user_id in listed else "does not list"
                field = next(name for name, one in ROLE_BY_FIELD.items() if one == role)
                raise Malformed(f"{place}: {self.place}.{field} {says} {user_id}")

    def listed_holdings(self, user_id: str, held: ScopeHoldings) -> ScopeHoldings:
        """The roles that `projects` gives the user."""
        kept = {role for role, listed in self.by_role.items() if user_id in listed}
        return ScopeHoldings(roles=tuple(one for one in held.roles if one.role in kept))


class MembershipPlanner(EntryPlanner[MembershipFileEntry]):
    def plan_entry(self, located: Located[MembershipFileEntry]) -> Change | None:
        model = self.references().project(located.entry.id, f"{located.place}.id")
        self.refuse_second_entry(model.project.project_id, "project", located.place)
        lists = self._with_group_lists(located, model)
        step = self._record_changes(located, model.project)
        change = membership_change(model.project, lists, step, self.state_now())
        if step is not None:  # one record has what a user holds in all projects
            self._permissions = self._permissions.with_records(step.after)
        return change

    def _with_group_lists(self, located: Located[MembershipFileEntry], model: ProjectModel) -> Project:
        draft = MembershipDraft(
            id=model.project.project_id,
            allow=self._group_ids(located.entry.allow, model, f"{located.place}.allow"),
            disallow=self._group_ids(located.entry.disallow, model, f"{located.place}.disallow"),
        )
        return apply_group_lists(model, draft, located.place)

    def _group_ids(self, given: Items, model: ProjectModel, place: str) -> list[object] | UnsetType:
        """The same list with the ids of groups that are named by title."""
        if given is UNSET:
            return UNSET
        names = enumerate(given or ())
        return [self.references().group(model, name, f"{place}[{index}]").group_id for index, name in names]

    def _record_changes(self, located: Located[MembershipFileEntry], project: Project) -> ChangeRecords | None:
        if located.entry.users is UNSET:
            return None
        place, project_id = f"{located.place}.users", project.project_id
        named = {
            user_id: self._member_holdings(user_id, given, project, f"{place}.{printable(user_id)}")
            for user_id, given in located.entry.users.items()
        }
        if self._options.prune:
            named |= self._unnamed_members(project, named.keys())
        before = {user_id: self._permissions.record(CENTRAL_APPLICATION, user_id) for user_id in named}
        wanted = {
            user_id: self._replace_holdings(before[user_id], project_id, scopes) for user_id, scopes in named.items()
        }
        for user_id, record in wanted.items():
            where = f"{place}.{printable(user_id)}"
            refuse_invalid_record(central_application(self.state_now()), before[user_id], record, where)
        self._refuse_ownerless(project_id, wanted, place)
        return record_changes(before, wanted)

    def _member_holdings(
        self, user_id: str, given: object, project: Project, place: str
    ) -> Mapping[Scope, ScopeHoldings]:
        self.references().person(user_id, place)
        members = {} if given is None else read_members(given, place, IN_PROJECT)
        resolved = self.references().with_group_ids(members, project.project_id, place)
        scopes = parse_project(resolved, project.project_id, place=place)
        had = self._permissions.record(CENTRAL_APPLICATION, user_id).scopes
        self.references().refuse_unknown_resources(
            (scope for scope in scopes if scopes[scope] != had.get(scope)), place
        )
        held = scopes.get(Scope(project.project_id), NO_HOLDINGS)
        listed_people_of(project, self.state_now(), self._context).refuse_contradiction(
            user_id, held, place, self._context.now
        )
        return scopes

    def _unnamed_members(self, project: Project, named: Iterable[str]) -> dict[str, Mapping[Scope, ScopeHoldings]]:
        """Members the entry does not name: they keep only what `projects` of the same file lists."""
        people, scope = listed_people_of(project, self.state_now(), self._context), Scope(project.project_id)
        return {
            record.user_id: {scope: people.listed_holdings(record.user_id, record.scopes.get(scope, NO_HOLDINGS))}
            for record in member_records(self._permissions, project.project_id)
            if record.user_id not in named
        }

    def _replace_holdings(
        self, record: UserRecord, project_id: str, scopes: Mapping[Scope, ScopeHoldings]
    ) -> UserRecord:
        """Replace what the user holds in the project, except in scopes that no longer exist."""
        kept = {
            scope: held
            for scope, held in record.scopes.items()
            if scope.project_id != project_id or not self._permissions.has_scope(scope)
        }
        replaced = replace(record, scopes=kept)
        for scope, held in scopes.items():
            replaced = replaced.with_holdings(scope, held)
        return replaced

    def _refuse_ownerless(self, project_id: str, wanted: Mapping[str, UserRecord], place: str) -> None:
        owner = ROLE_BY_FIELD["owners"]
        before = role_holders(self._permissions, project_id, owner, self._context.now)
        records = {
            **self._permissions.records,
            **{(CENTRAL_APPLICATION, user_id): record for user_id, record in wanted.items()},
        }
        if before and not role_holders(
            replace(self._permissions, records=records), project_id, owner, self._context.now
        ):
            raise Malformed(f"{place}: a project needs at least one owner")


def listed_people_of(project: Project, state: StoredState, context: Context) -> ListedPeople:
    for located in context.file.entries_of("projects"):
        found = stored_project(located.entry, state.permissions)
        if found is not None and found.project_id == project.project_id:
            return ListedPeople(located.place, listed_by_role(located.entry))
    return ListedPeople("", {})


def listed_by_role(entry: ProjectFileEntry) -> Mapping[str, frozenset[str]]:
    given = {role: getattr(entry, name) for name, role in ROLE_BY_FIELD.items()}
    return {role: frozenset(users or ()) for role, users in given.items() if users is not UNSET}


def member_records(permissions: PermissionState, project_id: str) -> list[UserRecord]:
    """People who hold something in the project; not service accounts, which have their own section."""
    return [
        record
        for (number, user_id), record in sorted(permissions.records.items())
        if number == CENTRAL_APPLICATION
        and user_id not in permissions.service_accounts
        and live_holdings(record, project_id, permissions)
    ]


def live_holdings(record: UserRecord, project_id: str, permissions: PermissionState) -> dict[Scope, ScopeHoldings]:
    return {
        scope: held for scope, held in holdings_in_project(record, project_id).items() if permissions.has_scope(scope)
    }


def membership_change(
    project: Project, lists: Project, step: ChangeRecords | None, state: StoredState
) -> Change | None:
    writes: list[Write] = [] if lists == project else [ChangeProject(project, lists)]
    writes += [] if step is None else [step]
    touched = [] if step is None else [record.user_id for record in step.after]
    fields = [f"users.{user_id}" for user_id in touched]
    fields += [name for name in ("allow", "disallow") if getattr(lists, name) != getattr(project, name)]
    note = AuditNote(event=AuditEvent.MEMBERSHIP_SAVED, details={"users": ", ".join(touched)})
    notes = [note, *([] if step is None else record_notes(step, project.project_id, state))]
    return MEMBERSHIP.change(project, fields, writes, notes=notes)


def record_notes(step: ChangeRecords, project_id: str, state: StoredState) -> list[AuditNote]:
    return [
        AuditNote(
            event=AuditEvent.USER_SCHEMA_SAVED,
            subject=record.user_id,
            details={
                "application_id": CENTRAL_APPLICATION,
                "project_id": project_id,
                **describe_changes(
                    holdings_document(before, project_id, state), holdings_document(record, project_id, state)
                ),
            },
        )
        for before, record in zip(step.before, step.after, strict=True)
    ]


def holdings_document(record: UserRecord, project_id: str, state: StoredState) -> Document:
    """What is held in the project, as `parse_project` reads it."""
    scopes = live_holdings(record, project_id, state.permissions)
    return project_access_document(scopes, role_names(central_application(state))).get(project_id, {})


def membership_document(project: Project, state: StoredState) -> Document:
    project_id = project.project_id
    return {
        "id": project_id,
        "users": {
            record.user_id: holdings_document(record, project_id, state)
            for record in member_records(state.permissions, project_id)
        },
        "allow": list(project.allow),
        "disallow": list(project.disallow),
    }


MEMBERSHIPS: Final = Section(
    name="memberships",
    entry=MembershipFileEntry,
    scope=membership_scope,
    plan=MembershipPlanner.plan,
    documents=membership_documents,
)
