"""What users hold in applications: the last stage, because it may refer to anything in the file."""

from collections.abc import Mapping
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from gatehouse.accounts.model import ADMINISTRATOR_ROLE
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import describe_changes
from gatehouse.permissions.commands.user_schemas import (
    RecordDraft,
    apply_record_sections,
    is_related,
    read_draft,
    refuse_unrelated,
    role_names,
)
from gatehouse.permissions.documents import rules
from gatehouse.permissions.documents.fields import printable, read_members
from gatehouse.permissions.documents.records import record_document
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel, Assignment, ScopeHoldings, UserRecord
from gatehouse.permissions.model.rules import PROJECT_ACCESS, ROOT, Scope
from gatehouse.provision.document import Document
from gatehouse.provision.model import Action, AuditNote, Change, ChangeRecords, PermissionState
from gatehouse.provision.sections.application_entry import ApplicationFileEntry
from gatehouse.provision.sections.references import (
    EntryPlanner,
    References,
    collect_problems,
    refuse_invalid_record,
)
from gatehouse.provision.sections.section import Located

RECORD_SECTIONS: Final = ("roles", "private_data", "public_data", "login", "secret_data")
EMPTY_RECORD: Final[Mapping[str, object]] = dict.fromkeys(RECORD_SECTIONS)  # null empties a section


class ApplicationUsersPlanner(EntryPlanner[ApplicationFileEntry]):
    def plan_entry(self, located: Located[ApplicationFileEntry]) -> list[Change]:
        references, changes = self.references(), list[Change]()
        model = stored_application(located.entry, self._permissions, references)
        if model is None or located.entry.users is UNSET:
            return []
        planning = UserRecordPlanner(model, self._permissions, references)
        for user_id, given in located.entry.users.items():
            with collect_problems(self.problems):
                change = planning.plan_change(user_id, given, f"{located.place}.users.{printable(user_id)}")
                changes += [] if change is None else [change]
        return changes


def stored_application(
    entry: ApplicationFileEntry, permissions: PermissionState, references: References
) -> ApplicationModel | None:
    """The application that an earlier stage found or made; None if it was refused there."""
    if entry.application_id is not UNSET:
        return references.application(entry.application_id)
    home = None if entry.project_id is UNSET or entry.project_id is None else permissions.project(entry.project_id)
    key = (None if home is None else home.project.project_id, entry.name)
    live = (model for model in permissions.applications.values() if permissions.is_live(model.application))
    return next((model for model in live if (model.application.project_id, model.application.name) == key), None)


class UserRecordPlanner:
    """The users of one application."""

    def __init__(self, model: ApplicationModel, permissions: PermissionState, references: References) -> None:
        self._model = model
        self._permissions = permissions
        self._references = references

    def plan_change(self, user_id: str, given: object, place: str) -> Change | None:
        """Raises Malformed."""
        self._references.user(user_id, place)
        before = self._permissions.record(self._model.application.application_id, user_id)
        after = self._wanted_record(before, given, place)
        if after == before:
            return None
        refuse_invalid_record(self._model, before, after, place)
        rules.refuse_duplicate_paths(after.root.private_data, after.root.public_data, place=place)
        return record_change(self._model, before, after)

    def _wanted_record(self, before: UserRecord, given: object, place: str) -> UserRecord:
        """A section that is absent stays, null empties it; null in place of the user empties all.

        The section memberships says what users hold of application 1 in projects.
        """
        members = dict(EMPTY_RECORD if given is None else read_members(given, place, RECORD_SECTIONS))
        private = read_members(members.get("private_data") or {}, f"{place}.private_data")
        where = f"{place}.private_data.{PROJECT_ACCESS}"
        if PROJECT_ACCESS in private:
            named = self._with_project_ids(private[PROJECT_ACCESS] or {}, where)
            members["private_data"] = {**private, PROJECT_ACCESS: named}
        sections = read_draft(RecordDraft(**members), place=place)  # type: ignore[arg-type]
        if sections.access is not UNSET:
            access = self._project_holdings(before, sections.access, where)
            is_kept = self._model.application.is_central and PROJECT_ACCESS not in private
            sections = replace(sections, access=UNSET if is_kept else access)
        after = apply_record_sections(before, sections)
        if self._model.application.is_central and "roles" in members:
            root = replace(after.root, roles=with_administrator(before, after.root, f"{place}.roles"))
            after = after.with_holdings(ROOT, root)
        return after

    def _with_project_ids(self, given: object, place: str) -> dict[str, object]:
        """The same document with the ids of projects and groups that are named otherwise."""
        found: dict[str, object] = {}
        for name, document in read_members(given, place).items():
            where = f"{place}.{printable(name)}"
            project_id = self._references.project(name, where).project.project_id
            if project_id in found:
                raise Malformed(f"{where}: names a project that is already listed")
            found[project_id] = self._references.with_group_ids(document, name, where)
        return found

    def _project_holdings(
        self, before: UserRecord, access: Mapping[Scope, ScopeHoldings], place: str
    ) -> dict[Scope, ScopeHoldings]:
        """What the file gives in projects, and what is stored where it can give nothing any more."""
        for scope, held in access.items():
            if before.scopes.get(scope) != held:
                where = f"{place}.{scope.project_id}"
                refuse_unrelated(self._model, scope.project_id, where)
                self._references.refuse_unknown_resources([scope], where)
        kept = {scope: held for scope, held in before.scopes.items() if not self._is_exported(scope)}
        return {**kept, **access}

    def _is_exported(self, scope: Scope) -> bool:
        """Whether an export writes what is held there."""
        related = scope.is_root or is_related(self._model, scope.project_id)
        return related and self._permissions.has_scope(scope)


