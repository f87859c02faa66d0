"""One person: assign a role, add them to a group or a project; each shows its impact before it is saved."""

from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import User
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.store import GroupStore
from gatehouse.web.console.applications.assignment_edits import REMOVE, AssignmentEditor, AssignmentsReviewContext
from gatehouse.web.console.applications.staged_edits import ApplyForm
from gatehouse.web.console.edit_screen import EditScreen, FormDraft
from gatehouse.web.console.ends import parse_end
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.person import ENTRY, PersonHead, PersonLoader
from gatehouse.web.console.person_access import (
    JOIN_FIELDS,
    NOTHING_TYPED,
    JoinForm,
    PersonAccessScreens,
    PersonRolesContext,
    roles_file,
)
from gatehouse.web.console.person_role_form import ROLE_FIELDS, AssignRoleForm
from gatehouse.web.console.projects.group_access import GroupAccessScreens
from gatehouse.web.console.view import (
    EXPECTED_ERRORS,
    AdminRequest,
    Confirmation,
    ConsoleRoute,
    problem_from,
)
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import see_other
from gatehouse.web.pages.template_filters import exact_time
from gatehouse.web.pages.translations import Translator

PATH: Final = "/people/{user_id}/access"


class PersonAssignScreens:
    def __init__(
        self,
        loader: PersonLoader,
        *,
        access: PersonAccessScreens,
        assignments: AssignmentEditor,
        group_access: GroupAccessScreens,
        groups: GroupStore,
        lookup: Lookup,
    ) -> None:
        self._loader = loader
        self._view = loader.view
        self._access = access
        self._assignments = assignments
        self._group_access = group_access
        self._groups = groups
        self._lookup = lookup

    async def review_role(self, request: Request, admin: AdminRequest) -> Response:
        """Show what the role gives the person; the page's form assigns it."""
        _, head = await self._loader.load(request, admin, "access")
        form = read_query(request, AssignRoleForm)
        try:
            context = await self._confirm_role(request, admin, head, form)
        except EXPECTED_ERRORS as error:
            page = await self._access.page(request, admin, role=form)
            more = {"form": NOTHING_TYPED, "problem": problem_from(error)}
            return self._view.render(request, admin, ENTRY, page, more=more)
        return self._view.render(request, admin, ENTRY, context)

    async def assign_role(self, request: Request, admin: AdminRequest, form: ApplyForm) -> Response:
        """Save what was reviewed."""
        _, head = await self._loader.load(request, admin, "access")
        role = read_query(request, AssignRoleForm)
        there = await self._for_application(admin, await self._lookup.resolve(admin, role, ROLE_FIELDS))
        saved = await self._assignments.save_reviewed(there, form.edits)
        if saved.problem is None:
            assigned = "role_assigned_without_effect" if saved.is_without_effect else "role_assigned"
            return self._view.redirect_with_flash(
                f"{head.path}/access", "role_taken" if role.end == REMOVE else assigned
            )
        context = await self._confirm_role(request, admin, head, role)
        return self._view.render(request, admin, ENTRY, context.after(form, saved.problem))

    async def _confirm_role(
        self, request: Request, admin: AdminRequest, head: PersonHead, form: AssignRoleForm
    ) -> Confirmation:
        form = await self._lookup.resolve(admin, form, ROLE_FIELDS)
        require_field("role", form.role)
        is_removed = form.end == REMOVE
        until = 0 if is_removed else parse_end(form.end, form.until, zone=admin.zone, now=self._loader.clock.now())
        there = await self._for_application(admin, form)
        role = form.role.partition("/")[2]
        review = await self._assignments.prepare_roles(
            there, [head.user_id], role=role, project_id=form.project_id, until=None if is_removed else until
        )
        t = self._view.words(request)
        if is_removed:
            title, button = t("people.take_title", role=role, nick=head.nick), t("people.take_role")
        else:
            title, button = t("people.assign_title", role=role, nick=head.nick), t("people.assign_role")
        return Confirmation(
            title=title,
            trail=[(head.nick, f"{head.path}/access")],
            text=t("review.lead") if review.may_apply else t("staging.nothing") if not review.groups else "",
            warning=warning_of(t, review),
            consequences=list(role_lines(t, review, None if is_removed else until, admin.zone)),
            without_effect=[
                change.without_effect for group in review.groups for change in group.changes if change.without_effect
            ],
            subject_name=head.nick,
            impacts=[review.impact] if review.impact else [],
            is_destructive=is_removed,
            hidden=[("edits", review.reviewed)],
            button=button if review.may_apply else "",
        )

    async def _for_application(self, admin: AdminRequest, form: AssignRoleForm) -> AdminRequest:
        return await self._view.for_application(admin, int(form.role.partition("/")[0]))

    async def _load(self, request: Request, admin: AdminRequest) -> User:
        return await self._loader.people_admin.person(admin.actor, request.path_params["user_id"])

    async def _page(
        self, request: Request, admin: AdminRequest, _user: User, draft: FormDraft[JoinForm]
    ) -> PersonRolesContext:
        return await self._access.page(request, admin, join=draft.form)

    async def _add_to_group(self, request: Request, admin: AdminRequest, user: User, form: JoinForm) -> Response:
        require_field("group_id", form.group_id)
        form = await self._lookup.resolve(admin, form, JOIN_FIELDS)
        group = await self._groups.group(form.group_id)
        return await self._group_access.add_people(request, admin, group, [user.user_id])

    async def _add_to_project(self, _request: Request, admin: AdminRequest, user: User, form: JoinForm) -> Response:
        """Lead to the person's page in the project, where roles are chosen and reviewed."""
        require_field("member_of", form.member_of)
        form = await self._lookup.resolve(admin, form, JOIN_FIELDS)
        return see_other(f"{ConsoleEntry.PROJECTS.path}/{form.member_of}/members/{user.user_id}")

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        group = EditScreen(
            view=view,
            path=f"{PATH}/group",
            form=JoinForm,
            load=self._load,
            form_of=lambda _user: NOTHING_TYPED,
            page=self._page,
            save=self._add_to_group,
            file=roles_file,
            suffix="/group",
        )
        project = replace(group, path=f"{PATH}/project", save=self._add_to_project, suffix="/project")
        return [
            view.page(PATH, group.show),
            view.page(f"{PATH}/role", self.review_role, fresh=True),
            view.form(f"{PATH}/role", ApplyForm, self.assign_role, fresh=True),
            *group.routes(),
            *project.routes(),
        ]


