"""Who belongs to a group: people listed in it, and conditions; with who gains and who loses before it is saved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.groups import AccessDraft, Groups
from gatehouse.permissions.errors import GroupNotFound, Malformed
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.questions.proposals import GroupAccessProposal
from gatehouse.permissions.rights.guard import About, Operation, require
from gatehouse.web.console.api_calls import group_call
from gatehouse.web.console.conditions import (
    Builder,
    ConditionForm,
    Conditions,
    Row,
    changed_rows,
    condition_in,
    is_about_rows,
    is_number,
    rows_in,
    typed_rows,
)
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.forecast import Foresight
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.group_door import GroupDoor, GroupHead, SeenGroup, group_head, sees_members
from gatehouse.web.console.places import Entry
from gatehouse.web.console.review import is_nothing, review
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.responses import see_other

HERE: Final = Entry.PROJECTS
NEW: Final = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConditionContext(PageContext):
    template = "console/groups/condition.html"

    head: GroupHead
    path: str
    title: str
    is_new: bool
    builder: Builder
    version: int
    call: ApiCall
    problem: Problem | None = None


class AccessForm(Guarded, frozen=True, kw_only=True):
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
        door: GroupDoor,
        groups: Groups,
        conditions: Conditions,
        foresight: Foresight,
        desk: ConsoleDesk,
    ) -> None:
        self._door = door
        self._groups = groups
        self._conditions = conditions
        self._foresight = foresight
        self._desk = desk

    async def change(self, request: Request, guest: Guest, form: AccessForm) -> Response:
        seen = await self._door.enter(request, guest)
        if form.do == "edit":
            return see_other(seen.path)
        return await self._saved(request, guest, seen, form, changed(seen.group, form), f"{seen.path}/access")

    async def show(self, request: Request, guest: Guest) -> Response:
        seen = await self._door.enter(request, guest)
        about = About(project_id=seen.group.project_id, group_id=seen.group.group_id)
        require(guest.rights, Operation.GROUP_ACCESS, about)
        at = place_of(request, seen.group)
        one = None if at is None else seen.group.conditions[at]
        form = GroupConditionForm(title=one.title if one else "", version=seen.group.version)
        return await self._builder(request, guest, seen, form, rows_in(one.condition if one else None))

    async def save(self, request: Request, guest: Guest, form: GroupConditionForm) -> Response:
        seen, rows = await self._door.enter(request, guest), typed_rows(form)
        if is_about_rows(form.do) or form.do == "edit":
            return await self._builder(request, guest, seen, form, changed_rows(rows, form.do))
        draft = with_condition(seen.group, place_of(request, seen.group), form, rows)
        return await self._saved(request, guest, seen, form, draft, condition_path(request, seen))

    async def show_again(
        self, request: Request, guest: Guest, form: GroupConditionForm, problem: Problem
    ) -> Response:
        seen, rows = await self._door.enter(request, guest), typed_rows(form)
        return await self._builder(request, guest, seen, form, rows, problem)

    async def _saved(  # noqa: PLR0917 - a form, its change and where it came to
        self,
        request: Request,
        guest: Guest,
        seen: SeenGroup,
        form: AccessForm | GroupConditionForm,
        draft: AccessDraft,
        action: str,
    ) -> Response:
        if form.do != "apply":
            proposal = GroupAccessProposal(group_id=seen.group.group_id, data=draft)
            foreseen = await self._foresight.in_each(guest, seen.applications, proposal)
            if not is_nothing(foreseen):
                context = review(
                    form, foreseen, name=seen.group.title, back=seen.path, action=action, trail=seen.trail
                )
                return self._desk.show(request, guest, HERE, context)
        await self._groups.save_access(guest.actor, seen.group.group_id, draft)
        return self._desk.done(seen.path, "saved")

    async def _builder(  # noqa: PLR0917 - what a page is made of
        self,
        request: Request,
        guest: Guest,
        seen: SeenGroup,
        form: GroupConditionForm,
        rows: Sequence[Row],
        problem: Problem | None = None,
    ) -> Response:
        counts = sees_members(guest, seen)
        context = GroupConditionContext(
            head=group_head(guest, seen, "group"),
            path=condition_path(request, seen),
            title=form.title,
            is_new=request.path_params["number"] == NEW,
            builder=await self._conditions.builder(
                rows, counts=counts, with_address=False, later=request.method == "GET"
            ),
            version=seen.group.version if problem and problem.is_conflict else form.version,
            call=group_call(seen.group),
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[Screen]:
        desk, one = self._desk, "/projects/{project_id}/groups/{group_id}"
        condition = f"{one}/conditions/{{number}}"
        return [
            desk.posted(f"{one}/access", AccessForm, self.change),
            desk.shown(condition, self.show),
            desk.posted(condition, GroupConditionForm, self.save, again=self.show_again),
        ]


def condition_path(request: Request, seen: SeenGroup) -> str:
    return f"{seen.path}/conditions/{request.path_params['number']}"


def place_of(request: Request, group: Group) -> int | None:
    """Which condition it is about; None for a new one."""
    number = request.path_params["number"]
    if number == NEW:
        return None
    if not is_number(number) or int(number) >= len(group.conditions):
        raise GroupNotFound(f"condition {number}")
    return int(number)


def documents(group: Group) -> list[object]:
    return [{"title": one.title, "condition": one.condition.document} for one in group.conditions]


def with_condition(group: Group, at: int | None, form: GroupConditionForm, rows: Sequence[Row]) -> AccessDraft:
    condition = condition_in(rows, with_address=False)
    if condition is None:
        raise Malformed("condition: add at least one row")
    new: Mapping[str, object] = {"title": form.title.strip(), "condition": dict(condition.document)}
    given = documents(group)
    if at is None:
        given.append(new)
    else:
        given[at] = new
    return AccessDraft(conditions=given, version=form.version)


def changed(group: Group, form: AccessForm) -> AccessDraft:
    if form.drop_condition:
        kept = [one for index, one in enumerate(documents(group)) if str(index) != form.drop_condition]
        return AccessDraft(conditions=kept, version=form.version)
    users: list[object] = [one for one in group.users if one != form.drop]
    if form.add:
        users.append(form.add)
    return AccessDraft(users=users, version=form.version)
