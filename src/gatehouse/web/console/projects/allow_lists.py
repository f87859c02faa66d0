"""Which groups a project allows, and which it blocks."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.memberships import MembershipCommands, MembershipDraft
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.project import PROJECT_TAG
from gatehouse.permissions.questions.proposals import MembershipProposal
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.web.console.impact import ImpactForecaster, has_no_impact, review_context
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.projects.project import ProjectHead, ProjectLoader, project_head, project_path
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

ENTRY: Final = ConsoleEntry.PROJECTS
LIST_CHOICES: Final = ("", "allow", "disallow")


class ListedGroup(Struct, frozen=True, kw_only=True):
    group_id: str
    title: str
    listed: str  # one of CHOICES
    may_be_listed: bool  # it has the tag that a list asks for


class AllowListsContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/lists.html"

    head: ProjectHead
    groups: Sequence[ListedGroup]
    version: int
    problem: FormProblem | None = None


class AllowListsForm(CsrfForm, frozen=True, kw_only=True):
    """Two lists of the same length."""

    group: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    version: int = 0
    do: str = ""


class AllowListScreens:
    def __init__(
        self,
        *,
        loader: ProjectLoader,
        memberships: MembershipCommands,
        forecaster: ImpactForecaster,
        view: ConsoleView,
    ) -> None:
        self._loader = loader
        self._memberships = memberships
        self._forecaster = forecaster
        self._view = view

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        model = await self._loader.load(request, admin)
        require_operation(admin.rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=model.project.project_id))
        return self._render_form(request, admin, model, listed_groups(model), version=model.project.version)

    async def save(self, request: Request, admin: AdminRequest, form: AllowListsForm) -> Response:
        model = await self._loader.load(request, admin)
        require_operation(admin.rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=model.project.project_id))
        draft = draft_of(model, form)
        if form.do == "edit":
            return self._render_form(request, admin, model, groups_from_form(model, form), version=form.version)
        path = project_path(model.project.project_id, "members")
        if form.do != "apply":
            impacts = await self._forecaster.impact_in_each(
                admin, model.project.settings.services, MembershipProposal(data=draft)
            )
            if not has_no_impact(impacts):
                context = review_context(form, impacts, name=model.project.title, back=path, action=f"{path}/lists")
                return self._view.render(request, admin, ENTRY, context)
        await self._memberships.save(admin.actor, admin.authenticated.central, draft)
        return self._view.redirect_with_flash(path, "saved")

    async def rerender_form(
        self, request: Request, admin: AdminRequest, form: AllowListsForm, problem: FormProblem
    ) -> Response:
        model = await self._loader.load(request, admin)
        return self._render_form(
            request, admin, model, groups_from_form(model, form), version=model.project.version, problem=problem
        )

    def _render_form(
        self,
        request: Request,
        admin: AdminRequest,
        model: ProjectModel,
        groups: Sequence[ListedGroup],
        *,
        version: int,
        problem: FormProblem | None = None,
    ) -> Response:
        context = AllowListsContext(
            head=project_head(admin, model.project, "members"), groups=groups, version=version, problem=problem
        )
        return self._view.render(request, admin, ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/projects/{project_id}/members/lists"
        return [view.page(path, self.show), view.form(path, AllowListsForm, self.save, rerender=self.rerender_form)]


def listed_groups(model: ProjectModel) -> Sequence[ListedGroup]:
    project = model.project
    return [
        ListedGroup(
            group_id=group.group_id,
            title=group.title,
            listed=(
                "allow"
                if group.group_id in project.allow
                else "disallow"
                if group.group_id in project.disallow
                else ""
            ),
            may_be_listed=PROJECT_TAG in group.tags,
        )
        for group in sorted(model.groups.values(), key=lambda group: group.title_key)
    ]


def groups_from_form(model: ProjectModel, form: AllowListsForm) -> Sequence[ListedGroup]:
    chosen = dict(zip(form.group, form.listed, strict=False))
    return [
        ListedGroup(
            group_id=one.group_id,
            title=one.title,
            listed=chosen.get(one.group_id, one.listed),
            may_be_listed=one.may_be_listed,
        )
        for one in listed_groups(model)
    ]


def draft_of(model: ProjectModel, form: AllowListsForm) -> MembershipDraft:
    if len(form.group) != len(form.listed) or not set(form.listed) <= set(LIST_CHOICES):
        raise Malformed("The form is incomplete. Reload the page and try again.").on_screen("form_incomplete")
    chosen = list(zip(form.group, form.listed, strict=True))
    return MembershipDraft(
        id=model.project.project_id,
        allow=[group_id for group_id, listed in chosen if listed == "allow"],
        disallow=[group_id for group_id, listed in chosen if listed == "disallow"],
        version=form.version,
    )
