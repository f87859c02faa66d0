"""Which groups a project lets in, and which it keeps out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.memberships import MembershipDraft, Memberships
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.group import PROJECT_TAG
from gatehouse.permissions.questions.proposals import MembershipProposal
from gatehouse.permissions.rights.guard import About, Operation, require
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.forecast import Foresight
from gatehouse.web.console.places import Entry
from gatehouse.web.console.project_door import ProjectDoor
from gatehouse.web.console.projects import ProjectHead, head
from gatehouse.web.console.review import is_nothing, review
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded

HERE: Final = Entry.PROJECTS
CHOICES: Final = ("", "allow", "disallow")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGroup:
    group_id: str
    title: str
    listed: str  # one of CHOICES
    may_be_listed: bool  # it has the tag that a list asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class ListsContext(PageContext):
    template = "console/projects/lists.html"

    head: ProjectHead
    groups: Sequence[ListedGroup]
    version: int
    problem: Problem | None = None


class ListsForm(Guarded, frozen=True, kw_only=True):
    """Two lists of the same length."""

    group: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    version: int = 0
    do: str = ""


class ListScreens:
    def __init__(
        self, *, door: ProjectDoor, memberships: Memberships, foresight: Foresight, desk: ConsoleDesk
    ) -> None:
        self._door = door
        self._memberships = memberships
        self._foresight = foresight
        self._desk = desk

    async def show(self, request: Request, guest: Guest) -> Response:
        model = await self._door.enter(request, guest)
        require(guest.rights, Operation.MEMBERSHIP_SAVE, About(project_id=model.project.project_id))
        return self._page(request, guest, model, listed_groups(model), version=model.project.version)

    async def save(self, request: Request, guest: Guest, form: ListsForm) -> Response:
        model = await self._door.enter(request, guest)
        require(guest.rights, Operation.MEMBERSHIP_SAVE, About(project_id=model.project.project_id))
        draft = draft_of(model, form)
        if form.do == "edit":
            return self._page(request, guest, model, typed(model, form), version=form.version)
        path = f"{HERE.path}/{model.project.project_id}/members"
        if form.do != "apply":
            foreseen = await self._foresight.in_each(
                guest, model.project.settings.services, MembershipProposal(data=draft)
            )
            if not is_nothing(foreseen):
                context = review(form, foreseen, name=model.project.title, back=path, action=f"{path}/lists")
                return self._desk.show(request, guest, HERE, context)
        await self._memberships.save(guest.actor, guest.standing.central, draft)
        return self._desk.done(path, "saved")

    async def show_again(self, request: Request, guest: Guest, form: ListsForm, problem: Problem) -> Response:
        model = await self._door.enter(request, guest)
        return self._page(request, guest, model, typed(model, form), version=model.project.version, problem=problem)

    def _page(
        self,
        request: Request,
        guest: Guest,
        model: ProjectModel,
        groups: Sequence[ListedGroup],
        *,
        version: int,
        problem: Problem | None = None,
    ) -> Response:
        context = ListsContext(
            head=head(guest, model.project, "members"), groups=groups, version=version, problem=problem
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[Screen]:
        desk, path = self._desk, "/projects/{project_id}/members/lists"
        return [desk.shown(path, self.show), desk.posted(path, ListsForm, self.save, again=self.show_again)]


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


def typed(model: ProjectModel, form: ListsForm) -> Sequence[ListedGroup]:
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


def draft_of(model: ProjectModel, form: ListsForm) -> MembershipDraft:
    if len(form.group) != len(form.listed) or not set(form.listed) <= set(CHOICES):
        raise Malformed("The form is incomplete. Reload the page and try again.")
    chosen = list(zip(form.group, form.listed, strict=True))
    return MembershipDraft(
        id=model.project.project_id,
        allow=[group_id for group_id, listed in chosen if listed == "allow"],
        disallow=[group_id for group_id, listed in chosen if listed == "disallow"],
        version=form.version,
    )
