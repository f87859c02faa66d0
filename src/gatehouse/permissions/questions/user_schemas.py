"""What a user's schema looks like to whoever asks for it: its shape, and the sections he may see (interface §4.5)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Final

from gatehouse.kernel.addresses import Address
from gatehouse.kernel.background import run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.callers.callers import Caller
from gatehouse.permissions.callers.desk import Desk, Visit
from gatehouse.permissions.callers.standing import CallerKind
from gatehouse.permissions.documents.records import first_end, record_document
from gatehouse.permissions.errors import (
    ANSWER_MOST,
    AnswerTooLarge,
    ApplicationNotFound,
    Malformed,
    NoRight,
    PersonNotFound,
    ProjectNotFound,
)
from gatehouse.permissions.evaluation.effective import Effective
from gatehouse.permissions.evaluation.reading import Case, Reading
from gatehouse.permissions.evaluation.shapes import (
    EVERYWHERE,
    NOWHERE,
    Prefix,
    Shape,
    ShapeOptions,
    TooLong,
    asked_scopes,
)
from gatehouse.permissions.evaluation.weighing import record_work
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rule import Section
from gatehouse.permissions.model.scope import ROOT, ResourceKind, Scope
from gatehouse.permissions.model.user_record import Holdings, UserRecord
from gatehouse.permissions.rights.guard import About, Operation, is_open
from gatehouse.permissions.rights.rights import Rights
from gatehouse.permissions.rights.secret_data import NO_SECRETS, WHAT_IS_HELD, Part
from gatehouse.permissions.store import ApplicationStore, ProjectStore

NARROWER: Final = (
    "ask for a section or some of the rules with options.prefix, for one project with options.project_id, or "
    "without projects with options.hide_project_access"
)
ALL_PARTS: Final = frozenset(Part)
SECTION_PARTS: Final[Mapping[str, Part]] = {
    "login": Part.SECRET,
    "private_data": Part.PRIVATE,
    "public_data": Part.PUBLIC,
    "roles": Part.ROLES,
    "secret_data": Part.SECRET,
}


class ViewType(StrEnum):
    TREE = "tree"
    LIST = "list"
    LIST_SHORT = "list_short"
    ROLES = "roles"


NEEDS: Final[Mapping[ViewType, frozenset[Part]]] = {  # at least one of these has to be readable
    ViewType.TREE: ALL_PARTS,
    ViewType.LIST: frozenset({Part.PRIVATE, Part.PUBLIC}),
    ViewType.LIST_SHORT: frozenset({Part.PRIVATE, Part.PUBLIC}),
    ViewType.ROLES: frozenset({Part.ROLES}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions:
    project: str | None = None  # an id or alias
    hide_project_access: bool = False
    with_exp: bool = False
    with_roles: bool = False
    with_apps_data: bool = False
    prefix: Prefix | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    data: object
    work: int = 0  # how much work it is to encode
    user_id: str
    expired: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What of whom a caller sees."""

    caller: Caller
    case: Case
    parts: frozenset[Part]
    address: Address | None = None


