"""People who were selected in the list: invite, block or tag them, add them to a group or assign a role."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.names import NamedPerson, NameStore
from gatehouse.admin.people_admin import PeopleAdmin
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.permissions.store import GroupStore
from gatehouse.web.console.applications.assignment_edits import AssignmentEditor
from gatehouse.web.console.combobox import ComboboxOption
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.ends import parse_end
from gatehouse.web.console.invited import ACCESS_FIELDS, InvitationScreens, InvitedAccessForm
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.projects.group_access import GroupAccessScreens
from gatehouse.web.console.view import (
    EXPECTED_ERRORS,
    AdminRequest,
    ConsoleRoute,
    ConsoleView,
    FormProblem,
    problem_from,
)
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext

ENTRY: Final = ConsoleEntry.PEOPLE
MAX_SELECTED: Final = 50  # people; a page of the list has 25


class BulkAction(StrEnum):
    """The texts are `bulk.<value>` and `bulk.<value>_done`."""

    TAG = "tag"
    UNTAG = "untag"
    GROUP = "group"
    ROLE = "role"
    BLOCK = "block"
    UNBLOCK = "unblock"
    INVITE = "invite"
    LINK = "link"  # to set a password


class SelectedForm(InvitedAccessForm, frozen=True, kw_only=True):
    user_id: tuple[str, ...] = ()
    action: str = ""
    tag: str = ""


class SelectedContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/selected.html"

    action: BulkAction
    people: Sequence[NamedPerson]
    picked: Mapping[str, ComboboxOption]
    failures: Sequence[tuple[NamedPerson, FormProblem]] = ()
    done: int = 0  # of those who were selected


class SelectedPeopleScreens:
    def __init__(
        self,
        *,
        people_admin: PeopleAdmin,
        names: NameStore,
        assignments: AssignmentEditor,
        invitations: InvitationScreens,
        group_access: GroupAccessScreens,
        groups: GroupStore,
        lookup: Lookup,
        view: ConsoleView,
        clock: Clock,
        sends_mail: Callable[[], bool],
    ) -> None:
        self._people_admin = people_admin
        self._sends_mail = sends_mail
        self._names = names
        self._assignments = assignments
        self._invitations = invitations
        self._group_access = group_access
        self._groups = groups
        self._lookup = lookup
        self._view = view
        self._clock = clock

    async def _load(self, request: Request, admin: AdminRequest) -> SelectedForm:
        """The selection is in the address, so a fresh sign-in keeps it."""
        require_operation(admin.rights, Operation.ADMINISTER)
        return read_query(request, SelectedForm) if request.method == "GET" else SelectedForm()

    async def _apply(
        self, request: Request, admin: AdminRequest, _asked: SelectedForm, form: SelectedForm
    ) -> Saved | Response:
        action, people = parse_action(form.action), await self._load_people(form)
        resolved = await self._lookup.resolve(admin, form, ACCESS_FIELDS)
        user_ids = [one.user_id for one in people]
        if action is BulkAction.INVITE:
            return await self._invite(request, admin, form, user_ids)
        if action is BulkAction.ROLE:
            return await self._review_role(request, admin, resolved, user_ids)
        if action is BulkAction.GROUP:
            if not resolved.group_id:
                raise BadInput("group_id: choose a group").on_screen("choose_group")
            group = await self._groups.group(resolved.group_id)
            return await self._group_access.add_people(request, admin, group, user_ids)
        if action in (BulkAction.TAG, BulkAction.UNTAG) and not form.tag.strip():
            raise BadInput("tag: enter a tag").on_screen("enter_tag")
        failures = [
            failure for one in people if (failure := await self._change(admin, action, one, form.tag.strip()))
        ]
        if not failures:
            waits = action is BulkAction.LINK and not self._sends_mail()
            message = f"people_{action}{'_waits' if waits else ''}"
            return Saved(address=ENTRY.path, message=message)
        left = msgspec.structs.replace(form, user_id=tuple(one.user_id for one, _ in failures))
        context = await self._context(admin, left, failures=failures, done=len(people) - len(failures))
        more = {"form": left, "problem": None}
        return self._view.render(request, admin, ENTRY, context, status=409, more=more)

    async def _invite(
        self, request: Request, admin: AdminRequest, form: SelectedForm, user_ids: Sequence[str]
    ) -> Response:
        access = await self._invitations.parse_access(admin, form)
        users = [await self._people_admin.person(admin.actor, one) for one in user_ids]
        done = await self._invitations.bulk.invite_accounts(admin.actor, users, access)
        return self._invitations.show(request, admin, done)

    async def _review_role(
        self, request: Request, admin: AdminRequest, form: SelectedForm, user_ids: Sequence[str]
    ) -> Response:
        if not form.role:
            raise BadInput("role: choose a role").on_screen("choose_role")
        application_id, _, role = form.role.partition("/")
        until = parse_end(form.end, form.until, zone=admin.zone, now=self._clock.now())
        admin = await self._view.for_application(admin, int(application_id))
        return await self._assignments.review_roles(
            request, admin, user_ids, role=role, project_id=form.project_id, until=until
        )

    async def _change(
        self, admin: AdminRequest, action: BulkAction, person: NamedPerson, tag: str
    ) -> tuple[NamedPerson, FormProblem] | None:
        """Change one account; a refusal does not stop the others."""
        try:
            if action in (BulkAction.TAG, BulkAction.UNTAG):
                user = await self._people_admin.person(admin.actor, person.user_id)
                tags = user.tags | {tag} if action is BulkAction.TAG else user.tags - {tag}
                await self._people_admin.save_fields(admin.actor, person.user_id, {"tags": tags}, version=None)
            elif action is BulkAction.LINK:
                await self._people_admin.send_password_link(admin.actor, person.user_id)
            elif person.user_id == admin.user.user_id:
                raise BadInput("you cannot block your own account").on_screen("own_account")
            else:
                await self._people_admin.block(admin.actor, person.user_id, blocked=action is BulkAction.BLOCK)
        except EXPECTED_ERRORS as error:
            return person, problem_from(error)
        return None

    async def _load_people(self, form: SelectedForm) -> Sequence[NamedPerson]:
        wanted = list(dict.fromkeys(form.user_id))
        if len(wanted) > MAX_SELECTED:
            raise BadInput(f"Select at most {MAX_SELECTED} people").on_screen(
                "select_most", max_selected=MAX_SELECTED
            )
        named = await self._names.people_by_id(wanted)
        found = [named[one] for one in wanted if one in named]
        if not found:
            raise BadInput("Select at least one person").on_screen("select_someone")
        return found

    async def _page(
        self, _request: Request, admin: AdminRequest, _asked: SelectedForm, draft: FormDraft[SelectedForm]
    ) -> SelectedContext:
        return await self._context(admin, draft.form)

    async def _context(
        self,
        admin: AdminRequest,
        form: SelectedForm,
        *,
        failures: Sequence[tuple[NamedPerson, FormProblem]] = (),
        done: int = 0,
    ) -> SelectedContext:
        return SelectedContext(
            action=parse_action(form.action),
            people=await self._load_people(form),
            picked=await self._lookup.describe(admin, form, ACCESS_FIELDS),
            failures=failures,
            done=done,
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        """Before the routes of one person: `selected` is not an ID."""
        return EditScreen(
            view=self._view,
            path="/people/selected",
            form=SelectedForm,
            load=self._load,
            page=self._page,
            save=self._apply,
            fresh=True,
            fresh_page=True,
        ).routes()


def parse_action(text: str) -> BulkAction:
    if text not in list(BulkAction):
        raise BadInput("action: choose what to do with the people").on_screen("choose_action")
    return BulkAction(text)
