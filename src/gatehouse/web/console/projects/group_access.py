"""Who belongs to a group: people listed in it, and conditions; a save shows its impact first."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.groups import AccessDraft, GroupCommands
from gatehouse.permissions.errors import GroupNotFound, Malformed
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.questions.proposals import GroupAccessProposal
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.web.console.condition_builder import (
    ConditionBuilder,
    ConditionBuilders,
    ConditionForm,
    condition_conflicts,
    condition_from_rows,
    fields_of_rows,
    is_number,
    rows_from_form,
    rows_of_condition,
    shown_rows,
)
from gatehouse.web.console.edit_screen import APPLY, EditScreen, FormDraft, Saved
from gatehouse.web.console.forms import FieldConflict, ReviewedForm, field_conflicts
from gatehouse.web.console.frame import ApiCall, group_call
from gatehouse.web.console.impact import ImpactForecaster, ReviewContext, review_context
from gatehouse.web.console.paths import ConsoleEntry, is_console_page
from gatehouse.web.console.projects.groups import GroupHead, GroupLoader, LoadedGroup, group_head, sees_members
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.responses import see_other
from gatehouse.web.pages.contexts import PageContext

ENTRY: Final = ConsoleEntry.PROJECTS
NEW_CONDITION: Final = "new"


class GroupConditionContext(PageContext, frozen=True, kw_only=True):
    template = "console/groups/condition.html"

    head: GroupHead
    path: str
    is_new: bool
    builder: ConditionBuilder
    call: ApiCall


class GroupAccessForm(ReviewedForm, frozen=True, kw_only=True):
    """One change at a time: add people, remove a person, or remove a condition by its number."""

    add: tuple[str, ...] = ()
    drop: str = ""
    drop_condition: str = ""
    back: str = ""  # the page that asked for the change; it is shown again after the save
    version: int = 0


class GroupConditionForm(ConditionForm, frozen=True, kw_only=True):
    title: str = ""
    version: int = 0


class LoadedCondition(msgspec.Struct, frozen=True, kw_only=True):
    group: LoadedGroup
    index: int | None  # None for a new one
    path: str


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
        back = form.back if is_console_page(form.back) else loaded.path
        return see_other(back) if form.do == "edit" else await self._change(request, admin, loaded, form)

    async def add_people(
        self, request: Request, admin: AdminRequest, group: Group, user_ids: Sequence[str]
    ) -> Response:
        """Add people who were chosen on another screen, with the same review."""
        loaded = await self._loader.load_group(admin, group.project_id, group.group_id)
        form = GroupAccessForm(add=tuple(user_ids), version=loaded.group.version)
        return await self._change(request, admin, loaded, form)

    async def _change(
        self, request: Request, admin: AdminRequest, loaded: LoadedGroup, form: GroupAccessForm
    ) -> Response:
        draft = access_draft(loaded.group, form)
        if form.do != APPLY:
            review = await self._review(admin, loaded, form, draft, f"{loaded.path}/access")
            if review.is_needed or form.back:
                return self._view.render(request, admin, ENTRY, review)
        await self._groups.save_access(admin.actor, loaded.group.group_id, draft)
        return self._view.redirect_with_flash(form.back if is_console_page(form.back) else loaded.path, "saved")

    async def _load_condition(self, request: Request, admin: AdminRequest) -> LoadedCondition:
        loaded = await self._loader.load(request, admin)
        about = GuardTarget(project_id=loaded.group.project_id, group_id=loaded.group.group_id)
        require_operation(admin.rights, Operation.GROUP_ACCESS, about)
        return LoadedCondition(
            group=loaded,
            index=condition_index(request, loaded.group),
            path=f"{loaded.path}/conditions/{request.path_params['number']}",
        )

    async def _page(
        self, request: Request, admin: AdminRequest, loaded: LoadedCondition, draft: FormDraft[GroupConditionForm]
    ) -> GroupConditionContext:
        return GroupConditionContext(
            head=group_head(admin, loaded.group, "group"),
            path=loaded.path,
            is_new=loaded.index is None,
            builder=await self._condition_builders.build(
                shown_rows(draft.form),
                may_count=sees_members(admin, loaded.group),
                with_address=False,
                count_later=request.method == "GET",
            ),
            call=group_call(loaded.group.group),
        )

    async def _review_condition(
        self, _request: Request, admin: AdminRequest, loaded: LoadedCondition, form: GroupConditionForm
    ) -> ReviewContext:
        return await self._review(admin, loaded.group, form, with_condition(loaded, form), loaded.path)

    async def _save_condition(
        self, _request: Request, admin: AdminRequest, loaded: LoadedCondition, form: GroupConditionForm
    ) -> Saved:
        await self._groups.save_access(admin.actor, loaded.group.group.group_id, with_condition(loaded, form))
        return Saved(address=loaded.group.path)

    def _conflicts(
        self, request: Request, loaded: LoadedCondition, form: GroupConditionForm
    ) -> tuple[FieldConflict, ...]:
        if loaded.index is None:
            return ()
        stored = loaded.group.group.conditions[loaded.index].condition
        condition = condition_conflicts(self._view.words(request), form, stored, with_address=False)
        return (*field_conflicts(form, condition_form_of(loaded)), *condition)

    async def _review(
        self, admin: AdminRequest, loaded: LoadedGroup, form: ReviewedForm, draft: AccessDraft, action: str
    ) -> ReviewContext:
        proposal = GroupAccessProposal(group_id=loaded.group.group_id, data=draft)
        impacts = await self._forecaster.impact_in_each(admin, loaded.applications, proposal)
        return review_context(
            form, impacts, name=loaded.group.title, back=loaded.path, action=action, trail=loaded.trail
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        view, one = self._view, "/projects/{project_id}/groups/{group_id}"
        condition = EditScreen(
            view=view,
            path=f"{one}/conditions/{{number}}",
            form=GroupConditionForm,
            load=self._load_condition,
            form_of=condition_form_of,
            page=self._page,
            review=self._review_condition,
            save=self._save_condition,
            conflicts=self._conflicts,
        )
        return [view.form(f"{one}/access", GroupAccessForm, self.change_access), *condition.routes()]


def condition_form_of(loaded: LoadedCondition) -> GroupConditionForm:
    group = loaded.group.group
    one = None if loaded.index is None else group.conditions[loaded.index]
    return GroupConditionForm(
        title=one.title if one else "",
        version=group.version,
        **fields_of_rows(rows_of_condition(one.condition if one else None)),
    )


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


def with_condition(loaded: LoadedCondition, form: GroupConditionForm) -> AccessDraft:
    condition = condition_from_rows(rows_from_form(form), with_address=False)
    if condition is None:
        raise Malformed("condition: add at least one row").on_screen("add_row")
    new: Mapping[str, object] = {"title": form.title.strip(), "condition": dict(condition.document)}
    given = condition_documents(loaded.group.group)
    if loaded.index is None:
        given.append(new)
    else:
        given[loaded.index] = new
    return AccessDraft(conditions=given, version=form.version)


def access_draft(group: Group, form: GroupAccessForm) -> AccessDraft:
    if form.drop_condition:
        kept = [one for index, one in enumerate(condition_documents(group)) if str(index) != form.drop_condition]
        return AccessDraft(conditions=kept, version=form.version)
    users: list[object] = [member_id for member_id in group.users if member_id != form.drop]
    users += [one for one in form.add if one not in users]
    return AccessDraft(users=users, version=form.version)
