"""Which groups a project allows, and which it blocks."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from starlette.requests import Request

from gatehouse.permissions.commands.memberships import MembershipCommands, MembershipDraft
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.group import PROJECT_TAG
from gatehouse.permissions.questions.proposals import MembershipProposal
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.forms import FieldConflict, ReviewedForm, row_conflicts
from gatehouse.web.console.impact import ImpactForecaster, ReviewContext, review_context
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.projects.project import ProjectHead, ProjectLoader, project_head, project_path
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.pages.contexts import PageContext

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


class AllowListsForm(ReviewedForm, frozen=True, kw_only=True):
    """Two lists of the same length."""

    group: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    version: int = 0


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

    async def _load(self, request: Request, admin: AdminRequest) -> ProjectModel:
        model = await self._loader.load(request, admin)
        require_operation(admin.rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=model.project.project_id))
        return model

    async def _page(
        self, _request: Request, admin: AdminRequest, model: ProjectModel, draft: FormDraft[AllowListsForm]
    ) -> AllowListsContext:
        groups = groups_from_form(model, draft.form)
        return AllowListsContext(head=project_head(admin, model.project, "members"), groups=groups)

    async def _review(
        self, _request: Request, admin: AdminRequest, model: ProjectModel, form: AllowListsForm
    ) -> ReviewContext:
        proposal = MembershipProposal(data=draft_of(model, form))
        impacts = await self._forecaster.impact_in_each(admin, model.project.settings.services, proposal)
        path = project_path(model.project.project_id, "members")
        return review_context(form, impacts, name=model.project.title, back=path, action=f"{path}/lists")

    async def _save(self, _request: Request, admin: AdminRequest, model: ProjectModel, form: AllowListsForm) -> Saved:
        await self._memberships.save(admin.actor, admin.authenticated.central, draft_of(model, form))
        return Saved(address=project_path(model.project.project_id, "members"))

    def _conflicts(self, request: Request, model: ProjectModel, form: AllowListsForm) -> tuple[FieldConflict, ...]:
        t = self._view.words(request)
        sides = groups_from_form(model, form), listed_groups(model)
        typed, stored = ([(one.title, t(f"members.{one.listed or 'unlisted'}")) for one in side] for side in sides)
        return row_conflicts(typed, stored)

    def routes(self) -> Sequence[ConsoleRoute]:
        return EditScreen(
            view=self._view,
            path="/projects/{project_id}/members/lists",
            form=AllowListsForm,
            load=self._load,
            form_of=form_of,
            page=self._page,
            review=self._review,
            save=self._save,
            undoable=True,
            conflicts=self._conflicts,
        ).routes()


def form_of(model: ProjectModel) -> AllowListsForm:
    groups = listed_groups(model)
    return AllowListsForm(
        group=tuple(one.group_id for one in groups),
        listed=tuple(one.listed for one in groups),
        version=model.project.version,
    )


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
