"""Who belongs to a group: people listed in it, and conditions; a save shows its impact first."""

from collections.abc import Mapping, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.groups import AccessDraft, GroupCommands
from gatehouse.permissions.errors import GroupNotFound, Malformed
from gatehouse.permissions.model.project import Group
from gatehouse.permissions.questions.proposals import GroupAccessProposal
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.web.console.condition_builder import (
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
from gatehouse.web.console.frame import ApiCall, group_call
from gatehouse.web.console.impact import ImpactForecaster, has_no_impact, review_context
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.projects.groups import GroupHead, GroupLoader, LoadedGroup, group_head, sees_members
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.http.responses import see_other
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

ENTRY: Final = ConsoleEntry.PROJECTS
NEW_CONDITION: Final = "new"


class GroupConditionContext(PageContext, frozen=True, kw_only=True):
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
    """One change at a time: add people, remove a person, or remove a condition by its number."""

    add: tuple[str, ...] = ()
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
        loader: GroupLoader,
        groups: GroupCommands,
        condition_builders: ConditionBuilders,
        forecaster: ImpactForecaster,
        view: ConsoleView,
    ) -> None:
        self._loader = loader
        self._groups = groups
        self._condition_builders = condition_builders
        self._forecaster = forecaster
        self._view = view

    async def change_access(self, request: Request, admin: AdminRequest, form: GroupAccessForm) -> Response:
        loaded = await self._loader.load(request, admin)
        if form.do == "edit":
            return see_other(loaded.path)
        return await self._save_or_review(
            request, admin, loaded, form, access_draft(loaded.group, form), f"{loaded.path}/access"
        )

    async def add_people(
        self, request: Request, admin: AdminRequest, group: Group, user_ids: Sequence[str]
    ) -> Response:
        """Add people who were chosen on another screen, with the same review."""
        loaded = await self._loader.load_group(admin, group.project_id, group.group_id)
        form = GroupAccessForm(add=tuple(user_ids), version=loaded.group.version)
        return await self._save_or_review(
            request, admin, loaded, form, access_draft(loaded.group, form), f"{loaded.path}/access"
        )

    async def show_condition(self, request: Request, admin: AdminRequest) -> Response:
        loaded = await self._loader.load(request, admin)
        about = GuardTarget(project_id=loaded.group.project_id, group_id=loaded.group.group_id)
        require_operation(admin.rights, Operation.GROUP_ACCESS, about)
        at = condition_index(request, loaded.group)
        one = None if at is None else loaded.group.conditions[at]
        form = GroupConditionForm(title=one.title if one else "", version=loaded.group.version)
        return await self._render_condition(
            request, admin, loaded, form, rows_of_condition(one.condition if one else None)
        )

    async def save_condition(self, request: Request, admin: AdminRequest, form: GroupConditionForm) -> Response:
        loaded, rows = await self._loader.load(request, admin), rows_from_form(form)
        if is_row_action(form.do) or form.do == "edit":
            return await self._render_condition(request, admin, loaded, form, apply_row_action(rows, form.do))
        draft = with_condition(loaded.group, condition_index(request, loaded.group), form, rows)
        return await self._save_or_review(request, admin, loaded, form, draft, condition_path(request, loaded))

    async def rerender_condition(
        self, request: Request, admin: AdminRequest, form: GroupConditionForm, problem: FormProblem
    ) -> Response:
        loaded, rows = await self._loader.load(request, admin), rows_from_form(form)
        return await self._render_condition(request, admin, loaded, form, rows, problem)

    async def _save_or_review(  # noqa: PLR0917 - a form, its change and where it came to
        self,
        request: Request,
        admin: AdminRequest,
        loaded: LoadedGroup,
        form: GroupAccessForm | GroupConditionForm,
        draft: AccessDraft,
        action: str,
    ) -> Response:
        if form.do != "apply":
            proposal = GroupAccessProposal(group_id=loaded.group.group_id, data=draft)
            impacts = await self._forecaster.impact_in_each(admin, loaded.applications, proposal)
            if not has_no_impact(impacts):
                context = review_context(
                    form, impacts, name=loaded.group.title, back=loaded.path, action=action, trail=loaded.trail
                )
                return self._view.render(request, admin, ENTRY, context)
        await self._groups.save_access(admin.actor, loaded.group.group_id, draft)
        return self._view.redirect_with_flash(loaded.path, "saved")

    async def _render_condition(  # noqa: PLR0917 - what a page is made of
        self,
        request: Request,
        admin: AdminRequest,
        loaded: LoadedGroup,
        form: GroupConditionForm,
        rows: Sequence[ConditionRow],
        problem: FormProblem | None = None,
    ) -> Response:
        counts = sees_members(admin, loaded)
        context = GroupConditionContext(
            head=group_head(admin, loaded, "group"),
            path=condition_path(request, loaded),
            title=form.title,
            is_new=request.path_params["number"] == NEW_CONDITION,
            builder=await self._condition_builders.build(
                rows, may_count=counts, with_address=False, count_later=request.method == "GET"
            ),
            version=loaded.group.version if problem and problem.is_conflict else form.version,
            call=group_call(loaded.group),
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        view, one = self._view, "/projects/{project_id}/groups/{group_id}"
        condition = f"{one}/conditions/{{number}}"
        return [
            view.form(f"{one}/access", GroupAccessForm, self.change_access),
            view.page(condition, self.show_condition),
            view.form(condition, GroupConditionForm, self.save_condition, rerender=self.rerender_condition),
        ]


def condition_path(request: Request, loaded: LoadedGroup) -> str:
    return f"{loaded.path}/conditions/{request.path_params['number']}"


def condition_index(request: Request, group: Group) -> int | None:
    """Which condition it is about; None for a new one."""
    number = request.path_params["number"]
    if number == NEW_CONDITION:
        return None
    if not is_number(number) or int(number) >= len(group.conditions):
        raise GroupNotFound(f"condition {number}")
    return int(number)


def condition_documents(group: Group) -> list[object]:
    return [{"title": condition.title, "condition": condition.condition.document} for condition in group.conditions]


def with_condition(
    group: Group, at: int | None, form: GroupConditionForm, rows: Sequence[ConditionRow]
) -> AccessDraft:
    condition = condition_from_rows(rows, with_address=False)
    if condition is None:
        raise Malformed("condition: add at least one row").on_screen("add_row")
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
    users: list[object] = [member_id for member_id in group.users if member_id != form.drop]
    users += [one for one in form.add if one not in users]
    return AccessDraft(users=users, version=form.version)
