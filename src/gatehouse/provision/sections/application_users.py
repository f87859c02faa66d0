"""What users hold in applications. It may be held on anything a file brings along, so it comes last."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from msgspec import UNSET

from gatehouse.accounts.model import ADMINISTRATOR
from gatehouse.audit.differences import difference
from gatehouse.audit.events import Event
from gatehouse.permissions.documents import rules
from gatehouse.permissions.documents.fields import read_members, shown
from gatehouse.permissions.documents.records import parse_assignments, parse_project, record_document
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rule import PROJECT_ACCESS, Section
from gatehouse.permissions.model.scope import ROOT, Scope
from gatehouse.permissions.model.user_record import Assignment, Holdings, UserRecord
from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import Action, Change, ChangeRecords, Note, State, World
from gatehouse.provision.sections.application_entry import ApplicationEntry
from gatehouse.provision.sections.references import (
    References,
    collected,
    is_related,
    refuse_holdings,
    refuse_unrelated,
    role_names,
)
from gatehouse.provision.sections.section import Draft, Placed, Terms, Tools

SECTIONS: Final = ("roles", "private_data", "public_data", "login", "secret_data")
EVERY_SECTION: Final[Mapping[str, object]] = dict.fromkeys(SECTIONS)  # each null: emptied


class ApplicationUsers:
    name = "applications"

    async def draft(
        self,
        entries: Sequence[Placed[ApplicationEntry]],
        state: State,
        tools: Tools,
        terms: Terms,  # noqa: ARG002 - a stage's signature
    ) -> Draft:
        problems, changes = Problems(), []
        references = References(state, tools.file)
        for placed in entries:
            model = stored_application(placed.entry, state.world, references)
            if model is None or placed.entry.users is UNSET:
                continue
            planning = Planning(model, state.world, references)
            for user_id, given in placed.entry.users.items():
                with collected(problems):
                    change = planning.change(user_id, given, f"{placed.place}.users.{shown(user_id)}")
                    changes += [] if change is None else [change]
        return Draft(changes=tuple(changes), problems=tuple(problems.lines))


def stored_application(entry: ApplicationEntry, world: World, references: References) -> ApplicationModel | None:
    """As the stage before found or made it; one it refused is none."""
    if entry.application_id is not UNSET:
        return references.application(entry.application_id)
    home = None if entry.project_id is UNSET or entry.project_id is None else world.project(entry.project_id)
    key = (None if home is None else home.project.project_id, entry.name)
    live = (model for model in world.applications.values() if world.is_live(model.application))
    return next((model for model in live if (model.application.project_id, model.application.name) == key), None)


class Planning:
    """The users of one application."""

    def __init__(self, model: ApplicationModel, world: World, references: References) -> None:
        self._model = model
        self._world = world
        self._references = references

    def change(self, user_id: str, given: object, place: str) -> Change | None:
        """Raises Malformed."""
        self._references.user(user_id, place)
        before = self._world.record(self._model.application.application_id, user_id)
        after = self._wanted(before, given, place)
        if after == before:
            return None
        refuse_holdings(self._model, before.scopes, after.scopes, place)
        rules.refuse_doubled(after.root.private_data, after.root.public_data, place=place)
        return change_of(self._model, before, after)

    def _wanted(self, before: UserRecord, given: object, place: str) -> UserRecord:
        """A section that is absent stays, null empties it; null in place of the user takes all he has.

        What is held of application 1 in projects is said by the section memberships.
        """
        members = EVERY_SECTION if given is None else read_members(given, place, SECTIONS)
        below = {scope: held for scope, held in before.scopes.items() if not scope.is_root}
        private = read_members(members.get("private_data") or {}, f"{place}.private_data")
        if PROJECT_ACCESS in private or ("private_data" in members and not self._model.application.is_central):
            where = f"{place}.private_data.{PROJECT_ACCESS}"
            below = self._access(before, private.get(PROJECT_ACCESS) or {}, where)
        scopes = {ROOT: self._root(before, members, place), **below}
        after = replace(before, scopes={scope: held for scope, held in scopes.items() if not held.is_empty})
        if "login" in members:
            after = replace(after, login=rules.parse_own_login(members["login"] or {}, place=f"{place}.login"))
        if "secret_data" in members:
            secret = rules.parse_own_secret(members["secret_data"] or {}, place=f"{place}.secret_data")
            after = replace(after, secret_data=secret)
        return after

    def _root(self, before: UserRecord, members: Mapping[str, object], place: str) -> Holdings:
        root = before.root
        if "roles" in members:
            root = replace(root, roles=parse_assignments(members["roles"] or [], place=f"{place}.roles"))
            if self._model.application.is_central:
                root = replace(root, roles=with_administrator(before, root, f"{place}.roles"))
        for section in Section:
            if section.value in members:
                given = read_members(members[section] or {}, f"{place}.{section}")
                entries = {name: value for name, value in given.items() if name != PROJECT_ACCESS}
                tree = rules.parse_entries(entries, section, place=f"{place}.{section}")
                root = (
                    replace(root, private_data=tree)
                    if section is Section.PRIVATE
                    else replace(root, public_data=tree)
                )
        return root

    def _access(self, before: UserRecord, given: object, place: str) -> dict[Scope, Holdings]:
        """All that is held in projects; what is held where nothing is given any more stays."""
        kept = {scope: held for scope, held in before.scopes.items() if not self._is_told(scope)}
        found: dict[Scope, Holdings] = {}
        for name, document in read_members(given, place).items():
            where = f"{place}.{shown(name)}"
            project_id = self._references.project(name, where).project.project_id
            resolved = self._references.with_group_ids(document, name, where)
            scopes = parse_project(resolved, project_id, place=where)
            fresh = [scope for scope, held in scopes.items() if before.scopes.get(scope) != held]
            if fresh:
                refuse_unrelated(self._model.application, project_id, where)
                self._references.refuse_unknown_resources(fresh, where)
            if found.keys() & scopes.keys():
                raise Malformed(f"{where}: names a project that is already listed")
            found |= scopes
        return {**kept, **found}

    def _is_told(self, scope: Scope) -> bool:
        """Whether an export tells what is held there."""
        related = scope.is_root or is_related(self._model.application, scope.project_id)
        return related and self._world.has(scope)


def with_administrator(before: UserRecord, wanted: Holdings, place: str) -> tuple[Assignment, ...]:
    """Who administers is said by `users`, and by nothing else."""
    if any(one.role == ADMINISTRATOR for one in wanted.roles):
        raise Malformed(f"{place}: {ADMINISTRATOR} is set by the field of that name in the section users")
    held = before.root.roles
    kept = tuple(one for one in held if one.role == ADMINISTRATOR)
    is_first = bool(kept) and held[0].role == ADMINISTRATOR
    return (*kept, *wanted.roles) if is_first else (*wanted.roles, *kept)


def change_of(model: ApplicationModel, before: UserRecord, record: UserRecord) -> Change:
    number, names = model.application.application_id, role_names(model)
    old, new = record_document(before, names), record_document(record, names)
    is_new = before == UserRecord(application_id=number, user_id=before.user_id, version=before.version)
    is_gone = record == UserRecord(application_id=number, user_id=before.user_id, version=before.version)
    action = Action.ADD if is_new else Action.REMOVE if is_gone else Action.CHANGE
    return Change(
        action=action,
        kind="record",
        name=f"of user {record.user_id} in application {number}",
        fields=tuple(name for name in SECTIONS if old[name] != new[name]) if action is Action.CHANGE else (),
        act=ChangeRecords((before,), (record,)),
        subject=record.user_id,
        notes=(Note(event=Event.USER_SCHEMA_SAVED, details={"application_id": number, **difference(old, new)}),),
    )


def users_document(model: ApplicationModel, world: World) -> Document:
    """Of application 1 only what is held at its root: the rest is in other sections."""
    number, names = model.application.application_id, role_names(model)
    found: Document = {}
    for (application_id, user_id), record in sorted(world.records.items()):
        if application_id != number:
            continue
        visible = exported(model, record, world)
        if visible.scopes or visible.login or visible.secret_data:
            document = record_document(visible, names)
            found[user_id] = {name: document[name] for name in SECTIONS}
    return found


def exported(model: ApplicationModel, record: UserRecord, world: World) -> UserRecord:
    central = model.application.is_central
    scopes = {
        scope: held for scope, held in record.scopes.items() if scope.is_root or (not central and world.has(scope))
    }
    if central and ROOT in scopes:
        held = scopes[ROOT]
        roles = tuple(one for one in held.roles if one.role != ADMINISTRATOR)
        scopes[ROOT] = replace(held, roles=roles)
    return replace(record, scopes={scope: held for scope, held in scopes.items() if not held.is_empty})
