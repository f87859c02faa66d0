"""Applications with their rules, roles and keys; application_users.py has what users hold in them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import describe_changes
from gatehouse.images.loading import NewImage
from gatehouse.images.model import LOGO, application_logo_owner
from gatehouse.permissions.commands.app_schemas import describe_rule_changes
from gatehouse.permissions.commands.applications import application_audit_fields
from gatehouse.permissions.documents.differences import differences, tally_differences
from gatehouse.permissions.documents.sites import NAMING_APPLICATIONS, SECOND_APPLICATION
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.provision.claims import Claim, claims_of
from gatehouse.provision.document import Document
from gatehouse.provision.model import (
    AddPublicKey,
    AuditNote,
    Change,
    ChangeApplication,
    ChangeSchema,
    Problems,
    PutAccessKey,
    ReadScope,
    StoredState,
    Write,
)
from gatehouse.provision.sections.application_entry import (
    APPLICATION,
    ApplicationEdit,
    ApplicationFileEntry,
    application_addition,
    changed_rule_fields,
    merge_application,
    rules_document,
    with_rules,
)
from gatehouse.provision.sections.application_keys import (
    WantedKeys,
    keys_document,
    service_meta_document,
    wanted_keys,
    with_service_meta,
)
from gatehouse.provision.sections.application_users import ApplicationUsersPlanner, stored_application, users_document
from gatehouse.provision.sections.images import exported_url, image_writes, merged_image_id, wanted_image
from gatehouse.provision.sections.projects import next_application_id
from gatehouse.provision.sections.references import EntryPlanner, References, collect_problems
from gatehouse.provision.sections.section import (
    Context,
    Edit,
    Located,
    Options,
    PlanStage,
    ResolvedSection,
    Section,
    SectionPlan,
)

FIELDS = ("name", "description", "project_id", "settings", "service_meta", "protected_sites", "api", "logo")


def application_scope(entries: Sequence[ApplicationFileEntry]) -> ReadScope:
    people = frozenset(user_id for entry in entries if entry.users is not UNSET for user_id in entry.users)
    return ReadScope(permissions=True, user_ids=people, record_users=people)


async def load_logos(
    entries: Sequence[Located[ApplicationFileEntry]], state: StoredState, context: Context, options: Options
) -> ResolvedSection:
    planning, loaded, problems = ApplicationPlanner(state, context, options), [], Problems()
    for located in entries:
        with collect_problems(problems):
            loaded.append(replace(located, image=await planning.load_logo(located)))
    return ResolvedSection(loaded, tuple(problems.lines))


def application_documents(state: StoredState, context: Context) -> list[Document]:
    permissions = state.permissions
    live = [model for _, model in sorted(permissions.applications.items()) if permissions.is_live(model.application)]
    return [application_document(model, state, context) for model in live]


class ApplicationPlanner(EntryPlanner[ApplicationFileEntry]):
    def __init__(self, state: StoredState, context: Context, options: Options) -> None:
        super().__init__(state, context, options)
        self._removed: set[int] = set()
        self._had_sites = len(self._applications_with_sites())

    def plan_entries(self, entries: Iterable[Located[ApplicationFileEntry]]) -> SectionPlan:
        planned = super().plan_entries(entries)
        self._refuse_shared_claims()
        return replace(planned, problems=tuple(self.problems.lines), warnings=tuple(self._site_warnings()))

    def plan_entry(self, located: Located[ApplicationFileEntry]) -> Change | None:
        found = self._resolve(located)
        self.refuse_second_entry(found.after.application.application_id, "application", located.place)
        self._refuse_namesake(found)
        keys = wanted_keys(found, self._permissions, self._context, self._options)
        self._permissions = self._permissions.with_application(found.after)
        for write in keys.writes:
            if isinstance(write, PutAccessKey):
                self._permissions = self._permissions.with_access_key(write.before, write.after)
        return application_change(found, keys, self._context.now)

    async def load_logo(self, located: Located[ApplicationFileEntry]) -> NewImage:
        if located.entry.logo_uri is UNSET:
            return UNSET
        before = stored_application(located.entry, self._permissions, self.references())
        number, logo = (0, "") if before is None else (before.application.application_id, before.application.logo)
        return await wanted_image(
            located.entry.logo_uri,
            LOGO,
            self._state.images.get(application_logo_owner(number)),
            self._context,
            image_id=logo,
            place=f"{located.place}.logo_uri",
        )

    def removals(self) -> Iterator[Change]:
        """Not application 1, which is the service itself, and none in a removed project, which has no effect."""
        for number, model in sorted(self._permissions.applications.items()):
            application = model.application
            if number not in self._places and not application.is_central and self._permissions.is_live(application):
                self._removed.add(number)
                yield application_removal(application)

    def _refuse_shared_claims(self) -> None:
        """Refuse two applications with one site or API resource, after all entries: their order does not matter."""
        owners: dict[Claim, int] = {}
        kept = self._permissions.applications.keys() - self._removed
        for number in sorted(kept, key=lambda number: (number in self._places, number)):  # those of the file last
            for field, claimed in sorted(claims_of(self._permissions.applications[number].application)):
                owner = owners.setdefault((field, claimed), number)
                if owner != number and number in self._places:
                    self.problems.add(f"{self._places[number]}.{field}", f"application {owner} has {claimed} already")

    def _site_warnings(self) -> Iterator[str]:
        """Warn of the first sites of a second application: proxies must name theirs from now on."""
        if self._had_sites < NAMING_APPLICATIONS <= len(self._applications_with_sites()):
            yield SECOND_APPLICATION

    def _applications_with_sites(self) -> set[int]:
        return {
            number
            for number, model in self._permissions.applications.items()
            if model.application.protected_sites and number not in self._removed
        }

    def _resolve(self, located: Located[ApplicationFileEntry]) -> ApplicationEdit:
        place, entry = located.place, located.entry
        references = self.references()
        before = self._find_stored(entry, references, place)
        base = before or self._new_model(entry, place)
        application = merge_application(entry, base.application, references, self._context, place)
        if entry.service_meta is not UNSET:
            application = with_service_meta(
                application, entry.service_meta, self._context, self._options, f"{place}.service_meta"
            )
        application = replace(application, logo=merged_image_id(located.image, application.logo))
        model = with_rules(
            replace(base, application=application), entry, place, self.problems, prune=self._options.prune
        )
        return Edit(place=place, entry=entry, before=before, after=model, image=located.image)

    def _find_stored(
        self, entry: ApplicationFileEntry, references: References, place: str
    ) -> ApplicationModel | None:
        """By id if the entry has one, else by project and name."""
        if entry.application_id is not UNSET:
            return self._find_by_id(entry.application_id, place)
        if entry.name is UNSET:
            raise Malformed(f"{place}: needs an application_id or a name")
        name = entry.project_id
        home = None if name is UNSET or name is None else references.project(name, f"{place}.project_id")
        project_id = None if home is None else home.project.project_id
        found = [
            model
            for model in self._permissions.applications.values()
            if (model.application.project_id, model.application.name) == (project_id, entry.name)
            and self._permissions.is_live(model.application)
        ]
        if len(found) > 1:
            raise Malformed(f"{place}: several applications have this name; add the application_id")
        return found[0] if found else None

    def _find_by_id(self, number: int, place: str) -> ApplicationModel | None:
        found = self._permissions.applications.get(number)
        spent = found is None and number in self._permissions.spent_application_ids
        if spent or (found is not None and not self._permissions.is_live(found.application)):
            raise Malformed(f"{place}.application_id: application {number} was removed; IDs are never reused")
        return found

    def _new_model(self, entry: ApplicationFileEntry, place: str) -> ApplicationModel:
        if entry.name is UNSET:
            raise Malformed(f"{place}: a new application needs a name")
        named = entry.application_id
        listed = {one.entry.application_id for one in self._context.file.entries_of("applications")}
        reserved = {number for number in listed if isinstance(number, int)}
        number = next_application_id(self._permissions, reserved) if named is UNSET else named
        return ApplicationModel(
            application=Application(application_id=number, name="", created_at=self._context.now),
            schema=ApplicationSchema(application_id=number, updated_at=self._context.now),
            roles={},
        )

    def _refuse_namesake(self, found: ApplicationEdit) -> None:
        own = found.after.application
        for model in self._permissions.applications.values():
            other = model.application
            same = other.project_id == own.project_id is not None and other.name == own.name and not other.removed
            if same and other.application_id != own.application_id:
                raise Malformed(
                    f"{found.place}.name: application {other.application_id} of the project already has this name"
                )


def application_change(found: ApplicationEdit, keys: WantedKeys, now: int) -> Change | None:
    model, before, secret = found.after, found.before, generated_keys_text(keys)
    application = model.application
    logo = image_writes(application_logo_owner(application.application_id), found.image)
    if before is None:
        return application_addition(model, *logo, *keys.writes, notes=key_notes(keys), secret=secret)
    own = [name for name in FIELDS if getattr(before.application, name) != getattr(application, name)]
    if before.application.sealed_private_key != application.sealed_private_key:
        own.append("service_meta.private_key")
    ruled = changed_rule_fields(before, model)
    writes: list[Write] = [ChangeApplication(before.application, application)] if own else []
    writes += logo
    if ruled:
        stamped = replace(model, schema=replace(model.schema, updated_at=now))
        changes = tally_differences(differences(before, stamped))
        writes.append(ChangeSchema(replace(before, application=application), stamped, changes))
    notes = [application_note(before.application, application)] if own else []
    return APPLICATION.change(
        application,
        [*own, *ruled, *keys.fields],
        [*writes, *keys.writes],
        notes=[*notes, *rule_notes(before, model), *key_notes(keys)],
        secret=secret,
    )


def generated_keys_text(keys: WantedKeys) -> str | None:
    return ", ".join(f"{name}: {value}" for name, value in keys.generated.items()) or None


def application_note(before: Application, application: Application) -> AuditNote:
    return AuditNote(
        event=AuditEvent.APPLICATION_CHANGED,
        details=describe_changes(application_audit_fields(before), application_audit_fields(application)),
    )


def rule_notes(before: ApplicationModel, model: ApplicationModel) -> list[AuditNote]:
    return [AuditNote(event=event, details=details) for event, details in describe_rule_changes(before, model)]


def key_notes(keys: WantedKeys) -> list[AuditNote]:
    notes = []
    for write in keys.writes:
        match write:
            case PutAccessKey(_, key):
                notes.append(
                    AuditNote(
                        event=AuditEvent.ACCESS_KEY_MADE, details={"key_id": key.key_id, "comment": key.comment}
                    )
                )
            case AddPublicKey(key):
                notes.append(AuditNote(event=AuditEvent.APPLICATION_KEY_ADDED, details={"kid": key.kid}))
    return notes


def application_removal(application: Application) -> Change:
    note = AuditNote(event=AuditEvent.APPLICATION_REMOVED)
    return APPLICATION.removal(application, ChangeApplication(application, replace(application, removed=True)), note)


def application_document(model: ApplicationModel, state: StoredState, context: Context) -> Document:
    application, permissions = model.application, state.permissions
    number = application.application_id
    return {
        "application_id": number,
        "name": application.name,
        "description": application.description,
        "project_id": application.project_id,
        "settings": dict(application.settings),
        "service_meta": service_meta_document(application, context),
        "protected_sites": dict(application.protected_sites),
        "api": None if application.api is None else dict(application.api),
        "logo_uri": exported_url(application_logo_owner(number), state),
        **rules_document(model),
        **keys_document(number, permissions, context),
        "users": users_document(model, permissions),
    }


APPLICATIONS: Final = Section(
    name="applications",
    entry=ApplicationFileEntry,
    scope=application_scope,
    resolve=load_logos,
    plan=ApplicationPlanner.plan,
    documents=application_documents,
)
APPLICATION_USERS: Final = PlanStage(name=APPLICATIONS.name, plan=ApplicationUsersPlanner.plan)
