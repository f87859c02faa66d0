"""Applications: get, save, move, delete (interface §4.4, R5, R6)."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.audit.recorder import Recorder, describe_changes
from gatehouse.fields.derive import document_values
from gatehouse.images.loading import ImageLoader, NewImage
from gatehouse.images.model import LOGO, BadImage, image_url
from gatehouse.kernel.addresses import Network
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import Conflict, Refused
from gatehouse.keys.sealing import MasterKeys
from gatehouse.permissions.authentication.application_keys import new_service_key
from gatehouse.permissions.commands.drafts import Draft, TagsDraft
from gatehouse.permissions.commands.projects import find_live_project
from gatehouse.permissions.commands.versions import NEW_VERSION, refuse_old_version
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.apis import NOTHING_RESERVED, ReservedResources, check_api
from gatehouse.permissions.documents.fields import read_values
from gatehouse.permissions.documents.sites import NAMING_APPLICATIONS, SECOND_APPLICATION, check_protected_sites
from gatehouse.permissions.errors import ApplicationNotFound, Malformed, NoRight, VersionConflict
from gatehouse.permissions.model.application import (
    CHANGEABLE_APPLICATION_FIELDS,
    PRIVATE_KEY_PURPOSE,
    READ_APPLICATION_FIELDS,
    Application,
)
from gatehouse.permissions.model.facts import Assignment, ScopeHoldings, UserRecord
from gatehouse.permissions.model.rules import application_scope
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open, require_operation
from gatehouse.permissions.store import ApplicationStore, EditResult, NewApplication, ProjectStore

CREATOR_ROLES: Final = ("app_developer", "app_users_manager")
CREATOR_SECRETS: Final[Mapping[str, object]] = {  # R5; never secret
    "application": {
        rule: {"value": True}
        for rule in ("canRead", "canReadSchema", "canModifySchema", "canSeeRoleList", "canCreateJwt", "canSave")
    },
    "meta": {
        part: {"canRead": {"value": "all"}, "canWrite": {"value": "all"}} for part in ("roles", "private", "public")
    },
}


class CentralStays(Refused):
    public = "Application 1 is the service itself and cannot be removed or moved."


class ApplicationRemoved(Conflict):
    public = "The application was removed."


class ApplicationDraft(Draft, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of a save."""

    application_id: str | int | UnsetType | None = UNSET
    name: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    project_id: str | UnsetType | None = UNSET
    settings: dict[str, object] | UnsetType | None = UNSET
    service_meta: dict[str, object] | UnsetType | None = UNSET
    protected_sites: dict[str, object] | UnsetType | None = UNSET  # rules by origin; only administrators change them
    api: dict[str, object] | UnsetType | None = UNSET
    logo: bytes | UnsetType | None = UNSET  # an image as base64
    logo_uri: str | UnsetType | None = UNSET  # fetched once; the address that this service answers changes nothing


class SavedApplication(msgspec.Struct, frozen=True, kw_only=True):
    application: Application
    warnings: tuple[str, ...] = ()


