"""Invitations of people, with the role or group that they get when they accept (R9).

The inviter's right is checked when the invitation is sent and again when it is accepted. Someone who has an account
accepts after signing in; for others an account without a password is created.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.email_links import INVITATION_LIFETIME
from gatehouse.accounts.errors import LoginTaken, UserBlocked
from gatehouse.accounts.field_checks import check_lang
from gatehouse.accounts.invitations import Invitation, Invitations
from gatehouse.accounts.model import CENTRAL_APPLICATION, User, check_login, check_new_login, login_key
from gatehouse.accounts.store import EmailLinkStore
from gatehouse.admin.inviter_rights import InviterRights
from gatehouse.admin.role_cells import RoleChange, assigned_end, record_draft
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Conflict, GatehouseError, NotFound, TooMany
from gatehouse.kernel.ids import new_record_id
from gatehouse.kernel.times import DAY, HOUR
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate
from gatehouse.permissions.commands.groups import AccessDraft, GroupCommands
from gatehouse.permissions.commands.projects import find_live_project
from gatehouse.permissions.commands.user_schemas import UserRecordCommands, refuse_unrelated
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import GroupNotFound, Malformed, NoRight, RoleNotFound
from gatehouse.permissions.model.facts import ApplicationModel, Assignment, ScopeHoldings, UserRecord
from gatehouse.permissions.model.invitation import (
    MAX_PROJECT_INVITATIONS,
    NEWEST,
    PROJECT_INVITATION_WINDOW,
    AccessInvitation,
    InvitationPosition,
    InvitedAccess,
)
from gatehouse.permissions.model.project import Project
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import NO_END, End, Scope
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.granting import Granter
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_within, require_operation
from gatehouse.permissions.rights.secret_data import RecordPart
from gatehouse.permissions.store import AccessInvitationStore, GroupStore, ProjectStore
from gatehouse.throttle.limits import ThrottleSubject
from gatehouse.throttle.quotas import Quota, quota_limit

NO_ACCESS: Final = InvitedAccess()
MAX_OPEN: Final = 100  # invitations of one account, or into one project, on a page
INVITATIONS_PATH: Final = "/account/invitations"  # web/pages/paths.py
SAVE_ATTEMPTS: Final = 3  # against concurrent changes of the same record
PROJECT_LIMIT: Final = quota_limit(MAX_PROJECT_INVITATIONS, PROJECT_INVITATION_WINDOW)
BLANK_USER_ID: Final = "0"  # no account has it: a record that holds nothing


class Acceptance(Struct, frozen=True, kw_only=True):
    """What became of an accepted invitation."""

    invitation: AccessInvitation
    refusal: GatehouseError | None = None  # why the access was not given


class InvitationPage(Struct, frozen=True, kw_only=True):
    invitations: Sequence[AccessInvitation]
    after: InvitationPosition | None  # where the next page begins; None at the end


def invitation_page(found: Sequence[AccessInvitation], limit: int) -> InvitationPage:
    """Cut the page from invitations that are one more than its limit if there is a next page."""
    shown = found[:limit]
    if len(found) <= limit:
        return InvitationPage(invitations=shown, after=None)
    return InvitationPage(invitations=shown, after=InvitationPosition(shown[-1].created_at, shown[-1].invitation_id))


class NamedInvitation(Struct, frozen=True, kw_only=True):
    """An invitation with the names of what it gives; empty for what it does not give, or is gone."""

    invitation: AccessInvitation
    application: str = ""
    role: str = ""
    project: str = ""  # where the role counts
    group: str = ""


class AccessInvitations(Struct, frozen=True, kw_only=True, eq=False):
    invitations: Invitations
    logins: EmailLinkStore
    store: AccessInvitationStore
    rights: InviterRights
    projects: ProjectStore
    groups: GroupStore
    group_commands: GroupCommands
    records: UserRecordCommands
    quota: Quota
    composer: Composer
    recorder: Recorder
    clock: Clock

    # -- sending ----------------------------------------------------------------------------------------

    async def invite(
        self, actor: Actor, *, login: str, nick: str, lang: str, access: InvitedAccess = NO_ACCESS
    ) -> Invitation:
        """Invite an address with can_administer; with `access` also one that has an account.

        The path of the result is empty for an account that exists: its owner accepts after signing in. Raises
        LoginTaken for one without `access`, and what `check` raises.
        """
        require_operation(actor.rights, Operation.ADMINISTER)
        checked = await self.check(actor, access) if access else access
        return await self.send(actor, login=login, nick=nick, lang=lang, access=checked)

    async def invite_to_project(
        self, actor: Actor, name: str, logins: Sequence[str], *, lang: str, access: InvitedAccess
    ) -> Sequence[str]:
        """Invite addresses into a project, by mail only; return them.

        The result is the same whether an address has an account or not. Raises Malformed, NoRight, and TooMany after
        100 invitations a day.
        """
        project = await self._managed_project(actor, name)
        checked = await self.check(actor, access)
        refuse_elsewhere(project, checked, await self._project_of_group(checked))
        addresses = list(dict.fromkeys(check_new_login(login) for login in logins))
        for address in addresses:
            subject = ThrottleSubject(("project-invitations", project.project_id), PROJECT_LIMIT)
            if not await self.quota.consume([subject]):
                raise TooMany(HOUR, f"invitations into {project.project_id}")
            await self._invite_quietly(actor, address, lang, checked, project.project_id)
        return addresses

    async def _invite_quietly(
        self, actor: Actor, login: str, lang: str, access: InvitedAccess, project_id: str
    ) -> None:
        """Invite without telling whether there is an account: a blocked one is listed as any other, without mail."""
        try:
            await self.send(actor, login=login, nick="", lang=lang, access=access, into=project_id)
        except UserBlocked:
            known = await self.logins.user_by_login(login)
            if known is not None:
                await self._add(actor, known, access, login=login, into=project_id, by_mail=False)

    async def invite_account(
        self, actor: Actor, user: User, access: InvitedAccess, *, has_signed_in: bool
    ) -> Invitation:
        """Invite an account; the access was checked. Raises UserBlocked, and LoginTaken if nothing is to accept.

        One that was never signed in to gets a link to choose a password, any other accepts after signing in.
        """
        require_operation(actor.rights, Operation.ADMINISTER)
        if user.password_hash is None and not (has_signed_in and user.email_verified):
            sent = await self.invitations.invite_account(user, actor.origin)
            if access:
                await self._add(actor, user, access, login=user.login or "", by_mail=False)
            return replace(sent, path="") if has_signed_in else sent
        if user.blocked or user.login is None:
            raise UserBlocked(f"no invitation to {user.user_id}")
        if not access:
            raise LoginTaken
        await self._add(actor, user, access, login=user.login, by_mail=True)
        return Invitation(user=user, path="")

    async def send(
        self, actor: Actor, *, login: str, nick: str, lang: str, access: InvitedAccess, into: str = ""
    ) -> Invitation:
        """Invite an address; the actor's right to the access was checked."""
        named = nick.strip() or login.partition("@")[0]
        try:
            sent = await self.invitations.invite(login=login, nick=named, lang=check_lang(lang), origin=actor.origin)
        except LoginTaken:
            if not access:
                raise
            known = await self._account_of(login)
            await self._add(actor, known, access, login=login, into=into, by_mail=True)
            return Invitation(user=known, path="")
        if access:
            await self._add(actor, sent.user, access, login=login, into=into, by_mail=False)
        return sent

    async def _account_of(self, login: str) -> User:
        known = await self.logins.user_by_login(check_login(login))
        if known is None or known.blocked or known.login is None:
            raise UserBlocked(f"no invitation to {login}")
        return known

    async def _add(
        self, actor: Actor, user: User, access: InvitedAccess, *, login: str, into: str = "", by_mail: bool
    ) -> None:
        """Store the invitation; `by_mail`: with an email of its own, else that of the account is enough.

        `login`: as it was invited; the spelling of the account would tell the inviter that there was one.
        """
        now, reach = self.clock.now(), actor.rights.service_reach
        invitation = AccessInvitation(
            invitation_id=new_record_id(now),
            user_id=user.user_id,
            login=login,
            inviter=actor.user_id,
            vouching_application_id=0 if reach is None else reach.application_id,
            access=access,
            invited_into=into or access.project_id,
            created_at=now,
            expires_at=now + INVITATION_LIFETIME,
        )
        mail = self.composer.compose(
            MailTemplate.ACCESS_INVITE,
            to=user.login or "",
            lang=user.lang,
            path=INVITATIONS_PATH,
            days=str(INVITATION_LIFETIME // DAY),
        )
        entry = self._record(AuditEvent.ACCESS_INVITED, invitation, actor.origin)
        await self.store.add(invitation, entry, [mail] if by_mail else [])

    # -- what may be given ------------------------------------------------------------------------------

    async def check(self, actor: Actor, access: InvitedAccess) -> InvitedAccess:
        """Return the access with the role's key, if the actor may give it now. Raises Malformed and NoRight."""
        if not access:
            raise Malformed("data: name a role or a group").on_screen("role_or_group")
        if access.group_id:
            await self.group_commands.find_group(actor, access.group_id, Operation.GROUP_ACCESS)
        if not access.role:
            return InvitedAccess(group_id=access.group_id)
        giver, model = await self._giver(actor, access.application_id)
        role = role_of(model, access.role)
        scope = await self._scope(giver, access.project_id)
        self._refuse_role(giver, model, role, scope, access.end)
        return replace(access, role=role.key, project_id=scope.project_id)

    async def _giver(self, actor: Actor, application_id: int) -> tuple[Actor, ApplicationModel]:
        reach = actor.rights.service_reach
        return await self.rights.load(
            actor.user_id,
            application_id,
            vouching_application_id=0 if reach is None else reach.application_id,
            origin=actor.origin,
        )

    async def _scope(self, giver: Actor, project_id: str) -> Scope:
        if not project_id:
            return Scope()
        return Scope((await self._managed_project(giver, project_id)).project_id)

    async def _managed_project(self, actor: Actor, name: str) -> Project:
        model = await find_live_project(
            self.projects, actor.rights, grammar.check_project_id(name, "data.project_id")
        )
        require_operation(actor.rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=model.project.project_id))
        return model.project

    async def _project_of_group(self, access: InvitedAccess) -> str:
        return (await self.groups.group(access.group_id)).project_id if access.group_id else ""

    def _refuse_role(self, giver: Actor, model: ApplicationModel, role: Role, scope: Scope, end: int) -> None:
        """Raise unless a save of this assignment by the giver would be accepted."""
        now, application = self.clock.now(), model.application
        if end and end <= now:
            raise Malformed("data.role.expired: must be in the future").on_screen("future")
        if application.removed:
            raise NoRight("the application was removed")
        target = GuardTarget(application_id=application.application_id, project_id=scope.project_id or None)
        if not application.is_central and not is_within(giver.rights.service_reach, target):
            raise NoRight(f"not through the service: {target}")
        if scope.is_root and not giver.rights.can_write(RecordPart.ROLES, BLANK_USER_ID):
            raise NoRight(f"roles of application {application.application_id}")
        if not scope.is_root:
            refuse_unrelated(model, scope.project_id, "data.role.project_id")
        blank = UserRecord(application_id=application.application_id, user_id=BLANK_USER_ID, scopes={})
        holdings = ScopeHoldings(roles=(Assignment(role=role.key, end=end_of(end)),))
        Granter(rights=giver.rights, model=model, now=now).refuse_change(
            blank, replace(blank, scopes={scope: holdings})
        )

    # -- accepting --------------------------------------------------------------------------------------

    async def open_for(self, user: User) -> Sequence[AccessInvitation]:
        """Return the invitations that were sent to the account's present address."""
        invitations = await self.store.of_user(user.user_id, self.clock.now(), MAX_OPEN)
        key = user.login_key
        return [invitation for invitation in invitations if key is not None and login_key(invitation.login) == key]

    async def accept(self, user: User, invitation_id: str, origin: AuditOrigin) -> Acceptance:
        """Accept one invitation of the signed-in owner of the address. Raises NotFound, NoRight if unverified."""
        if not user.email_verified:
            raise NoRight("the address is not verified")
        invitation = next(
            (candidate for candidate in await self.open_for(user) if candidate.invitation_id == invitation_id), None
        )
        if invitation is None:
            raise NotFound(f"no open invitation {invitation_id}")
        return await self._take(invitation, origin)

    async def accept_all(self, user: User, origin: AuditOrigin) -> Sequence[Acceptance]:
        """Accept what came with the link that its owner has just used.

        A link that was shown to the inviter proves nothing: then only what an administrator offered counts.
        """
        return [
            await self._take(invitation, origin)
            for invitation in await self.open_for(user)
            if user.email_verified or await self._is_from_administrator(invitation, origin)
        ]

    async def decline(self, user: User, invitation_id: str, origin: AuditOrigin) -> None:
        invitation = next(
            (candidate for candidate in await self.open_for(user) if candidate.invitation_id == invitation_id), None
        )
        if invitation is not None:
            entry = self._record(AuditEvent.ACCESS_DECLINED, invitation, origin)
            await self.store.take(invitation_id, user.user_id, entry, self.clock.now())

    async def _is_from_administrator(self, invitation: AccessInvitation, origin: AuditOrigin) -> bool:
        try:
            giver, _ = await self.rights.load(
                invitation.inviter,
                CENTRAL_APPLICATION,
                vouching_application_id=invitation.vouching_application_id,
                origin=origin,
            )
        except (NoRight, NotFound):
            return False
        return giver.rights.administers

    async def _take(self, invitation: AccessInvitation, origin: AuditOrigin) -> Acceptance:
        """Take the invitation first: of two requests one gives the access, in the inviter's name."""
        entry = self._record(AuditEvent.ACCESS_ACCEPTED, invitation, origin)
        if not await self.store.take(invitation.invitation_id, invitation.user_id, entry, self.clock.now()):
            raise NotFound(f"no open invitation {invitation.invitation_id}")
        try:
            await self._give(invitation, origin)
        except GatehouseError as error:
            await self.store.record_failure(
                self._record(AuditEvent.ACCESS_NOT_GIVEN, invitation, origin, reason=type(error).__name__)
            )
            return Acceptance(invitation=invitation, refusal=error)
        return Acceptance(invitation=invitation)

    async def _give(self, invitation: AccessInvitation, origin: AuditOrigin) -> None:
        access = invitation.access
        giver, model = await self.rights.load(
            invitation.inviter,
            access.application_id or CENTRAL_APPLICATION,
            vouching_application_id=invitation.vouching_application_id,
            origin=origin,
        )
        if access.role:
            await self._assign(giver, model, invitation)
        if access.group_id:
            await self._join(giver, invitation)

    async def _assign(self, giver: Actor, model: ApplicationModel, invitation: AccessInvitation) -> None:
        """Assign the role, never for a shorter time than the person has it already."""
        access, application_id = invitation.access, model.application.application_id
        role = role_of(model, access.role)
        scope = await self._scope(giver, access.project_id)
        self._refuse_role(giver, model, role, scope, access.end)
        for attempt in range(SAVE_ATTEMPTS):
            facts = await self.records.load_person(giver, invitation.user_id, application_id)
            record = facts.records[application_id]
            current_end = assigned_end(record, scope, role.key)
            if current_end is not None and lasts_as_long(current_end, access.end):
                return
            change = RoleChange(role=role, scope=scope, was=current_end, becomes=end_of(access.end))
            draft = record_draft(giver.rights, model, record, [change], record.version)
            try:
                await self.records.save(giver, model, invitation.user_id, draft, 0)
            except Conflict:
                if attempt + 1 == SAVE_ATTEMPTS:
                    raise
            else:
                return

    async def _join(self, giver: Actor, invitation: AccessInvitation) -> None:
        for attempt in range(SAVE_ATTEMPTS):
            group = await self.group_commands.find_group(giver, invitation.access.group_id, Operation.GROUP_ACCESS)
            if invitation.user_id in group.users:
                return
            draft = AccessDraft(users=[*group.users, invitation.user_id], version=group.version)
            try:
                await self.group_commands.save_access(giver, group.group_id, draft)
            except Conflict:
                if attempt + 1 == SAVE_ATTEMPTS:
                    raise
            else:
                return

    # -- the inviter's view -----------------------------------------------------------------------------

    async def open_into(
        self, actor: Actor, name: str, after: InvitationPosition = NEWEST, limit: int = MAX_OPEN
    ) -> InvitationPage:
        """Return open invitations into a project that the actor manages, the newest first."""
        project = await self._managed_project(actor, name)
        found = await self.store.into_project(project.project_id, self.clock.now(), limit + 1, after)
        return invitation_page(found, limit)

    async def withdraw(self, actor: Actor, name: str, invitation_id: str) -> None:
        """End an open invitation into a project that the actor manages; one that is gone already is no error."""
        project = await self._managed_project(actor, name)
        invitation = await self.store.find(invitation_id, self.clock.now())
        if invitation is not None and invitation.invited_into == project.project_id:
            entry = self._record(AuditEvent.ACCESS_WITHDRAWN, invitation, actor.origin)
            await self.store.withdraw(invitation_id, project.project_id, entry)

    async def open_of(
        self, actor: Actor, user_id: str, after: InvitationPosition = NEWEST, limit: int = MAX_OPEN
    ) -> InvitationPage:
        """Return open invitations of an account, the newest first, for administrators."""
        require_operation(actor.rights, Operation.ADMINISTER)
        return invitation_page(await self.store.of_user(user_id, self.clock.now(), limit + 1, after), limit)

    async def withdraw_of(self, actor: Actor, user_id: str, invitation_id: str) -> None:
        """End an open invitation of an account; one that is gone already is no error."""
        require_operation(actor.rights, Operation.ADMINISTER)
        invitation = await self.store.find(invitation_id, self.clock.now())
        if invitation is not None and invitation.user_id == user_id:
            entry = self._record(AuditEvent.ACCESS_WITHDRAWN, invitation, actor.origin)
            await self.store.take(invitation_id, user_id, entry, self.clock.now())

    async def name(self, invitations: Sequence[AccessInvitation]) -> Sequence[NamedInvitation]:
        """Return the invitations with names; what they refer to may be gone."""
        models = await self.rights.models.application_models(
            sorted({invitation.access.application_id for invitation in invitations if invitation.access.role})
        )
        projects = await self.rights.models.projects(
            sorted({invitation.access.project_id for invitation in invitations if invitation.access.project_id})
        )
        return [
            NamedInvitation(
                invitation=invitation,
                application=model.application.name if model else "",
                role=role.name
                if (role := model.roles.get(invitation.access.role) if model else None)
                else invitation.access.role,
                project=project.project.title if (project := projects.get(invitation.access.project_id)) else "",
                group=await self._group_title(invitation.access.group_id),
            )
            for invitation in invitations
            for model in [models.get(invitation.access.application_id)]
        ]

    async def _group_title(self, group_id: str) -> str:
        if not group_id:
            return ""
        try:
            return (await self.groups.group(group_id)).title
        except GroupNotFound:
            return ""

    def _record(
        self, event: AuditEvent, invitation: AccessInvitation, origin: AuditOrigin, **more: str
    ) -> AuditRecord:
        return self.recorder.record(
            event, origin, subject=invitation.user_id, details={**access_details(invitation), **more}
        )