class Views:
    def __init__(
        self,
        *,
        desk: Desk,
        reading: Reading,
        applications: ApplicationStore,
        projects: ProjectStore,
        clock: Clock,
    ) -> None:
        self._desk = desk
        self._reading = reading
        self._applications = applications
        self._projects = projects
        self._clock = clock

    async def view(self, caller: Caller, user_id: str, kind: ViewType, options: ViewOptions) -> View:
        """Raises NoRight when nothing that was asked for may be read."""
        application_id = caller.application_id
        if application_id is None:
            raise Malformed("application_id: required")
        if kind in (ViewType.TREE, ViewType.ROLES) and (options.with_roles or options.with_apps_data):
            raise Malformed("options: with_roles and with_apps_data need a list type")
        if kind in (ViewType.TREE, ViewType.ROLES) and options.prefix is not None:
            raise Malformed("options: prefix needs a list type")
        sight = await self._sight(caller, user_id, application_id)
        if not sight.parts & NEEDS[kind]:
            raise NoRight(f"{kind} of user {user_id}")
        if application_id not in sight.case.models:
            raise ApplicationNotFound
        return await self._shown(sight, application_id, kind, options)

    async def _sight(self, caller: Caller, user_id: str, application_id: int) -> Sight:
        if caller.facts is None:  # a service asks for itself: roles only, of its own application
            case = await self._case_of(user_id, application_id)
            return Sight(caller=caller, case=case, parts=frozenset({Part.ROLES}))
        if user_id == caller.user_id:
            case = await self._reading.case(caller.facts)
            return Sight(caller=caller, case=case, parts=ALL_PARTS, address=caller.address)
        if caller.by is CallerKind.EXCHANGED:
            raise NoRight("an exchanged JWT is valid only for the owner's own record")  # R2
        visit = await self._desk.visit(caller)
        parts = readable(visit, user_id)
        if not parts:
            raise NoRight(f"user {user_id}")
        try:
            return Sight(caller=caller, case=await self._case_of(user_id, application_id), parts=parts)
        except PersonNotFound:
            if visit.rights.knows_who_exists:
                raise
            raise NoRight(f"no user {user_id}") from None

    async def _case_of(self, user_id: str, application_id: int) -> Case:
        facts = await self._reading.facts(user_id, (application_id,))
        if facts is None:
            raise PersonNotFound
        return await self._reading.case(facts)

    async def _shown(self, sight: Sight, application_id: int, kind: ViewType, options: ViewOptions) -> View:
        facts, now = sight.case.facts, self._clock.now()
        record = facts.records[application_id]
        held = await self._reading.effective(sight.case, application_id, sight.address)
        shape = await self._shape_options(sight, kind, options)
        if kind is ViewType.TREE:
            work = record_work(record)
            data = await run_off_loop(work, tree_data, sight, application_id, shape)
        else:
            work = held.work
            data = await self._list(sight.case, held, Shape(kind.value), shape)
        if options.with_roles or options.with_apps_data:
            data = {"rules": data, **await self._beside(sight, held, shape, options)}
        return View(
            data=data,
            work=work,
            user_id=facts.subject.user_id,
            expired=await run_off_loop(end_work(sight, held), told_end, sight, held, kind, shape, now),
            version=record.version,
        )

    async def _list(self, case: Case, held: Effective, kind: Shape, shape: ShapeOptions) -> tuple[str, ...]:
        """Raises AnswerTooLarge."""
        try:
            return await self._reading.rendered(case, held, kind, shape)
        except TooLong:
            raise AnswerTooLarge(NARROWER) from None

    async def _shape_options(self, sight: Sight, kind: ViewType, options: ViewOptions) -> ShapeOptions:
        """Rules held in projects are written in private_data, and seen with it; roles are roles everywhere."""
        seen = kind is ViewType.ROLES or Part.PRIVATE in sight.parts
        return ShapeOptions(
            project_id=None if options.project is None else await self._project_id(options.project),
            hide_project_access=options.hide_project_access or not seen,
            with_exp=options.with_exp,
            sections=sections_of(sight.parts),
            prefix=options.prefix,
            longest=ANSWER_MOST,
        )

    async def _project_id(self, name: str) -> str:
        """Unknown or removed: the root alone is told, and not why (checklist SC-11)."""
        try:
            project = (await self._projects.project(name)).project
        except ProjectNotFound:
            return NOWHERE
        return NOWHERE if project.removed else project.project_id

    async def _beside(
        self, sight: Sight, held: Effective, shape: ShapeOptions, options: ViewOptions
    ) -> dict[str, object]:
        found: dict[str, object] = {}
        if options.with_roles and Part.ROLES in sight.parts:
            found["roles"] = await self._reading.rendered(sight.case, held, Shape.ROLES, shape)
        if options.with_apps_data:
            open_to = await run_off_loop(held.work, lambda: held.scopes)
            scopes = [scope for scope in asked_scopes(held, shape) if scope in open_to and not scope.is_root]
            rights = (await self._desk.visit(sight.caller)).rights
            found["projects"] = projects_of(sight.case, scopes, rights)
            found["apps"] = await self._apps(scopes, held.application_id, rights)
        return found

    async def _apps(self, scopes: Sequence[Scope], asked: int, rights: Rights) -> dict[str, list[dict[str, object]]]:
        """The one asked about, those he holds something on, and those the caller may get (SC-12)."""
        single = {scope.resource_id for scope in scopes if scope.kind is ResourceKind.APPLICATION} | {str(asked)}
        elsewhere = replace(rights, secret=NO_SECRETS)  # that is about the application asked about, and no other
        found: dict[str, list[dict[str, object]]] = {}
        for application in await self._applications.applications_in({scope.project_id for scope in scopes}):
            number, project_id = application.application_id, application.project_id or ""
            about = About(application_id=number, project_id=project_id)
            if str(number) in single or is_open(elsewhere, Operation.APPLICATION_GET, about):
                found.setdefault(project_id, []).append({"id": number, "name": application.name})
        return found