class ApplicationCommands:
    def __init__(
        self,
        *,
        store: ApplicationStore,
        projects: ProjectStore,
        images: ImageLoader,
        masters: MasterKeys,
        recorder: Recorder,
        clock: Clock,
        reachable: Sequence[Network],
        reserved: ReservedResources,
        base_url: str,
    ) -> None:
        """`reachable`: private networks that the operator allows outbound requests to (outbound.allow)."""
        self._reserved = reserved
        self._store = store
        self._images = images
        self._base_url = base_url
        self._projects = projects
        self._reachable = tuple(reachable)
        self._masters = masters
        self._recorder = recorder
        self._clock = clock

    async def get(self, actor: Actor, application_id: int) -> Application:
        return await find_application(self._store, actor, Operation.APPLICATION_GET, application_id)

    async def save(self, actor: Actor, draft: ApplicationDraft) -> SavedApplication:
        if draft.application_id is UNSET or draft.application_id is None:
            return await self._with_warnings(await self._create(actor, draft), had_sites=False)
        return await self._change(actor, grammar.parse_application_id(draft.application_id), draft)

    async def delete(self, actor: Actor, application_id: int, version: int | UnsetType = UNSET) -> Application:
        seen = await find_application(self._store, actor, Operation.APPLICATION_DELETE, application_id)
        if seen.is_central:
            raise CentralStays

        def change(state: Application) -> EditResult[Application]:
            refuse_moved(state, seen)
            if state.removed:
                return EditResult(state, ())
            refuse_old_version(version, state.version)
            record = self._record(AuditEvent.APPLICATION_REMOVED, actor, state.application_id)
            return EditResult(replace(state, removed=True), (record,))

        return await self._store.edit_application(application_id, change)

    async def save_tags(self, actor: Actor, application_id: int, draft: TagsDraft) -> Application:
        seen = await find_application(self._store, actor, Operation.APPLICATION_TAGS, application_id)
        wanted = draft.checked_tags

        def change(state: Application) -> EditResult[Application]:
            refuse_moved(state, seen)
            refuse_removed(state)
            refuse_old_version(draft.version, state.version)
            meta = {**state.service_meta, "tags": list(wanted)}
            details = describe_changes({"tags": state.service_meta.get("tags", [])}, {"tags": list(wanted)})
            record = self._record(AuditEvent.APPLICATION_TAGGED, actor, state.application_id, details)
            return EditResult(replace(state, service_meta=meta), (record,))

        return await self._store.edit_application(application_id, change)

    async def _create(self, actor: Actor, draft: ApplicationDraft) -> Application:
        project_id = await self._project_of(actor, draft.project_id)
        home = GuardTarget(project_id=project_id)
        require_operation(
            actor.rights,
            Operation.APPLICATION_CREATE_IN_PROJECT if project_id else Operation.APPLICATION_CREATE,
            home,
        )
        refuse_old_version(draft.version, NEW_VERSION)
        if draft.name is UNSET:
            raise Malformed("data.name: required for a new application").on_screen("required_application")
        draft = msgspec.structs.replace(draft, project_id=project_id)
        blank = Application(application_id=0, name="", project_id=project_id, created_at=self._clock.now())
        # Callers who may create an application may also save it and its keys.
        wanted = self._apply_draft(
            actor, blank, draft, may_publish=actor.rights.holds_at_root("can_publish_services")
        )
        logo = await self._load_logo(actor, draft, wanted)
        wanted = with_logo(wanted, logo)
        now = self._clock.now()

        def new(application_id: int) -> tuple[NewApplication, Sequence[AuditRecord]]:
            application = replace(wanted, application_id=application_id)
            if application.service_key is not None:
                application = replace(
                    application, service_key=replace(application.service_key, application_id=application_id)
                )
            record = self._record(
                AuditEvent.APPLICATION_CREATED,
                actor,
                application_id,
                {"name": application.name, "project_id": project_id},
            )
            schema = ApplicationSchema(application_id=application_id, updated_at=now)
            creator = creator_record(application, actor.user_id) if actor.user_id else None
            made = NewApplication(application=application, schema=schema, creator=creator, logo=logo or None)
            return made, (record,)

        return await self._store.create_application(new)

    async def _change(self, actor: Actor, application_id: int, draft: ApplicationDraft) -> SavedApplication:
        seen = await find_application(self._store, actor, Operation.APPLICATION_SAVE, application_id)
        if draft.project_id is not UNSET:
            project_id = await self._project_of(actor, draft.project_id)
            self._refuse_move(actor, seen, project_id)
            draft = msgspec.structs.replace(draft, project_id=project_id)
        may_publish = is_open(actor.rights, Operation.SERVICE_META, application_target(application_id, seen))
        refuse_removed(seen)  # before an image is fetched for it
        logo = await self._load_logo(actor, draft, seen)

        def change(state: Application) -> EditResult[Application]:
            refuse_moved(state, seen)
            refuse_removed(state)
            refuse_old_version(draft.version, state.version)
            after = with_logo(self._apply_draft(actor, state, draft, may_publish=may_publish), logo)
            details = describe_changes(application_audit_fields(state), application_audit_fields(after))
            return EditResult(after, (self._record(AuditEvent.APPLICATION_CHANGED, actor, application_id, details),))

        saved = await self._store.edit_application(application_id, change, logo or None)
        return await self._with_warnings(saved, had_sites=bool(seen.protected_sites))

    async def _with_warnings(self, saved: Application, *, had_sites: bool) -> SavedApplication:
        """Warn of the first site of a second application: proxies must name theirs from now on."""
        is_first = bool(saved.protected_sites) and not had_sites
        is_second = is_first and await self._store.count_applications_with_sites() == NAMING_APPLICATIONS
        return SavedApplication(application=saved, warnings=(SECOND_APPLICATION,) if is_second else ())

    async def _load_logo(self, actor: Actor, draft: ApplicationDraft, application: Application) -> NewImage:
        """Return the new logo that the draft asks for. Raises Malformed, Unavailable."""
        current = image_url(self._base_url, application.logo)
        try:
            return await self._images.load_change(
                draft.logo, draft.logo_uri, LOGO, field="logo", current=current, uploader=actor.origin.actor
            )
        except BadImage as error:
            said = Malformed(f"data.{error.field}: {error.detail}")
            raise said.on_screen(error.screen_key, **error.screen_values) from None

    def _apply_draft(
        self, actor: Actor, state: Application, draft: ApplicationDraft, *, may_publish: bool
    ) -> Application:
        after = apply_application_draft(state, draft, self._reachable, reserved=self._reserved)
        if draft.service_meta is not UNSET:
            members = without_keys(state) if draft.service_meta is None else draft.service_meta
            described = self._apply_service_meta(actor, after, members)
            require_publishing(may_publish=may_publish or described == after)  # unchanged values may be saved back
            after = described
        if after.protected_sites != state.protected_sites:  # visitors are signed in there without consent
            require_operation(actor.rights, Operation.ADMINISTER, application_target(state.application_id, state))
        return after

    def _apply_service_meta(self, actor: Actor, state: Application, members: Mapping[str, object]) -> Application:
        meta = grammar.check_service_meta(
            {name: value for name, value in members.items() if name not in ("private_key", "public_key")},
            place="data.service_meta",
        )
        private, public = members.get("private_key", UNSET), members.get("public_key")
        sealed, key = state.sealed_private_key, state.service_key
        if private is not UNSET:
            sealed = None if private is None else self._seal_private_key(grammar.check_private_key(private))
        if public is None:  # an absent member is removed, except the private key, which no response contains (SC-22)
            key = None
        else:
            key = new_service_key(public, application_id=state.application_id, now=self._clock.now(), before=key)
        if (sealed, key) != (state.sealed_private_key, state.service_key):
            self._refuse_keys(actor, state)
        shown = {} if key is None else {"public_key": key.pem}
        return replace(state, service_meta={**meta, **shown}, sealed_private_key=sealed, service_key=key)

    def _refuse_keys(self, actor: Actor, state: Application) -> None:
        """Refuse key changes without canCreateJwt (R6), which the creator of an application has there."""
        if state.application_id:
            require_operation(
                actor.rights, Operation.APPLICATION_KEYS, application_target(state.application_id, state)
            )

    def _seal_private_key(self, private: str) -> bytes:
        return self._masters.seal(private.encode(), purpose=PRIVATE_KEY_PURPOSE)

    def _refuse_move(self, actor: Actor, seen: Application, project_id: str | None) -> None:
        if project_id == seen.project_id:
            return
        if seen.is_central:
            raise CentralStays
        if project_id is None:  # as for a new application: interface §5.5
            require_operation(actor.rights, Operation.APPLICATION_CREATE)
        else:
            require_operation(actor.rights, Operation.APPLICATION_MOVE_IN, GuardTarget(project_id=project_id))
        if seen.project_id is not None:
            require_operation(actor.rights, Operation.APPLICATION_MOVE_OUT, GuardTarget(project_id=seen.project_id))

    async def _project_of(self, actor: Actor, name: str | UnsetType | None) -> str | None:
        """The id of a project given by id or alias. Raises for a removed one."""
        if name is UNSET or name is None:
            return None
        named = grammar.check_project_id(name, "data.project_id")
        return (await find_live_project(self._projects, actor.rights, named)).project.project_id

    def _record(
        self,
        event: AuditEvent,
        actor: Actor,
        application_id: int,
        details: Mapping[str, str | int | bool | None] | None = None,
    ) -> AuditRecord:
        return self._recorder.record(event, actor.origin, subject=f"application {application_id}", details=details)