def with_administrator(before: UserRecord, wanted: ScopeHoldings, place: str) -> tuple[Assignment, ...]:
    """Refuse the administrator role here: only the section `users` sets it."""
    if any(role.role == ADMINISTRATOR_ROLE for role in wanted.roles):
        raise Malformed(f"{place}: {ADMINISTRATOR_ROLE} is set by the field of that name in the section users")
    held = before.root.roles
    kept = tuple(one for one in held if one.role == ADMINISTRATOR_ROLE)
    is_first = bool(kept) and held[0].role == ADMINISTRATOR_ROLE
    return (*kept, *wanted.roles) if is_first else (*wanted.roles, *kept)


def record_change(model: ApplicationModel, before: UserRecord, record: UserRecord) -> Change:
    number, names = model.application.application_id, role_names(model)
    old, new = record_document(before, names), record_document(record, names)
    is_new = before == UserRecord(application_id=number, user_id=before.user_id, version=before.version)
    is_gone = record == UserRecord(application_id=number, user_id=before.user_id, version=before.version)
    action = Action.ADD if is_new else Action.REMOVE if is_gone else Action.CHANGE
    details = {"application_id": number, **describe_changes(old, new)}
    return Change(
        action=action,
        kind="record",
        name=f"of user {record.user_id} in application {number}",
        fields=tuple(name for name in RECORD_SECTIONS if old[name] != new[name]) if action is Action.CHANGE else (),
        writes=(ChangeRecords((before,), (record,)),),
        subject=record.user_id,
        notes=(AuditNote(event=AuditEvent.USER_SCHEMA_SAVED, details=details),),
    )


def users_document(model: ApplicationModel, permissions: PermissionState) -> Document:
    """Of application 1 only what is held at the root: other sections have the rest."""
    number, names = model.application.application_id, role_names(model)
    found: Document = {}
    for (application_id, user_id), record in sorted(permissions.records.items()):
        if application_id != number:
            continue
        visible = exportable_record(model, record, permissions)
        if visible.scopes or visible.login or visible.secret_data:
            document = record_document(visible, names)
            found[user_id] = {name: document[name] for name in RECORD_SECTIONS}
    return found


def exportable_record(model: ApplicationModel, record: UserRecord, permissions: PermissionState) -> UserRecord:
    central = model.application.is_central
    scopes = {
        scope: held
        for scope, held in record.scopes.items()
        if scope.is_root or (not central and permissions.has_scope(scope))
    }
    if central and ROOT in scopes:
        held = scopes[ROOT]
        roles = tuple(role for role in held.roles if role.role != ADMINISTRATOR_ROLE)
        scopes[ROOT] = replace(held, roles=roles)
    return replace(record, scopes={scope: held for scope, held in scopes.items() if not held.is_empty})
