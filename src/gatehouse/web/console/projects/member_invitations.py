"""Invitations into a project by its owners: by email only, and the same whether an address has an account (R9)."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.admin.access_invitations import AccessInvitations, NamedInvitation
from gatehouse.admin.bulk_invitations import parse_addresses
from gatehouse.admin.projects import ProjectListStore
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.invitation import MAX_PROJECT_INVITATIONS, InvitedAccess
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open, require_operation
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.ends import EndChoice, parse_end
from gatehouse.web.console.projects.holdings import assignable_roles
from gatehouse.web.console.projects.project import ProjectHead, ProjectLoader, project_head, project_path
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

MAX_APPLICATIONS: Final = 50  # whose roles are offered


class OfferedRoles(Struct, frozen=True, kw_only=True):
    """Roles of an application, or of the project itself."""

    title: str
    roles: Sequence[tuple[str, str]]  # value of the form, and name


class InviteMembersForm(CsrfForm, frozen=True, kw_only=True):
    login: str = ""  # addresses
    role: str = ""  # `<application id>/<role>`
    end: str = EndChoice.NONE.value
    until: str = ""
    group_id: str = ""


class WithdrawForm(CsrfForm, frozen=True, kw_only=True):
    invitation_id: str


class InviteMembersContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/invite.html"

    head: ProjectHead
    offered: Sequence[OfferedRoles]
    groups: Sequence[tuple[str, str]]
    invitations: Sequence[NamedInvitation]
    is_cut: bool
    most: int = MAX_PROJECT_INVITATIONS


class MemberInvitationScreens(Struct, frozen=True, kw_only=True, eq=False):
    loader: ProjectLoader
    invitations: AccessInvitations
    lists: ProjectListStore
    view: ConsoleView
    clock: Clock

    async def _load(self, request: Request, admin: AdminRequest) -> ProjectModel:
        model = await self.loader.load(request, admin)
        require_operation(admin.rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=model.project.project_id))
        return model

    async def _page(
        self, _request: Request, admin: AdminRequest, model: ProjectModel, _draft: FormDraft[InviteMembersForm]
    ) -> InviteMembersContext:
        project_id = model.project.project_id
        page = await self.invitations.open_into(admin.actor, project_id)
        return InviteMembersContext(
            head=project_head(admin, model.project, "members"),
            offered=await self._offered_roles(admin, model),
            groups=[
                (one.group_id, one.title)
                for one in sorted(model.groups.values(), key=lambda group: group.title_key)
                if is_open(
                    admin.rights,
                    Operation.GROUP_ACCESS,
                    GuardTarget(project_id=project_id, group_id=one.group_id),
                )
            ],
            invitations=await self.invitations.name(page.invitations),
            is_cut=page.after is not None,
        )

    async def _offered_roles(self, admin: AdminRequest, model: ProjectModel) -> Sequence[OfferedRoles]:
        """Roles that count in the project; whether the reader may give one is decided when they do."""
        central = assignable_roles(admin.authenticated.central)
        found = [
            OfferedRoles(
                title=model.project.title, roles=[(f"{CENTRAL_APPLICATION}/{one.key}", one.name) for one in central]
            )
        ]
        own = (await self.lists.applications(model.project.project_id))[:MAX_APPLICATIONS]
        by_id = await self.view.authenticate_for_each(admin, [one.application_id for one in own])
        for application in own:
            authenticated = by_id.get(application.application_id)
            if authenticated is None or authenticated.model is None:
                continue
            if is_open(authenticated.rights, Operation.ROLE_NAMES, authenticated.target):
                roles = [role for _, role in sorted(authenticated.model.roles.items()) if not role.protected]
                options = [(f"{application.application_id}/{one.key}", one.name) for one in roles]
                found.append(OfferedRoles(title=application.name, roles=options))
        return [one for one in found if one.roles]

    async def _save(
        self, _request: Request, admin: AdminRequest, model: ProjectModel, form: InviteMembersForm
    ) -> Saved:
        project_id = model.project.project_id
        addresses = parse_addresses(form.login, most=MAX_PROJECT_INVITATIONS)
        application_id, _, role = form.role.partition("/")
        if not application_id.isdecimal() and not form.group_id:
            raise Malformed("role: choose a role or group").on_screen("role_or_group")
        access = InvitedAccess(
            application_id=int(application_id or 0),
            role=role,
            end=parse_end(form.end, form.until, zone=admin.zone, now=self.clock.now()) if role else 0,
            project_id=project_id if role else "",
            group_id=form.group_id,
        )
        await self.invitations.invite_to_project(
            admin.actor, project_id, [one.login for one in addresses], lang=admin.user.lang, access=access
        )
        return Saved(address=invite_path(project_id), message="members_invited")

    async def withdraw(self, request: Request, admin: AdminRequest, form: WithdrawForm) -> Response:
        model = await self._load(request, admin)
        project_id = model.project.project_id
        await self.invitations.withdraw(admin.actor, project_id, form.invitation_id)
        return self.view.redirect_with_flash(invite_path(project_id), "invitation_withdrawn")

    def routes(self) -> Sequence[ConsoleRoute]:
        """Before the routes of one member: `invite` is not an ID."""
        path = "/projects/{project_id}/members/invite"
        invite = EditScreen(
            view=self.view,
            path=path,
            form=InviteMembersForm,
            load=self._load,
            form_of=lambda _: InviteMembersForm(),
            page=self._page,
            save=self._save,
        )
        return [*invite.routes(), self.view.form(f"{path}/withdraw", WithdrawForm, self.withdraw)]


def invite_path(project_id: str) -> str:
    return f"{project_path(project_id, 'members')}/invite"
