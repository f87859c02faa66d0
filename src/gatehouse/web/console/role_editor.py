"""One role: what it says and for whom, its saving with who gains and who loses, and its removal."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.background import HEAVY, run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.app_schemas import AppSchemas, RoleDraft, merged
from gatehouse.permissions.errors import Malformed, RoleNotFound
from gatehouse.permissions.model.condition import Condition
from gatehouse.permissions.model.facts import ApplicationModel, Structure
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.questions.proposals import RoleProposal
from gatehouse.permissions.questions.roles import SeenRole
from gatehouse.permissions.questions.simulate import as_it_counts
from gatehouse.permissions.rights.guard import Operation
from gatehouse.permissions.store import ApplicationStore
from gatehouse.web.console.conditions import (
    Conditions,
    Row,
    changed_rows,
    condition_in,
    condition_words,
    is_about_rows,
    rows_in,
    typed_rows,
)
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.editing import Clash, clashes
from gatehouse.web.console.forecast import Foresight, sees_everybody
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.places import Entry
from gatehouse.web.console.review import review
from gatehouse.web.console.role_pages import (
    RemoveRoleContext,
    RoleContext,
    RoleForm,
    role_head,
    rule_groups,
    unsaid,
)
from gatehouse.web.console.roles import role_path
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.permissions.app_schemas import role_record

HERE: Final = Entry.ROLES
COUNT_LONGEST: Final = 10  # digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    model: ApplicationModel
    role: Role

    @property
    def application_id(self) -> int:
        return self.model.application.application_id

    @property
    def path(self) -> str:
        return role_path(self.application_id, self.role.name)


class RoleEditor:
    def __init__(
        self,
        *,
        schemas: AppSchemas,
        applications: ApplicationStore,
        conditions: Conditions,
        foresight: Foresight,
        desk: ConsoleDesk,
        clock: Clock,
    ) -> None:
        self._schemas = schemas
        self._applications = applications
        self._conditions = conditions
        self._foresight = foresight
        self._desk = desk
        self._clock = clock

    async def show(self, request: Request, guest: Guest) -> Response:
        seen = seen_role(request, guest)
        return await self._editor(request, guest, seen, form_of(seen.role), rows_in(seen.role.condition))

    async def save(self, request: Request, guest: Guest, form: RoleForm) -> Response:
        """Whatever changes what people hold is shown before it is done."""
        seen, rows = seen_role(request, guest), typed_rows(form)
        if is_about_rows(form.do) or form.do == "edit":
            return await self._editor(request, guest, seen, form, changed_rows(rows, form.do))
        draft = draft_of(seen, form, rows, whole=role_head(guest, seen.model, seen.role, "").may_save_schema)
        after = await run_off_loop(HEAVY, merged, seen.model, seen.role, draft)
        if form.do != "apply" and as_it_counts(after) != as_it_counts(seen.role):
            foreseen = await self._foresight.of(guest, seen.application_id, RoleProposal(data=draft))
            if not foreseen.is_nothing:
                context = review(form, [foreseen], name=seen.role.name, back=seen.path)
                return self._desk.show(request, guest, HERE, context)
        await self._schemas.save_role(guest.actor, seen.model, draft)
        return self._desk.done(seen.path, "saved")

    async def show_again(self, request: Request, guest: Guest, form: RoleForm, problem: Problem) -> Response:
        seen, rows = seen_role(request, guest), typed_rows(form)
        stored = form_of(seen.role)
        theirs: tuple[Clash, ...] = ()
        if problem.is_conflict and form.version != stored.version:
            theirs = (*clashes(form, stored), *self._condition_clash(request, seen, rows))
        return await self._editor(request, guest, seen, form, rows, problem=problem, theirs=theirs)

    async def ask_removal(self, request: Request, guest: Guest) -> Response:
        return await self._removal(request, guest)

    async def remove(self, request: Request, guest: Guest, form: Guarded) -> Response:  # noqa: ARG002
        seen = seen_role(request, guest)
        await self._schemas.delete_role(guest.actor, seen.model, seen.role.name)
        return self._desk.done(HERE.path, "role_removed")

    async def remove_again(self, request: Request, guest: Guest, form: Guarded, problem: Problem) -> Response:  # noqa: ARG002
        return await self._removal(request, guest, problem)

    async def _removal(self, request: Request, guest: Guest, problem: Problem | None = None) -> Response:
        seen = seen_role(request, guest)
        guest.standing.opened(Operation.ROLES_SAVE)
        proposal = RoleProposal(action="delete", data=RoleDraft(name=seen.role.name))
        context = RemoveRoleContext(
            head=role_head(guest, seen.model, seen.role, "editor"),
            role=seen.role,
            holders=await self._holders(seen),
            projects=granting(guest.standing.case.structure, seen),
            foreseen=await self._foresight.of(guest, seen.application_id, proposal),
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    async def _editor(
        self,
        request: Request,
        guest: Guest,
        seen: Seen,
        form: RoleForm,
        rows: Sequence[Row],
        *,
        problem: Problem | None = None,
        theirs: tuple[Clash, ...] = (),
    ) -> Response:
        groups = await run_off_loop(HEAVY, rule_groups, seen.model, seen.role)
        holders = await self._holders(seen)
        context = RoleContext(
            head=role_head(guest, seen.model, seen.role, "editor"),
            role=seen.role,
            form=form,
            builder=await self._conditions.builder(
                rows, counts=sees_everybody(guest.standing), with_address=True, later=request.method == "GET"
            ),
            groups=groups,
            unsaid=await run_off_loop(HEAVY, unsaid, seen.model, groups),
            holders=holders,
            call=api_call(seen, holders),
            problem=problem,
            clashes=theirs,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    async def _holders(self, seen: Seen) -> int:
        holders = await self._applications.role_holders(seen.application_id, self._clock.now())
        return holders.get(seen.role.key, 0)

    def _condition_clash(self, request: Request, seen: Seen, rows: Sequence[Row]) -> Sequence[Clash]:
        t = self._desk.words(request)
        typed = condition_in(rows, with_address=True)
        stored = seen.role.condition
        if test_of(typed) == test_of(stored):
            return ()
        words = ["" if one is None else condition_words(t, one.test).unescape() for one in (typed, stored)]
        return (Clash(field="condition", typed=words[0], stored=words[1]),)

    def screens(self) -> Sequence[Screen]:
        desk, path = self._desk, "/roles/{application_id:int}/{role}"
        return [
            desk.shown(path, self.show),
            desk.posted(path, RoleForm, self.save, again=self.show_again),
            desk.shown(f"{path}/remove", self.ask_removal, fresh=True),
            desk.posted(f"{path}/remove", Guarded, self.remove, again=self.remove_again, fresh=True),
        ]


def seen_role(request: Request, guest: Guest) -> Seen:
    """Whoever may read the schema sees a role whole; no right comes before no such thing (R6)."""
    model = guest.standing.opened(Operation.ROLES_GET)
    role = model.roles.get(request.path_params["role"].lower())
    if role is None:
        raise RoleNotFound
    return Seen(model=model, role=role)


def form_of(role: Role) -> RoleForm:
    return RoleForm(
        description=role.description,
        protected="yes" if role.protected else "",
        default="yes" if role.default else "",
        condition_mode=role.condition_mode.value,
        user_limit=str(role.user_limit) if role.user_limit else "",
        params=role.params,
        version=role.version,
    )


def draft_of(seen: Seen, form: RoleForm, rows: Sequence[Row], *, whole: bool) -> RoleDraft:
    """`whole`: also what only those see who may save the schema."""
    condition = condition_in(rows, with_address=True)
    same = test_of(condition) == test_of(seen.role.condition)  # then it stays as it was written
    return RoleDraft(
        name=seen.role.name,
        description=form.description.strip().replace("\r\n", "\n"),
        protected=bool(form.protected) if whole else UNSET,
        default=bool(form.default) if whole else UNSET,
        condition=UNSET if same else None if condition is None else dict(condition.document),
        condition_mode=mode_of(form.condition_mode),
        user_limit=limit_of(form.user_limit.strip()),
        params=form.params.strip(),
        version=form.version,
    )


def mode_of(text: str) -> ConditionMode:
    if text not in set(ConditionMode):
        raise Malformed("condition_mode: choose one of the two modes")
    return ConditionMode(text)


def limit_of(text: str) -> int:
    if text and not (text.isascii() and text.isdecimal() and len(text) <= COUNT_LONGEST):
        raise Malformed("user_limit: enter a number, or leave empty for no limit")
    return int(text) if text else 0


def test_of(condition: Condition | None) -> object:
    return None if condition is None else condition.test


def granting(structure: Structure, seen: Seen) -> int:
    """How many projects give the role to one of their groups."""
    grants = (
        structure.projects[project_id].project.settings.services.get(seen.application_id, ())
        for project_id in structure.connecting.get(seen.application_id, ())
        if project_id in structure.projects
    )
    return sum(any(seen.role.key in one.roles for one in each) for each in grants)


def api_call(seen: Seen, holders: int) -> ApiCall:
    return ApiCall(
        path="roles",
        body={"action": "get", "application_id": seen.application_id, "data": {"name": seen.role.name}},
        record=role_record(SeenRole(seen.role, holders)),
    )