def require_field(name: str, typed: str) -> None:
    if not typed.strip():
        raise Malformed(f"{name}: fill in this field").on_screen("fill_in")


def warning_of(t: Translator, review: AssignmentsReviewContext) -> str:
    """Why the role cannot be assigned."""
    troubles = [t(f"staging.trouble_{one.word}", **one.values) for one in review.troubles]
    return " ".join([*troubles, *(one.problem.words(t) for one in review.groups if one.problem)])


def role_lines(t: Translator, review: AssignmentsReviewContext, until: int | None, zone: str) -> Iterator[Markup]:
    """Where the role counts and until when, and how many people hold it. `until`: None if it is removed."""
    line = Markup("{}: <strong>{}</strong>")
    yield line.format(t("people.application"), review.head.name)
    for change in (one for group in review.groups for one in group.changes):
        where = t("people.in_project", title=change.project) if change.project else t("people.at_root")
        yield line.format(t("people.where"), where)
        if until is not None:
            yield line.format(t("people.until"), end_words(t, until, zone))
        if until is not None and change.edit.was.isdigit():
            yield t("people.assigned_already", end=end_words(t, int(change.edit.was), zone))
    for seat in review.seats:
        yield line.format(t("assignments.seats_title"), t("assignments.seats", taken=seat.then, limit=seat.limit))


def end_words(t: Translator, until: int, zone: str) -> Markup:
    return exact_time(t, until, zone) if until else t("people.no_end")
