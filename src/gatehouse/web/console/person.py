"""One person: the head of every tab, the account, and actions on it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from markupsafe import Markup
from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import CENTRAL_APPLICATION, FORM_FIELDS, AccountField, AccountKind, User
from gatehouse.accounts.own_account.profile import AccountProfile
from gatehouse.accounts.profile_fields import AccountChanges
from gatehouse.accounts.sessions import Sessions
from gatehouse.admin.names import NamedApplication
from gatehouse.admin.own_permissions import OwnPermissionsLoader
from gatehouse.admin.people import AccountState, DirectRole, PeopleListStore, PersonErasureImpact
from gatehouse.admin.people_admin import PeopleAdmin
from gatehouse.fields.derive import form_rows, with_members
from gatehouse.fields.model import DescribedField
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import NotFound
from gatehouse.kernel.times import DAY, HOUR
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.api.permissions.user_records import user_entry
from gatehouse.web.console.combobox import ComboboxOption
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.field_forms import YES, form_members, form_values, typed_values
from gatehouse.web.console.forms import VersionedForm
from gatehouse.web.console.frame import ApiCall, Undo
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.people import invitation_page
from gatehouse.web.console.person_role_form import AssignRoleForm, AssignRolePanel, role_panel
from gatehouse.web.console.view import (
    AdminRequest,
    Confirmation,
    ConfirmationField,
    ConsoleRoute,
    ConsoleView,
    require_confirmation_text,
)
from gatehouse.web.http.browser import device_name
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.translations import Translator

ENTRY: Final = ConsoleEntry.PEOPLE
MAX_APPLICATIONS: Final = 6  # that are offered by name
MAX_ROLES: Final = 8  # and groups, of a profile
TABS: Final = ("overview", "access", "methods", "sessions", "data", "activity")
ACCESS_PAGES: Final = ("access", "permissions", "bans", "timeline")  # of the tab Access


class PersonAction(StrEnum):
    """What an administrator does to an account as a whole; the texts are `person_act.<value>…`."""

    BLOCK = "block"
    UNBLOCK = "unblock"
    SIGN_OUT = "sign_out"
    LINK = "link"
    PROMOTE = "promote"
    DEMOTE = "demote"
    ERASE = "erase"

    @property
    def is_destructive(self) -> bool:
        return self in (PersonAction.BLOCK, PersonAction.SIGN_OUT, PersonAction.DEMOTE, PersonAction.ERASE)


INVERSES: Final = {
    PersonAction.BLOCK: PersonAction.UNBLOCK,
    PersonAction.UNBLOCK: PersonAction.BLOCK,
    PersonAction.PROMOTE: PersonAction.DEMOTE,
    PersonAction.DEMOTE: PersonAction.PROMOTE,
}


class PersonHead(Struct, frozen=True, kw_only=True):
    """What every tab of a person shows above itself."""

    user_id: str
    nick: str
    login: str
    tab: str
    blocked: bool
    banned: bool
    is_service: bool
    administers: bool
    is_me: bool

    @property
    def path(self) -> str:
        return f"{ENTRY.path}/{self.user_id}"

    @property
    def tabs(self) -> Sequence[tuple[str, str]]:
        return [(tab, self.path if tab == "overview" else f"{self.path}/{tab}") for tab in TABS]

    @property
    def access_pages(self) -> Sequence[tuple[str, str]]:
        return [(page, f"{self.path}/{page}") for page in ACCESS_PAGES]

    @property
    def acts(self) -> Sequence[PersonAction]:
        """The available actions; no one blocks or erases their own account."""
        found = [PersonAction.SIGN_OUT]
        if not self.is_service:
            found += [PersonAction.LINK, PersonAction.DEMOTE if self.administers else PersonAction.PROMOTE]
        if not self.is_me:
            found += [PersonAction.UNBLOCK if self.blocked else PersonAction.BLOCK]
            found += [] if self.is_service else [PersonAction.ERASE]
        return found


class PersonProfile(Struct, frozen=True, kw_only=True):
    """What one wants to know of a person first."""

    user: User
    state: AccountState
    roles: Sequence[DirectRole]  # the first of them
    more_roles: int
    groups: Sequence[str]
    devices: Sequence[str]  # of live sessions, the last seen first
    failures: int  # failed sign-ins of the last day
    failed_at: int = 0  # the hour of the last
    failed_for: str = ""  # its reason


class PersonContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/overview.html"

    head: PersonHead
    profile: PersonProfile
    assign: AssignRolePanel
    applications: Sequence[NamedApplication]  # that the person uses, to ban them from
    call: ApiCall
    picked: Mapping[str, ComboboxOption] = field(default_factory=dict)


class PersonPeekContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/peek.html"

    head: PersonHead
    profile: PersonProfile


class PersonEditContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/edit.html"

    head: PersonHead
    user: User
    rows: Sequence[tuple[DescribedField[AccountField], ...]]  # of the form


class PersonEmailContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/email.html"

    head: PersonHead


@with_members(lambda: form_members(FORM_FIELDS))
class PersonForm(VersionedForm, frozen=True, kw_only=True):
    """The described fields of an account."""

    def changes(self) -> AccountChanges:
        values = typed_values(self, FORM_FIELDS)
        return {**values, "country": values["country"].upper()}


class PersonEmailForm(VersionedForm, frozen=True, kw_only=True):
    login: str = ""
    email_verified: str = ""

    def changes(self) -> AccountChanges:
        return {"login": self.login, "email_verified": self.email_verified == YES}


class PersonActionForm(CsrfForm, frozen=True, kw_only=True):
    typed: str = ""  # the person's id once more, for what cannot be taken back


class PersonLoader:
    """Finds the person an address names, for every tab."""

    def __init__(self, *, people_admin: PeopleAdmin, lists: PeopleListStore, view: ConsoleView, clock: Clock) -> None:
        self.people_admin = people_admin
        self.lists = lists
        self.view = view
        self.clock = clock

    async def load(self, request: Request, admin: AdminRequest, tab: str) -> tuple[User, PersonHead]:
        user, state = await self.load_with_state(request, admin)
        return user, person_head(admin, user, state, tab, self.clock.now())

    async def load_with_state(self, request: Request, admin: AdminRequest) -> tuple[User, AccountState]:
        user = await self.people_admin.person(admin.actor, request.path_params["user_id"])
        return user, await self.lists.account_state(user.user_id, self.clock.now())


class ProfileLoader(Struct, frozen=True, kw_only=True, eq=False):
    """Loads what a person's page and the peek at them show."""

    lists: PeopleListStore
    sessions: Sessions
    account: AccountProfile
    clock: Clock

    async def load(self, user: User, state: AccountState) -> PersonProfile:
        given = await self.lists.direct_permissions(user.user_id)
        since = self.clock.now() - DAY
        failed = [one for one in await self.account.load_failures(user.user_id) if one.hour > since - HOUR]
        last = max(failed, key=lambda one: one.hour, default=None)
        return PersonProfile(
            user=user,
            state=state,
            roles=given.roles[:MAX_ROLES],
            more_roles=max(len(given.roles) - MAX_ROLES, 0),
            groups=[one.group for one in given.groups[:MAX_ROLES]],
            devices=[device_name(one.agent) for one in await self.sessions.of_user(user.user_id)],
            failures=sum(one.times for one in failed),
            failed_at=last.hour if last else 0,
            failed_for=last.reason.value if last else "",
        )