def apply_application_draft(
    state: Application,
    draft: ApplicationDraft,
    reachable: tuple[Network, ...],
    place: str = "data",
    *,
    reserved: ReservedResources = NOTHING_RESERVED,
) -> Application:
    """The application with the fields that are given, service_meta apart; the project is a stored id."""
    fields = dict(read_values(draft, READ_APPLICATION_FIELDS, f"{place}."))
    if draft.project_id is not UNSET:
        fields["project_id"] = draft.project_id
    if draft.settings is not UNSET:
        settings = draft.settings or {}
        fields["settings"] = grammar.check_application_settings(settings, f"{place}.settings", reachable)
    if draft.protected_sites is not UNSET:
        fields["protected_sites"] = check_protected_sites(draft.protected_sites or {}, f"{place}.protected_sites")
    if draft.api is not UNSET:
        fields["api"] = api = check_api(draft.api, f"{place}.api")
        if api is not None and api != state.api:  # one that is stored already keeps working
            reserved.refuse(str(api["resource"]), f"{place}.api.resource")
    return replace(state, **fields)


def with_logo(application: Application, logo: NewImage) -> Application:
    """Return the application with the ID of a new logo, without one, or with UNSET as it is."""
    return application if logo is UNSET else replace(application, logo="" if logo is None else logo.image_id)