def tree_data(sight: Sight, application_id: int, shape: ShapeOptions) -> object:
    record = sight.case.facts.records[application_id]
    asked = replace(record, scopes=told_scopes(record.scopes, shape))
    return tree_of(asked, sight.case.models[application_id], sight.parts)


@cache
def sections_of(parts: frozenset[Part]) -> frozenset[Section]:
    """The sections of the root that are told to whoever reads these parts."""
    return frozenset(
        section for section, part in ((Section.PRIVATE, Part.PRIVATE), (Section.PUBLIC, Part.PUBLIC)) if part in parts
    )


def readable(visit: Visit, user_id: str) -> frozenset[Part]:
    """The parts of somebody else's record that the caller may read."""
    return frozenset(part for part in Part if visit.rights.reads(part, user_id))


def told_scopes(scopes: Mapping[Scope, Holdings], shape: ShapeOptions) -> Mapping[Scope, Holdings]:
    """Of a record what an answer with these options is about."""
    return {
        scope: held
        for scope, held in scopes.items()
        if scope.is_root or (not shape.hide_project_access and shape.project_id in (EVERYWHERE, scope.project_id))
    }


def tree_of(record: UserRecord, model: ApplicationModel, parts: frozenset[Part]) -> dict[str, object]:
    """The stored record without the sections that may not be read."""
    names = {key: role.name for key, role in model.roles.items()}
    whole = record_document(record, names)
    return {
        **{name: section for name, section in whole.items() if SECTION_PARTS[name] in parts},
        "version": record.version,
    }


def saved_view(visit: Visit, record: UserRecord, model: ApplicationModel, now: int) -> View:
    """What a save answers: the record as it is now, as far as whoever saved it may read it."""
    parts = ALL_PARTS if record.user_id == visit.caller.user_id else readable(visit, record.user_id)
    return View(
        data=tree_of(record, model, parts),
        user_id=record.user_id,
        expired=first_end(seen_record(record, parts), now),
        version=record.version,
    )


def end_work(sight: Sight, held: Effective) -> int:
    """Of `told_end`: who sees all parts is told the end of the whole, which is known."""
    return 0 if sight.parts >= WHAT_IS_HELD else held.work


def told_end(sight: Sight, held: Effective, kind: ViewType, shape: ShapeOptions, now: int) -> int:
    """The earliest end of anything in the scopes asked for (R5), as far as the reader sees what it is that ends."""
    scopes = asked_scopes(held, shape)
    if sight.parts >= WHAT_IS_HELD:
        return held.first_end(now, scopes)
    if kind is ViewType.TREE:
        record = sight.case.facts.records[held.application_id]
        return first_end(seen_record(replace(record, scopes=told_scopes(record.scopes, shape)), sight.parts), now)
    if kind is ViewType.ROLES:
        ends = (one.end.shown(now) for scope in scopes for one in held.assigned(scope).values())
    else:
        ends = (now + left for scope in scopes for left in lefts_shown(held, scope, shape, now))
    return min((end for end in ends if end), default=0)


def lefts_shown(held: Effective, scope: Scope, shape: ShapeOptions, now: int) -> Iterable[int]:
    rules = held.rules(scope)
    shown = {rule for rule in rules.held if not scope.is_root or rule.section in shape.sections}
    return rules.lefts(shown, now).values()


def seen_record(record: UserRecord, parts: frozenset[Part]) -> UserRecord:
    """Only what may be read of it; what is held in projects is read with private_data."""
    root = Holdings(
        roles=record.root.roles if Part.ROLES in parts else (),
        private_data=record.root.private_data if Part.PRIVATE in parts else {},
        public_data=record.root.public_data if Part.PUBLIC in parts else {},
    )
    below = record.scopes if Part.PRIVATE in parts else {}
    return replace(record, scopes={**below, ROOT: root})


def projects_of(case: Case, scopes: Sequence[Scope], rights: Rights) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for project_id in sorted({scope.project_id for scope in scopes}):
        project = case.structure.projects[project_id].project
        shown = project.aliases if is_open(rights, Operation.PROJECT_GET, About(project_id=project_id)) else ()
        found[project_id] = {"name": project.title, **({"aliases": list(shown)} if shown else {})}
    return found