class PersonScreens:
    def __init__(
        self,
        loader: PersonLoader,
        *,
        profiles: ProfileLoader,
        lookup: Lookup,
        own_permissions: OwnPermissionsLoader,
        base_url: str,
        sends_mail: Callable[[], bool],
    ) -> None:
        self._own_permissions = own_permissions
        self._loader = loader
        self._profiles = profiles
        self._lookup = lookup
        self._base_url = base_url
        self._sends_mail = sends_mail
        self._people_admin = loader.people_admin
        self._view = loader.view

    async def _load(self, request: Request, admin: AdminRequest) -> User:
        return await self._people_admin.person(admin.actor, request.path_params["user_id"])

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        user, state = await self._loader.load_with_state(request, admin)
        context = PersonContext(
            head=person_head(admin, user, state, "overview", self._loader.clock.now()),
            profile=await self._profiles.load(user, state),
            assign=await role_panel(admin, user.user_id, AssignRoleForm(), lookup=self._lookup),
            applications=await self._used_applications(user.user_id),
            call=ApiCall(
                path="user",
                body={"action": "get", "data": {"user_id": user.user_id}},
                record=user_entry(user, self._base_url),
            ),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def peek(self, request: Request, admin: AdminRequest) -> Response:
        """Show the person beside the list."""
        user, state = await self._loader.load_with_state(request, admin)
        head = person_head(admin, user, state, "overview", self._loader.clock.now())
        context = PersonPeekContext(head=head, profile=await self._profiles.load(user, state))
        return self._view.render(request, admin, ENTRY, context)

    async def _edit_page(
        self, request: Request, admin: AdminRequest, user: User, _draft: FormDraft[PersonForm]
    ) -> PersonEditContext:
        _, head = await self._loader.load(request, admin, "overview")
        return PersonEditContext(head=head, user=user, rows=account_rows(user))

    async def _used_applications(self, user_id: str) -> Sequence[NamedApplication]:
        found = await self._own_permissions.find_applications(user_id, None)
        return [one for one in found if one.application_id != CENTRAL_APPLICATION][:MAX_APPLICATIONS]

    async def _email_page(
        self, request: Request, admin: AdminRequest, _user: User, _draft: FormDraft[PersonEmailForm]
    ) -> PersonEmailContext:
        _, head = await self._loader.load(request, admin, "overview")
        return PersonEmailContext(head=head)

    async def _save(
        self, _request: Request, admin: AdminRequest, user: User, form: PersonForm | PersonEmailForm
    ) -> Saved:
        await self._people_admin.change(admin.actor, user, form.changes(), version=form.version)
        return Saved(address=f"{ENTRY.path}/{user.user_id}")

    async def confirm_action(self, request: Request, admin: AdminRequest) -> Confirmation:
        user, head = await self._loader.load(request, admin, "overview")
        action, t = parse_action(request), self._view.words(request)
        erases = action is PersonAction.ERASE
        impact = await self._loader.lists.erasure_impact(user.user_id, self._loader.clock.now())
        return Confirmation(
            title=t(f"person_act.{action}_title", nick=head.nick),
            trail=[(head.nick, head.path)],
            text=t(f"person_act.{action}_text"),
            consequences=list(consequences_of(t, action, impact)),
            subject=Markup("<strong>{}</strong> <span>{} <code>{}</code></span>").format(
                head.nick, head.login, head.user_id
            ),
            is_destructive=action.is_destructive,
            field=ConfirmationField(
                name="typed",
                label=t("people.erase_type", user_id=head.user_id),
                wrong=t("people.erase_wrong"),
                inputmode="numeric",
            )
            if erases
            else None,
            button=t(f"person_act.{action}"),
        )

    async def perform_action(self, request: Request, admin: AdminRequest, form: PersonActionForm) -> Response:
        action, user_id = parse_action(request), request.path_params["user_id"]
        erases = action is PersonAction.ERASE
        if erases:
            require_confirmation_text(form.typed, user_id)
        if action is PersonAction.LINK:
            return await self._send_link(request, admin, user_id)
        await self._perform(admin, action, user_id)
        address = ENTRY.path if erases else f"{ENTRY.path}/{user_id}"
        inverse = INVERSES.get(action)
        undo = Undo(path=f"{address}/act/{inverse}") if inverse else None
        return self._view.redirect_with_flash(address, f"person_{action}", undo=undo)

    async def _send_link(self, request: Request, admin: AdminRequest, user_id: str) -> Response:
        """Show the link of an invitation; any other link goes to the owner of the account only."""
        invitation = await self._people_admin.send_password_link(admin.actor, user_id)
        sends_mail = self._sends_mail()
        if invitation is not None and invitation.path:
            t = self._view.words(request)
            context = invitation_page(t, invitation, base_url=self._base_url, sends_mail=sends_mail)
            return self._view.render(request, admin, ENTRY, context)
        message = "person_link" if sends_mail else "person_link_waits"
        return self._view.redirect_with_flash(f"{ENTRY.path}/{user_id}", message)

    async def _perform(self, admin: AdminRequest, action: PersonAction, user_id: str) -> None:
        match action:
            case PersonAction.BLOCK | PersonAction.UNBLOCK:
                await self._people_admin.block(admin.actor, user_id, blocked=action is PersonAction.BLOCK)
            case PersonAction.SIGN_OUT:
                await self._people_admin.sign_out(admin.actor, user_id, keep=admin.signed_in.session)
            case PersonAction.PROMOTE | PersonAction.DEMOTE:
                admin = await self._view.for_application(admin, CENTRAL_APPLICATION)
                central = admin.authenticated.require_application(Operation.ADMINISTER)
                holds = action is PersonAction.PROMOTE
                await self._people_admin.set_administrator(admin.actor, central, user_id, holds=holds)
            case PersonAction.ERASE:
                await self._people_admin.erase(admin.actor, user_id)

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/people/{user_id}"
        edit = EditScreen(
            view=view,
            path=f"{path}/edit",
            form=PersonForm,
            load=self._load,
            form_of=form_of,
            page=self._edit_page,
            save=self._save,
            undoable=True,
        )
        email = EditScreen(
            view=view,
            path=f"{path}/email",
            form=PersonEmailForm,
            load=self._load,
            form_of=email_form_of,
            page=self._email_page,
            save=self._save,
            fresh=True,
            fresh_page=True,
        )
        return [
            view.page(path, self.show),
            view.page(f"{path}/peek", self.peek),
            *edit.routes(),
            *email.routes(),
            *view.confirmation(f"{path}/act/{{act}}", PersonActionForm, self.confirm_action, self.perform_action),
        ]


def parse_action(request: Request) -> PersonAction:
    try:
        return PersonAction(request.path_params["act"])
    except ValueError:
        raise NotFound("no such act") from None


def consequences_of(t: Translator, action: PersonAction, impact: PersonErasureImpact) -> Iterator[str]:
    if action not in (PersonAction.BLOCK, PersonAction.SIGN_OUT, PersonAction.ERASE):
        return
    yield t("people.breaks_sessions", count=impact.sessions)
    yield t("people.breaks_clients", count=impact.clients)
    if action is PersonAction.ERASE:
        yield t("people.breaks_roles", count=impact.roles)
        yield t("people.breaks_groups", count=impact.groups)
        for title in impact.sole_owner_of:
            yield t("people.breaks_owner", title=title)


def person_head(admin: AdminRequest, user: User, state: AccountState, tab: str, now: int) -> PersonHead:
    return PersonHead(
        user_id=user.user_id,
        nick=user.nick,
        login=user.login or "",
        tab=tab,
        blocked=user.blocked,
        banned=any(ban.is_active(now) for ban in user.bans),
        is_service=user.kind is AccountKind.SERVICE,
        administers=state.administers,
        is_me=user.user_id == admin.user.user_id,
    )


def email_form_of(user: User) -> PersonEmailForm:
    return PersonEmailForm(
        login=user.login or "", email_verified=YES if user.email_verified else "", version=user.version
    )


def account_rows(user: User) -> list[tuple[DescribedField[AccountField], ...]]:
    """Return the form's rows; service accounts have no fields of a person."""
    is_service = user.kind is AccountKind.SERVICE
    shown = [one for one in FORM_FIELDS if not (is_service and one.field.people_only)]
    return form_rows(shown)


def form_of(user: User) -> PersonForm:
    return PersonForm(version=user.version, **form_values(user, FORM_FIELDS))
