"""Applications with their rules, roles and keys; what users hold in them comes last (application_users.py)."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec import UNSET

from gatehouse.audit.differences import difference
from gatehouse.audit.events import Event
from gatehouse.audit.model import Details
from gatehouse.permissions.commands.app_schemas import role_event, role_facts, schema_document
from gatehouse.permissions.documents.differences import differences, tallied
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import (
    Act,
    Action,
    AddApplication,
    AddPublicKey,
    Change,
    ChangeApplication,
    ChangeSchema,
    Note,
    PutAccessKey,
    Scope,
    State,
    World,
)
from gatehouse.provision.outcome import after
from gatehouse.provision.sections.application_entry import ApplicationEntry, FoundApplication, merged
from gatehouse.provision.sections.application_keys import (
    WantedKeys,
    keys_document,
    service_meta_document,
    wanted_keys,
    with_service_meta,
)
from gatehouse.provision.sections.application_rules import differing, rules_document, with_rules
from gatehouse.provision.sections.application_users import users_document
from gatehouse.provision.sections.projects import next_application_id
from gatehouse.provision.sections.references import References, collected, known_users
from gatehouse.provision.sections.section import Draft, Placed, Terms, Tools

FIELDS = ("name", "description", "project_id", "settings", "service_meta")


class ApplicationSection:
    name = "applications"
    entry = ApplicationEntry

    def scope(self, entries: Sequence[Placed[ApplicationEntry]], *, prune: bool) -> Scope:  # noqa: ARG002 - all are read
        people = frozenset(
            user_id for placed in entries if placed.entry.users is not UNSET for user_id in placed.entry.users
        )
        return Scope(world=True, user_ids=people, record_users=people)

    async def draft(
        self, entries: Sequence[Placed[ApplicationEntry]], state: State, tools: Tools, terms: Terms
    ) -> Draft:
        planning = Planning(state, tools, terms)
        for placed in entries:
            with collected(planning.problems):
                planning.plan(placed)
        if terms.prune:
            planning.remove_unnamed()
        return Draft(changes=tuple(planning.changes), problems=tuple(planning.problems.lines))

    def documents(self, state: State, tools: Tools, *, secrets: bool) -> list[Document]:
        world = state.world
        live = [model for _, model in sorted(world.applications.items()) if world.is_live(model.application)]
        return [document(model, world, tools, secrets=secrets) for model in live]


class Planning:
    """One record after the other, each against what the ones before it leave."""

    def __init__(self, state: State, tools: Tools, terms: Terms) -> None:
        self.changes: list[Change] = []
        self.problems = Problems()
        self._state = state
        self._tools = tools
        self._terms = terms
        self._places: dict[int, str] = {}
        self._users = known_users(state, tools.file)
        self._named = {
            placed.entry.application_id
            for placed in tools.file.of("applications")
            if placed.entry.application_id is not UNSET
        }

    @property
    def _world(self) -> World:
        return self._state.world

    def plan(self, placed: Placed[ApplicationEntry]) -> None:
        found = self._found(placed)
        first = self._places.setdefault(found.application_id, placed.place)
        if first != placed.place:
            raise Malformed(f"{placed.place}: is the same application as {first}")
        self._refuse_namesake(found)
        keys = wanted_keys(found, self._world, self._tools, self._terms)
        change = added(found, keys) if found.before is None else changed(found, found.before, keys, self._tools.now)
        if change is not None:
            self.changes.append(change)
            self._state = after(self._state, change.acts)

    def remove_unnamed(self) -> None:
        """Application 1 is the service itself; those in removed projects are out of reach already."""
        for number, model in sorted(self._world.applications.items()):
            application = model.application
            if number not in self._places and not application.is_central and self._world.is_live(application):
                self.changes.append(removal(application))

    def _found(self, placed: Placed[ApplicationEntry]) -> FoundApplication:
        place, entry = placed.place, placed.entry
        references = References(self._state, self._tools.file, self._users)
        before = self._stored(entry, references, place)
        base = before or self._blank(entry, place)
        application = merged(entry, base.application, references, self._tools, place)
        if entry.service_meta is not UNSET:
            application = with_service_meta(
                application, entry.service_meta, self._tools, self._terms, f"{place}.service_meta"
            )
        model = with_rules(
            replace(base, application=application), entry, place, self.problems, prune=self._terms.prune
        )
        return FoundApplication(place=place, entry=entry, before=before, after=model)

    def _stored(self, entry: ApplicationEntry, references: References, place: str) -> ApplicationModel | None:
        """By its id if the record has one, else by its project and name."""
        if entry.application_id is not UNSET:
            return self._by_id(entry.application_id, place)
        if entry.name is UNSET:
            raise Malformed(f"{place}: needs an application_id or a name")
        name = entry.project_id
        home = None if name is UNSET or name is None else references.project(name, f"{place}.project_id")
        project_id = None if home is None else home.project.project_id
        found = [
            model
            for model in self._world.applications.values()
            if (model.application.project_id, model.application.name) == (project_id, entry.name)
            and self._world.is_live(model.application)
        ]
        if len(found) > 1:
            raise Malformed(f"{place}: several applications have this name; add the application_id")
        return found[0] if found else None

    def _by_id(self, number: int, place: str) -> ApplicationModel | None:
        found = self._world.applications.get(number)
        spent = found is None and number in self._world.spent_application_ids
        if spent or (found is not None and not self._world.is_live(found.application)):
            raise Malformed(f"{place}.application_id: application {number} was removed; IDs are never reused")
        return found

    def _blank(self, entry: ApplicationEntry, place: str) -> ApplicationModel:
        if entry.name is UNSET:
            raise Malformed(f"{place}: a new application needs a name")
        named = entry.application_id
        number = next_application_id(self._world, self._named) if named is UNSET else named
        return ApplicationModel(
            application=Application(application_id=number, name="", created_at=self._tools.now),
            schema=ApplicationSchema(application_id=number, updated_at=self._tools.now),
            roles={},
        )

    def _refuse_namesake(self, found: FoundApplication) -> None:
        own = found.after.application
        for model in self._world.applications.values():
            other = model.application
            same = other.project_id == own.project_id is not None and other.name == own.name and not other.removed
            if same and other.application_id != own.application_id:
                raise Malformed(
                    f"{found.place}.name: application {other.application_id} of the project already has this name"
                )


def added(found: FoundApplication, keys: WantedKeys) -> Change:
    application = found.after.application
    details: Details = {"name": application.name, "project_id": application.project_id}
    return Change(
        action=Action.ADD,
        kind="application",
        name=str(application.application_id),
        act=AddApplication(found.after),
        further=keys.acts,
        subject=f"application {application.application_id}",
        notes=(Note(event=Event.APPLICATION_CREATED, details=details), *key_notes(keys)),
        generated_secret=told(keys),
    )


def changed(found: FoundApplication, before: ApplicationModel, keys: WantedKeys, now: int) -> Change | None:
    model = found.after
    own = [name for name in FIELDS if getattr(before.application, name) != getattr(model.application, name)]
    if before.application.sealed_private_key != model.application.sealed_private_key:
        own.append("service_meta.private_key")
    ruled = differing(before, model)
    acts: list[Act] = [ChangeApplication(before.application, model.application)] if own else []
    if ruled:
        stamped = replace(model, schema=replace(model.schema, updated_at=now))
        changes = tallied(differences(before, stamped))
        acts.append(ChangeSchema(replace(before, application=model.application), stamped, changes))
    acts += keys.acts
    if not acts:
        return None
    return Change(
        action=Action.CHANGE,
        kind="application",
        name=str(found.application_id),
        fields=(*own, *ruled, *keys.fields),
        act=acts[0],
        further=tuple(acts[1:]),
        subject=f"application {found.application_id}",
        notes=(
            *([application_note(before.application, model.application)] if own else []),
            *rule_notes(before, model),
            *key_notes(keys),
        ),
        generated_secret=told(keys),
    )


def told(keys: WantedKeys) -> str | None:
    return ", ".join(f"{name}: {value}" for name, value in keys.generated.items()) or None


def application_note(before: Application, application: Application) -> Note:
    return Note(event=Event.APPLICATION_CHANGED, details=difference(audited(before), audited(application)))


def rule_notes(before: ApplicationModel, model: ApplicationModel) -> list[Note]:
    old, new = schema_document(before.schema), schema_document(model.schema)
    notes = [Note(event=Event.SCHEMA_SAVED, details=difference(old, new))] if old != new else []
    for key in sorted(before.roles.keys() | model.roles.keys()):
        was, role = before.roles.get(key), model.roles.get(key)
        if was != role:
            details: Details = {"role": key, **difference(role_facts(was), role_facts(role))}
            notes.append(Note(event=role_event(role), details=details))
    return notes


def key_notes(keys: WantedKeys) -> list[Note]:
    notes = []
    for act in keys.acts:
        match act:
            case PutAccessKey(_, key):
                notes.append(
                    Note(event=Event.ACCESS_KEY_MADE, details={"key_id": key.key_id, "comment": key.comment})
                )
            case AddPublicKey(key):
                notes.append(Note(event=Event.APPLICATION_KEY_ADDED, details={"kid": key.kid}))
    return notes


def removal(application: Application) -> Change:
    return Change(
        action=Action.REMOVE,
        kind="application",
        name=str(application.application_id),
        act=ChangeApplication(application, replace(application, removed=True)),
        subject=f"application {application.application_id}",
        notes=(Note(event=Event.APPLICATION_REMOVED),),
    )


def audited(application: Application) -> dict[str, object]:
    private = None if application.sealed_private_key is None else "given"
    return {**{name: getattr(application, name) for name in FIELDS}, "private_key": private}


def document(model: ApplicationModel, world: World, tools: Tools, *, secrets: bool) -> Document:
    application = model.application
    number = application.application_id
    return {
        "application_id": number,
        "name": application.name,
        "description": application.description,
        "project_id": application.project_id,
        "settings": dict(application.settings),
        "service_meta": service_meta_document(application, tools, secrets=secrets),
        **rules_document(model),
        **keys_document(number, world, tools, secrets=secrets),
        "users": users_document(model, world),
    }
