"""Show a user's record to a caller: its shape, and the sections the caller may see (interface §4.5)."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.kernel.addresses import Address
from gatehouse.kernel.background import run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest, Authenticator
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.authentication.vouching import CallerKind
from gatehouse.permissions.documents.records import first_end, record_document
from gatehouse.permissions.errors import (
    MAX_ANSWER_BYTES,
    AnswerTooLarge,
    ApplicationNotFound,
    Malformed,
    NoRight,
    PersonNotFound,
    ProjectNotFound,
)
from gatehouse.permissions.evaluation.effective import EffectivePermissions
from gatehouse.permissions.evaluation.loader import EvaluationInput, PermissionLoader
from gatehouse.permissions.evaluation.shapes import (
    ALL_PROJECTS,
    UNKNOWN_PROJECT,
    RulePrefix,
    Shape,
    ShapeOptions,
    TooLong,
    selected_scopes,
)
from gatehouse.permissions.evaluation.work import record_work
from gatehouse.permissions.model.facts import ApplicationModel, ScopeHoldings, UserRecord
from gatehouse.permissions.model.rules import ROOT, ResourceKind, RuleSection, Scope
from gatehouse.permissions.questions.person_input import PersonInputLoader, may_use_former_ids
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.permissions.rights.rights import Rights
from gatehouse.permissions.rights.secret_data import NO_SECRET_DATA, PERMISSION_PARTS, RecordPart
from gatehouse.permissions.store import ApplicationStore, ProjectStore

NARROWER_QUESTION: Final = (
    "ask for a section or some of the rules with options.prefix, for one project with options.project_id, or "
    "without projects with options.hide_project_access"
)
ALL_PARTS: Final = frozenset(RecordPart)
SECTION_PARTS: Final[Mapping[str, RecordPart]] = {
    "login": RecordPart.SECRET,
    "private_data": RecordPart.PRIVATE,
    "public_data": RecordPart.PUBLIC,
    "roles": RecordPart.ROLES,
    "secret_data": RecordPart.SECRET,
}


class ViewType(StrEnum):
    TREE = "tree"
    LIST = "list"
    LIST_SHORT = "list_short"
    ROLES = "roles"


PARTS_BY_VIEW: Final[Mapping[ViewType, frozenset[RecordPart]]] = {  # at least one of these has to be readable
    ViewType.TREE: ALL_PARTS,
    ViewType.LIST: frozenset({RecordPart.PRIVATE, RecordPart.PUBLIC}),
    ViewType.LIST_SHORT: frozenset({RecordPart.PRIVATE, RecordPart.PUBLIC}),
    ViewType.ROLES: frozenset({RecordPart.ROLES}),
}


class ViewOptions(Struct, frozen=True, kw_only=True):
    project: str | None = None  # an id or alias
    hide_project_access: bool = False
    with_exp: bool = False
    with_roles: bool = False
    with_apps_data: bool = False
    prefix: RulePrefix | None = None


class UserRecordView(Struct, frozen=True, kw_only=True):
    data: object
    work: int = 0  # how much work it is to encode
    user_id: str
    expired: int
    version: int


class RecordVisibility(Struct, frozen=True, kw_only=True):
    """Which parts of a person's record a caller may see."""

    caller: Caller
    evaluation_input: EvaluationInput
    parts: frozenset[RecordPart]
    address: Address | None = None


