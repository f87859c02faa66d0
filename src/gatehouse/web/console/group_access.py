"""Who belongs to a group: people listed in it, and conditions; with who gains and who loses before it is saved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.groups import AccessDraft, GroupCommands
from gatehouse.permissions.errors import GroupNotFound, Malformed
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.questions.proposals import GroupAccessProposal
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.web.console.api_calls import group_call
from gatehouse.web.console.conditions import (
    ConditionBuilder,
    ConditionBuilders,
    ConditionForm,
    ConditionRow,
    apply_row_action,
    condition_from_rows,
    is_number,
    is_row_action,
    rows_from_form,
    rows_of_condition,
)
from gatehouse.web.console.desk import AdminRequest, ConsoleView, FormProblem
from gatehouse.web.console.forecast import ImpactForecaster
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.group_door import GroupHead, GroupLoader, LoadedGroup, group_head, sees_members
from gatehouse.web.console.places import ConsoleEntry
from gatehouse.web.console.review import has_no_impact, review_context
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import CsrfForm
from gatehouse.web.responses import see_other

ENTRY: Final = ConsoleEntry.PROJECTS
NEW_CONDITION: Final = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConditionContext(PageContext):
    template = "console/groups/condition.html"

    head: GroupHead
    path: str
    title: str
    is_new: bool
    builder: ConditionBuilder
    version: int
    call: ApiCall
    problem: FormProblem | None = None


class GroupAccessForm(CsrfForm, frozen=True, kw_only=True):
    """One change at a time: somebody comes, somebody goes, or a condition goes, by its number."""

    add: str = ""
    drop: str = ""
    drop_condition: str = ""
    version: int = 0
    do: str = ""


class GroupConditionForm(ConditionForm, frozen=True, kw_only=True):
    title: str = ""
    version: int = 0


class GroupAccessScreens:
    def __init__(
        self,
        *,
        door: GroupLoader,
        groups: GroupCommands,
        conditions: ConditionBuilders,
        foresight: ImpactForecaster,
        desk: ConsoleView,
    ) -> None:
        self._door = door
        self._groups = groups
        self._conditions = conditions
        self._foresight = foresight
        self._desk = desk

    async def change(self, request: Request, guest: AdminRequest, form: GroupAccessForm) -> Response:
        seen = await self._door.enter(request, guest)
        if form.do == "edit":
            return see_other(seen.path)
        return await self._saved(request, guest, seen, form, access_draft(seen.group, form), f"{seen.path}/access")

    async def show(self, request: Request, guest: AdminRequest) -> Response:
        seen = await self._door.enter(request, guest)
        about = GuardTarget(project_id=seen.group.project_id, group_id=seen.group.group_id)
        require_operation(guest.rights, Operation.GROUP_ACCESS, about)
        at = condition_index(request, seen.group)
        one = None if at is None else seen.group.conditions[at]
        form = GroupConditionForm(title=one.title if one else "", version=seen.group.version)
        return await self._builder(request, guest, seen, form, rows_of_condition(one.condition if one else None))

    async def save(self, request: Request, guest: AdminRequest, form: GroupConditionForm) -> Response:
        seen, rows = await self._door.enter(request, guest), rows_from_form(form)
        if is_row_action(form.do) or form.do == "edit":
            return await self._builder(request, guest, seen, form, apply_row_action(rows, form.do))
        draft = with_condition(seen.group, condition_index(request, seen.group), form, rows)
        return await self._saved(request, guest, seen, form, draft, condition_path(request, seen))

    async def show_again(
        self, request: Request, guest: AdminRequest, form: GroupConditionForm, problem: FormProblem
    ) -> Response:
        seen, rows = await self._door.enter(request, guest), rows_from_form(form)
        return await self._builder(request, guest, seen, form, rows, problem)

    async def _saved(  # noqa: PLR0917 - a form, its change and where it came to
        self,
        request: Request,
        guest: AdminRequest,
        seen: LoadedGroup,
        form: GroupAccessForm | GroupConditionForm,
        draft: AccessDraft,
        action: str,
    ) -> Response:
        if form.do != "apply":
            proposal = GroupAccessProposal(group_id=seen.group.group_id, data=draft)
            foreseen = await self._foresight.in_each(guest, seen.applications, proposal)
            if not has_no_impact(foreseen):
                context = review_context(
                    form, foreseen, name=seen.group.title, back=seen.path, action=action, trail=seen.trail
                )
                return self._desk.show(request, guest, ENTRY, context)
        await self._groups.save_access(guest.actor, seen.group.group_id, draft)
        return self._desk.done(seen.path, "saved")

    async def _builder(  # noqa: PLR0917 - what a page is made of
        self,
        request: Request,
        guest: AdminRequest,
        seen: LoadedGroup,
        form: GroupConditionForm,
        rows: Sequence[ConditionRow],
        problem: FormProblem | None = None,
    ) -> Response:
        counts = sees_members(guest, seen)
        context = GroupConditionContext(
            head=group_head(guest, seen, "group"),
            path=condition_path(request, seen),
            title=form.title,
            is_new=request.path_params["number"] == NEW_CONDITION,
            builder=await self._conditions.builder(
                rows, counts=counts, with_address=False, later=request.method == "GET"
            ),
            version=seen.group.version if problem and problem.is_conflict else form.version,
            call=group_call(seen.group),
            problem=problem,
        )
        return self._desk.show(request, guest, ENTRY, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[ConsoleRoute]:
        desk, one = self._desk, "/projects/{project_id}/groups/{group_id}"
        condition = f"{one}/conditions/{{number}}"
        return [
            desk.posted(f"{one}/access", GroupAccessForm, self.change),
            desk.shown(condition, self.show),
            desk.posted(condition, GroupConditionForm, self.save, again=self.show_again),
        ]


def condition_path(request: Request, seen: LoadedGroup) -> str:
    return f"{seen.path}/conditions/{request.path_params['number']}"


def condition_index(request: Request, group: Group) -> int | None:
    """Which condition it is about; None for a new one."""
    number = request.path_params["number"]
    if number == NEW_CONDITION:
        return None
    if not is_number(number) or int(number) >= len(group.conditions):
        raise GroupNotFound(f"condition {number}")
    return int(number)


def condition_documents(group: Group) -> list[object]:
    return [{"title": one.title, "condition": one.condition.document} for one in group.conditions]


def with_condition(
    group: Group, at: int | None, form: GroupConditionForm, rows: Sequence[ConditionRow]
) -> AccessDraft:
    condition = condition_from_rows(rows, with_address=False)
    if condition is None:
        raise Malformed("a condition: add at least one row")
    new: Mapping[str, object] = {"title": form.title.strip(), "condition": dict(condition.document)}
    given = condition_documents(group)
    if at is None:
        given.append(new)
    else:
        given[at] = new
    return AccessDraft(conditions=given, version=form.version)


def access_draft(group: Group, form: GroupAccessForm) -> AccessDraft:
    if form.drop_condition:
        kept = [one for index, one in enumerate(condition_documents(group)) if str(index) != form.drop_condition]
        return AccessDraft(conditions=kept, version=form.version)
    users: list[object] = [one for one in group.users if one != form.drop]
    if form.add:
        users.append(form.add)
    return AccessDraft(users=users, version=form.version)