def access_details(invitation: AccessInvitation) -> Mapping[str, str | int]:
    access = invitation.access
    details: Mapping[str, str | int] = {
        "application_id": access.application_id,
        "role": access.role,
        "until": access.end,
        "project_id": invitation.invited_into,
        "group_id": access.group_id,
        "inviter": invitation.inviter,
    }
    return {name: value for name, value in details.items() if value}


def refuse_elsewhere(project: Project, access: InvitedAccess, project_of_group: str) -> None:
    """Refuse a role or group of another place than the project."""
    if access.role and access.project_id != project.project_id:
        raise Malformed("data.role.project_id: must be the project").on_screen("role_in_project")
    if project_of_group not in ("", project.project_id):
        raise Malformed("data.group_id: must be a group of the project").on_screen("choose_group")


def role_of(model: ApplicationModel, name: str) -> Role:
    role = model.roles.get(name.lower())
    if role is None:
        raise RoleNotFound(f"role {name} of application {model.application.application_id}")
    return role


def end_of(seconds: int) -> End:
    return End(expired=seconds) if seconds else NO_END


def lasts_as_long(current_end: End, end: int) -> bool:
    """Whether an assignment that exists lasts at least until `end`; 0 is for ever."""
    return not current_end.expired or current_end.ttl > 0 or (end > 0 and current_end.expired >= end)