class UserRecordViews(Struct, kw_only=True, eq=False):
    authenticator: Authenticator
    permission_loader: PermissionLoader
    person_inputs: PersonInputLoader
    applications: ApplicationStore
    projects: ProjectStore
    clock: Clock

    async def view(self, caller: Caller, user_id: str, kind: ViewType, options: ViewOptions) -> UserRecordView:
        """Return a view of the record. Raises NoRight when none of the requested parts may be read."""
        application_id = caller.application_id
        if application_id is None:
            raise Malformed("application_id: required")
        if kind in (ViewType.TREE, ViewType.ROLES) and (options.with_roles or options.with_apps_data):
            raise Malformed("options: with_roles and with_apps_data need a list type")
        if kind in (ViewType.TREE, ViewType.ROLES) and options.prefix is not None:
            raise Malformed("options: prefix needs a list type")
        visibility = await self._find_visibility(caller, user_id, application_id)
        if not visibility.parts & PARTS_BY_VIEW[kind]:
            raise NoRight(f"{kind} of user {user_id}")
        if application_id not in visibility.evaluation_input.models:
            raise ApplicationNotFound
        return await self._render_view(visibility, application_id, kind, options)

    async def _find_visibility(self, caller: Caller, user_id: str, application_id: int) -> RecordVisibility:
        if caller.facts is None:  # a service calls for itself: only roles of its own application
            evaluation_input = await self.person_inputs.load(
                user_id, application_id, by_former_id=may_use_former_ids(caller)
            )
            return RecordVisibility(
                caller=caller, evaluation_input=evaluation_input, parts=frozenset({RecordPart.ROLES})
            )
        if user_id == caller.user_id:
            evaluation_input = await self.permission_loader.load_input(caller.facts)
            return RecordVisibility(
                caller=caller, evaluation_input=evaluation_input, parts=ALL_PARTS, address=caller.address
            )
        if caller.by is CallerKind.EXCHANGED:
            raise NoRight("an exchanged JWT is valid only for the owner's own record")  # R2
        authenticated = await self.authenticator.attach_rights(caller)
        parts = readable_parts(authenticated, user_id)
        if not parts:
            raise NoRight(f"user {user_id}")
        try:
            evaluation_input = await self.person_inputs.load(
                user_id, application_id, by_former_id=may_use_former_ids(caller, authenticated)
            )
        except PersonNotFound:
            if authenticated.rights.knows_who_exists:
                raise
            raise NoRight(f"no user {user_id}") from None
        return RecordVisibility(caller=caller, evaluation_input=evaluation_input, parts=parts)

    async def _render_view(
        self, visibility: RecordVisibility, application_id: int, kind: ViewType, options: ViewOptions
    ) -> UserRecordView:
        facts, now = visibility.evaluation_input.facts, self.clock.now()
        record = facts.records[application_id]
        effective = await self.permission_loader.evaluate(
            visibility.evaluation_input, application_id, visibility.address
        )
        shape = await self._shape_options(visibility, kind, options)
        if kind is ViewType.TREE:
            work = record_work(record)
            data = await run_off_loop(work, tree_data, visibility, application_id, shape)
        else:
            work = effective.work
            data = await self._render_list(visibility.evaluation_input, effective, Shape(kind.value), shape)
        if options.with_roles or options.with_apps_data:
            data = {"rules": data, **await self._render_extras(visibility, effective, shape, options)}
        return UserRecordView(
            data=data,
            work=work,
            user_id=facts.subject.user_id,
            expired=await run_off_loop(
                end_work(visibility, effective), visible_end, visibility, effective, kind, shape, now
            ),
            version=record.version,
        )

    async def _render_list(
        self, evaluation_input: EvaluationInput, effective: EffectivePermissions, kind: Shape, shape: ShapeOptions
    ) -> tuple[str, ...]:
        """Raises AnswerTooLarge."""
        try:
            return await self.permission_loader.render_list(evaluation_input, effective, kind, shape)
        except TooLong:
            raise AnswerTooLarge(NARROWER_QUESTION) from None

    async def _shape_options(
        self, visibility: RecordVisibility, kind: ViewType, options: ViewOptions
    ) -> ShapeOptions:
        """Rules held in projects are written in private_data, and seen with it; roles are roles everywhere."""
        seen = kind is ViewType.ROLES or RecordPart.PRIVATE in visibility.parts
        return ShapeOptions(
            project_id=None if options.project is None else await self._project_id(options.project),
            hide_project_access=options.hide_project_access or not seen,
            with_exp=options.with_exp,
            sections=sections_of(visibility.parts),
            prefix=options.prefix,
            max_length=MAX_ANSWER_BYTES,
        )

    async def _project_id(self, name: str) -> str:
        """For an unknown or removed project only the root is shown, without a reason (checklist SC-11)."""
        try:
            project = (await self.projects.project(name)).project
        except ProjectNotFound:
            return UNKNOWN_PROJECT
        return UNKNOWN_PROJECT if project.removed else project.project_id

    async def _render_extras(
        self, visibility: RecordVisibility, effective: EffectivePermissions, shape: ShapeOptions, options: ViewOptions
    ) -> dict[str, object]:
        extras: dict[str, object] = {}
        if options.with_roles and RecordPart.ROLES in visibility.parts:
            extras["roles"] = await self.permission_loader.render_list(
                visibility.evaluation_input, effective, Shape.ROLES, shape
            )
        if options.with_apps_data:
            open_to = await run_off_loop(effective.work, lambda: effective.nonempty_scopes)
            scopes = [scope for scope in selected_scopes(effective, shape) if scope in open_to and not scope.is_root]
            rights = (await self.authenticator.attach_rights(visibility.caller)).rights
            extras["projects"] = projects_of(visibility.evaluation_input, scopes, rights)
            extras["apps"] = await self._apps(scopes, effective.application_id, rights)
        return extras

    async def _apps(self, scopes: Sequence[Scope], asked: int, rights: Rights) -> dict[str, list[dict[str, object]]]:
        """The requested application, those the user holds something on, and those the caller may read (SC-12)."""
        single = {scope.resource_id for scope in scopes if scope.kind is ResourceKind.APPLICATION} | {str(asked)}
        elsewhere = replace(rights, secret=NO_SECRET_DATA)  # the right is about the requested application only
        by_project: dict[str, list[dict[str, object]]] = {}
        for application in await self.applications.applications_in({scope.project_id for scope in scopes}):
            number, project_id = application.application_id, application.project_id or ""
            about = GuardTarget(application_id=number, project_id=project_id)
            if str(number) in single or is_open(elsewhere, Operation.APPLICATION_GET, about):
                by_project.setdefault(project_id, []).append({"id": number, "name": application.name})
        return by_project