def application_target(application_id: int, application: Application | None) -> GuardTarget:
    return GuardTarget(
        application_id=application_id, project_id=None if application is None else application.project_id
    )


async def find_application(
    store: ApplicationStore, actor: Actor, operation: Operation, application_id: int
) -> Application:
    """Find the application. Raises NoRight before it reveals whether it exists (checklist PA-13)."""
    try:
        application: Application | None = await store.application(application_id)
    except ApplicationNotFound:
        application = None
    require_operation(actor.rights, operation, application_target(application_id, application))
    if application is None:
        raise ApplicationNotFound
    return application


def require_publishing(*, may_publish: bool) -> None:
    if not may_publish:
        raise NoRight("service_meta needs can_publish_services and the permission to save")


def refuse_moved(state: Application, seen: Application) -> None:
    """Refuse an application that moved since rights were checked."""
    if state.project_id != seen.project_id:
        raise VersionConflict


def refuse_removed(application: Application) -> None:
    if application.removed:
        raise ApplicationRemoved


def without_keys(application: Application) -> Mapping[str, object]:
    """The members that clear service_meta; they name only keys that exist, because keys need more rights."""
    cleared: dict[str, object] = {}
    if application.sealed_private_key is not None:
        cleared["private_key"] = None
    if application.service_key is not None:
        cleared["public_key"] = None
    return cleared


def creator_record(application: Application, user_id: str) -> UserRecord:
    """Return the creator's record: in a project, roles on the application; elsewhere, its secret_data (R5)."""
    if application.project_id is None:
        return UserRecord(application_id=application.application_id, user_id=user_id, secret_data=CREATOR_SECRETS)
    scope = application_scope(application.project_id, application.application_id)
    roles = tuple(Assignment(role=role) for role in CREATOR_ROLES)
    return UserRecord(application_id=CENTRAL_APPLICATION, user_id=user_id, scopes={scope: ScopeHoldings(roles=roles)})


def fingerprint(sealed: bytes) -> str:
    """Return a fingerprint that distinguishes sealed keys and reveals nothing about them."""
    return sha256(sealed).hex()[:8]


def application_audit_fields(application: Application) -> Mapping[str, object]:
    return {
        **document_values(application, CHANGEABLE_APPLICATION_FIELDS),
        "api": application.api or {},
        "logo": application.logo,
        "private_key": None
        if application.sealed_private_key is None
        else fingerprint(application.sealed_private_key),
    }
