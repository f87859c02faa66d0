"""What users hold in applications. It may be held on anything a file brings along, so it comes last."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from msgspec import UNSET

from gatehouse.accounts.model import ADMINISTRATOR
from gatehouse.audit.events import Event
from gatehouse.permissions import rules
from gatehouse.permissions.changes import difference
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.facts import ApplicationModel
from gatehouse.permissions.fields import read_members, shown
from gatehouse.permissions.model.rule import Section
from gatehouse.permissions.model.scope import ROOT, Scope
from gatehouse.permissions.model.user_record import Holdings, UserRecord
from gatehouse.permissions.records import (
    PROJECT_ACCESS,
    parse_assignments,
    parse_project,
    record_document,
)
from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import Action, Change, ChangeRecords, Note, State, World
from gatehouse.provision.sections.application_entry import ApplicationEntry
from gatehouse.provision.sections.references import (
    References,
    collected,
    refuse_holdings,
    refuse_unrelated,
    role_names,
)
from gatehouse.provision.sections.section import Draft, Placed, Terms, Tools

SECTIONS: Final = ("roles", "private_data", "public_data", "login", "secret_data")


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
            for user_id, given in placed.entry.users.items():
                with collected(problems):
                    change = planned(model, user_id, given, state.world, references, f"{placed.place}.users")
                    changes += [] if change is None else [change]
        return Draft(changes=tuple(changes), problems=tuple(problems.lines))


def stored_application(entry: ApplicationEntry, world: World, references: References) -> ApplicationModel | None:
    """As the stage before found or made it; one it refused is none."""
    if entry.application_id is not UNSET:
        return references.application(entry.application_id)
    home = None if entry.project_id is UNSET or entry.project_id is None else world.project(entry.project_id)
    project_id = None if home is None else home.project.project_id
    live = (model for model in world.applications.values() if world.is_live(model.application))
    named = (
        model for model in live if (model.application.project_id, model.application.name) == (project_id, entry.name)
    )
    return next(named, None)


def planned(
    model: ApplicationModel, user_id: str, given: object, world: World, references: References, place: str
) -> Change | None:
    where = f"{place}.{shown(user_id)}"
    references.user(user_id, where)
    before = world.record(model.application.application_id, user_id)
    record = wanted_record(model, before, given, world, references, where)
    if record == before:
        return None
    refuse_holdings(model, before.scopes, record.scopes, where)
    rules.refuse_doubled(record.root.private_data, record.root.public_data, place=where)
    return change_of(model, before, record)


def wanted_record(
    model: ApplicationModel,
    before: UserRecord,
    given: object,
    world: World,
    references: References,
    place: str,
) -> UserRecord:
    """A section that is absent stays, null empties it; null in place of the user takes all he has."""
    members = dict.fromkeys(SECTIONS) if given is None else read_members(given, place, SECTIONS)
    root = before.root
    if "roles" in members:
        assigned = parse_assignments(members["roles"] or [], place=f"{place}.roles")
        root = replace(root, roles=assigned)
        if model.application.is_central:
            root = replace(root, roles=with_administrator(before, root, f"{place}.roles"))
    if "public_data" in members:
        tree = rules.parse_entries(members["public_data"] or {}, Section.PUBLIC, place=f"{place}.public_data")
        root = replace(root, public_data=tree)
    below = {scope: held for scope, held in before.scopes.items() if not scope.is_root}
    if "private_data" in members:
        private = read_members(members["private_data"] or {}, f"{place}.private_data")
        entries = {name: value for name, value in private.items() if name != PROJECT_ACCESS}
        tree = rules.parse_entries(entries, Section.PRIVATE, place=f"{place}.private_data")
        root = replace(root, private_data=tree)
        if PROJECT_ACCESS in private or (given is None and not model.application.is_central):
            where = f"{place}.private_data.{PROJECT_ACCESS}"
            below = access(model, before, private.get(PROJECT_ACCESS) or {}, world, references, where)
    after = before
    if "login" in members:
        after = replace(after, login=rules.parse_own_login(members["login"] or {}, place=f"{place}.login"))
    if "secret_data" in members:
        secret = rules.parse_own_secret(members["secret_data"] or {}, place=f"{place}.secret_data")
        after = replace(after, secret_data=secret)
    scopes = {scope: held for scope, held in {ROOT: root, **below}.items() if not held.is_empty}
    return replace(after, scopes=scopes)


def with_administrator(before: UserRecord, wanted: Holdings, place: str) -> tuple[Any, ...]:
    """Who administers is said by `users`, and by nothing else."""
    if any(one.role == ADMINISTRATOR for one in wanted.roles):
        raise Malformed(f"{place}: {ADMINISTRATOR} is given by the field of that name in the section users")
    kept = tuple(one for one in before.root.roles if one.role == ADMINISTRATOR)
    had = [one.role for one in before.root.roles]
    first = kept if had[:1] == [ADMINISTRATOR] else ()
    return (*first, *wanted.roles, *(one for one in kept if one not in first))


def access(
    model: ApplicationModel,
    before: UserRecord,
    given: object,
    world: World,
    references: References,
    place: str,
) -> dict[Scope, Holdings]:
    """All that is held in projects; what is held where nothing is any more stays."""
    found = {scope: held for scope, held in before.scopes.items() if not world.has(scope)}
    for name, document in read_members(given, place).items():
        where = f"{place}.{shown(name)}"
        project_id = references.project(name, where).project.project_id
        resolved = references.with_group_ids(document, name, where)
        scopes = parse_project(resolved, project_id, place=where)
        if any(before.scopes.get(scope) != held for scope, held in scopes.items()):
            refuse_unrelated(model.application, project_id, where)
            references.refuse_unknown_resources(scopes, where)
        if found.keys() & scopes.keys():
            raise Malformed(f"{where}: names a project that is there already")
        found |= scopes
    return found


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