def tree_data(visibility: RecordVisibility, application_id: int, shape: ShapeOptions) -> object:
    record = visibility.evaluation_input.facts.records[application_id]
    asked = replace(record, scopes=selected_record_scopes(record.scopes, shape))
    return tree_of(asked, visibility.evaluation_input.models[application_id], visibility.parts)


def sections_of(parts: frozenset[RecordPart]) -> frozenset[RuleSection]:
    """The sections of the root that these parts make visible."""
    return frozenset(
        section
        for section, part in ((RuleSection.PRIVATE, RecordPart.PRIVATE), (RuleSection.PUBLIC, RecordPart.PUBLIC))
        if part in parts
    )


def readable_parts(request: AuthenticatedRequest, user_id: str) -> frozenset[RecordPart]:
    """The parts of another person's record that the caller may read."""
    return frozenset(part for part in RecordPart if request.rights.can_read(part, user_id))


def selected_record_scopes(
    scopes: Mapping[Scope, ScopeHoldings], shape: ShapeOptions
) -> Mapping[Scope, ScopeHoldings]:
    """The scopes of a record that these options select."""
    return {
        scope: holdings
        for scope, holdings in scopes.items()
        if scope.is_root or (not shape.hide_project_access and shape.project_id in (ALL_PROJECTS, scope.project_id))
    }


def tree_of(record: UserRecord, model: ApplicationModel, parts: frozenset[RecordPart]) -> dict[str, object]:
    """The stored record without the sections that may not be read."""
    names = {key: role.name for key, role in model.roles.items()}
    whole = record_document(record, names)
    return {
        **{name: section for name, section in whole.items() if SECTION_PARTS[name] in parts},
        "version": record.version,
    }


def saved_view(
    request: AuthenticatedRequest, record: UserRecord, model: ApplicationModel, now: int
) -> UserRecordView:
    """The response to a save: the new record, as far as the caller may read it."""
    parts = ALL_PARTS if record.user_id == request.caller.user_id else readable_parts(request, record.user_id)
    return UserRecordView(
        data=tree_of(record, model, parts),
        user_id=record.user_id,
        expired=first_end(readable_record(record, parts), now),
        version=record.version,
    )


def end_work(visibility: RecordVisibility, effective: EffectivePermissions) -> int:
    """Return the work of `visible_end`.

    None for callers who see all parts, because the end of the whole record is known.
    """
    return 0 if visibility.parts >= PERMISSION_PARTS else effective.work


def visible_end(
    visibility: RecordVisibility, effective: EffectivePermissions, kind: ViewType, shape: ShapeOptions, now: int
) -> int:
    """The earliest end in the selected scopes (R5) of anything that the reader may see."""
    scopes = selected_scopes(effective, shape)
    if visibility.parts >= PERMISSION_PARTS:
        return effective.first_end(now, scopes)
    if kind is ViewType.TREE:
        record = visibility.evaluation_input.facts.records[effective.application_id]
        return first_end(
            readable_record(replace(record, scopes=selected_record_scopes(record.scopes, shape)), visibility.parts),
            now,
        )
    if kind is ViewType.ROLES:
        ends = (
            granted_role.end.ends_at(now)
            for scope in scopes
            for granted_role in effective.granted_roles(scope).values()
        )
    else:
        ends = (now + left for scope in scopes for left in visible_seconds_left(effective, scope, shape, now))
    return min((end for end in ends if end), default=0)


def visible_seconds_left(
    effective: EffectivePermissions, scope: Scope, shape: ShapeOptions, now: int
) -> Iterable[int]:
    rules = effective.rules(scope)
    shown = {rule for rule in rules.held if not scope.is_root or rule.section in shape.sections}
    return rules.seconds_left(shown, now).values()


def readable_record(record: UserRecord, parts: frozenset[RecordPart]) -> UserRecord:
    """The readable parts; holdings in projects belong to private_data."""
    root = ScopeHoldings(
        roles=record.root.roles if RecordPart.ROLES in parts else (),
        private_data=record.root.private_data if RecordPart.PRIVATE in parts else {},
        public_data=record.root.public_data if RecordPart.PUBLIC in parts else {},
    )
    below = record.scopes if RecordPart.PRIVATE in parts else {}
    return replace(record, scopes={**below, ROOT: root})


def projects_of(
    evaluation_input: EvaluationInput, scopes: Sequence[Scope], rights: Rights
) -> dict[str, dict[str, object]]:
    projects: dict[str, dict[str, object]] = {}
    for project_id in sorted({scope.project_id for scope in scopes}):
        project = evaluation_input.structure.projects[project_id].project
        shown = project.aliases if is_open(rights, Operation.PROJECT_GET, GuardTarget(project_id=project_id)) else ()
        projects[project_id] = {"name": project.title, **({"aliases": list(shown)} if shown else {})}
    return projects
