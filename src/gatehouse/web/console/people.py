"""People: the list, and a new one."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.invitations import Invitation
from gatehouse.accounts.model import EnabledMethods
from gatehouse.admin.bulk_invitations import parse_addresses
from gatehouse.admin.paging import Page
from gatehouse.admin.people import PeopleListStore
from gatehouse.admin.people_admin import PeopleAdmin
from gatehouse.admin.people_list import PeopleFilter, PeopleListQuery, PeopleSort, PersonListItem, SeenFilter
from gatehouse.admin.saved_views import SavedView, SavedViewStore, check_view
from gatehouse.fields.secrets import SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.frame import NewSecretContext
from gatehouse.web.console.invited import ACCESS_FIELDS, InvitationScreens, InvitedAccessForm
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.people_selected import BulkAction
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
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.translations import Translator

ENTRY: Final = ConsoleEntry.PEOPLE
PEOPLE_LIST: Final = "people"  # of saved views
FILTER_FIELDS: Final = {"application_id": ComboboxKind.APPLICATION, "role": ComboboxKind.ROLE}
COLUMNS: Final = {
    "id": lambda line: line.user_id,
    "nick": lambda line: line.nick,
    "email": lambda line: line.login,
    "verified": lambda line: line.email_verified,
    "kind": lambda line: line.kind,
    "blocked": lambda line: line.blocked,
    "administrator": lambda line: line.administers,
    "registered": lambda line: line.registered_at,
    "last seen": lambda line: line.seen_at or "",
}


class OnboardingMethod(StrEnum):
    """How a new person gets their account; the texts are `people.entrance_<value>`."""

    INVITE = "invite"
    PASSWORD = "password"  # noqa: S105 - words
    NONE = "none"


class PeopleQuery(ListQuery, frozen=True, kw_only=True):
    among: str = ""
    tag: str = ""
    provider: str = ""
    application_id: str = ""
    role: str = ""
    seen: str = ""
    import_id: str = ""  # those of an import who have no password yet
    sort: str = ""

    @property
    def list_query(self) -> PeopleListQuery:
        """Unknown choices of an address count as none."""
        return PeopleListQuery(
            among=self.list_among,
            tag=self.tag.strip(),
            provider=self.provider.strip(),
            application_id=int(self.application_id or 0),
            role=self.role.strip(),
            seen=SeenFilter(self.seen) if self.seen in list(SeenFilter) else SeenFilter.ANY,
            import_id=self.import_id.strip(),
            sort=self.order,
        )

    @property
    def list_among(self) -> PeopleFilter:
        return PeopleFilter(self.among) if self.among in list(PeopleFilter) else PeopleFilter.EVERYBODY

    @property
    def order(self) -> PeopleSort:
        return PeopleSort(self.sort) if self.sort in list(PeopleSort) else PeopleSort.NEWEST

    @property
    def has_more_filters(self) -> bool:
        return bool(self.provider or self.application_id or self.role or self.tag or self.seen not in ("", "any"))


class ViewForm(CsrfForm, frozen=True, kw_only=True):
    name: str = ""


class PeopleContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/list.html"

    found: Page[PersonListItem]
    providers: Sequence[str]
    picked: Mapping[str, ComboboxOption]
    views: Sequence[SavedView] = ()
    problem: FormProblem | None = None
    choices: Sequence[PeopleFilter] = tuple(PeopleFilter)
    seen_choices: Sequence[SeenFilter] = tuple(SeenFilter)
    actions: Sequence[BulkAction] = tuple(BulkAction)


class NewPersonContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/new.html"

    form: "NewPersonForm"
    picked: Mapping[str, ComboboxOption]
    sends_mail: bool
    onboarding_methods: Sequence[OnboardingMethod] = tuple(OnboardingMethod)


class NewPersonForm(InvitedAccessForm, frozen=True, kw_only=True):
    login: str = ""  # addresses, if they are invited
    nick: str = ""
    lang: str = "en"
    entrance: str = OnboardingMethod.INVITE.value
    password: SecretText = ""


def invitation_page(t: Translator, invitation: Invitation, *, base_url: str, sends_mail: bool) -> NewSecretContext:
    """The link of an invitation, to copy; an email takes it there only if there is a mail server."""
    user = invitation.user
    return NewSecretContext(
        title=t("people.invited", nick=user.nick),
        trail=[(user.nick, f"{ENTRY.path}/{user.user_id}")],
        text=t(f"people.invited_{'by' if sends_mail else 'without'}_mail", email=user.login or ""),
        value=f"{base_url}{invitation.path}",
        back=f"{ENTRY.path}/{user.user_id}",
        done=t("invite.done"),
    )


class PeopleScreens:
    """`sends_mail`: whether a mail server is configured."""

    def __init__(
        self,
        *,
        people_admin: PeopleAdmin,
        lists: PeopleListStore,
        views: SavedViewStore,
        lookup: Lookup,
        invitations: InvitationScreens,
        view: ConsoleView,
        clock: Clock,
        sends_mail: Callable[[], bool],
        sign_in_methods: Callable[[], EnabledMethods],
        base_url: str,
    ) -> None:
        self._sign_in_methods = sign_in_methods
        self._people_admin = people_admin
        self._lists = lists
        self._views = views
        self._lookup = lookup
        self._invitations = invitations
        self._view = view
        self._clock = clock
        self._sends_mail = sends_mail
        self._base_url = base_url

    async def _list(self, _request: Request, admin: AdminRequest, query: PeopleQuery) -> PeopleContext:
        require_operation(admin.rights, Operation.ADMINISTER)
        problem: FormProblem | None = None
        found: Page[PersonListItem] = Page(rows=(), total=0)
        try:
            resolved = await self._lookup.resolve(admin, query, FILTER_FIELDS)
            if resolved.role and not resolved.application_id:
                raise Malformed("application_id: choose the application of the role").on_screen(
                    "choose_role_application"
                )
            wanted = replace(resolved.list_query, methods=self._sign_in_methods())
            found = await self._lists.people(wanted, query.page_request, self._clock.now())
        except EXPECTED_ERRORS as error:
            problem = problem_from(error)
        return PeopleContext(
            found=found,
            providers=await self._lists.providers(),
            views=await self._views.views_of(admin.user.user_id, PEOPLE_LIST),
            picked=await self._lookup.describe(admin, query, FILTER_FIELDS),
            problem=problem,
        )

    async def save_view(self, request: Request, admin: AdminRequest, form: ViewForm) -> Response:
        """Save the search, filters and order of the list; they are in the address."""
        require_operation(admin.rights, Operation.ADMINISTER)
        kept = read_query(request, PeopleQuery).kept
        view = check_view(form.name, kept.removesuffix("&"))
        await self._views.save_view(admin.user.user_id, PEOPLE_LIST, view, self._clock.now())
        return self._view.redirect_with_flash(f"{ENTRY.path}?{view.query}", "view_saved")

    async def remove_view(self, _request: Request, admin: AdminRequest, form: ViewForm) -> Response:
        require_operation(admin.rights, Operation.ADMINISTER)
        await self._views.remove_view(admin.user.user_id, PEOPLE_LIST, form.name)
        return self._view.redirect_with_flash(ENTRY.path, "view_removed")

    async def _require_right(self, _request: Request, admin: AdminRequest) -> None:
        require_operation(admin.rights, Operation.ADMINISTER)

    async def _new_page(
        self, _request: Request, admin: AdminRequest, _record: None, draft: FormDraft[NewPersonForm]
    ) -> NewPersonContext:
        return NewPersonContext(
            form=msgspec.structs.replace(draft.form, password=""),
            picked=await self._lookup.describe(admin, draft.form, ACCESS_FIELDS),
            sends_mail=self._sends_mail(),
        )

    async def _create(
        self, request: Request, admin: AdminRequest, _record: None, form: NewPersonForm
    ) -> Saved | Response:
        if form.entrance == OnboardingMethod.INVITE:
            return await self._invite(request, admin, form)
        if form.role or form.group_id:
            raise Malformed("role: needs an invitation").on_screen("access_needs_invitation")
        addresses = parse_addresses(form.login)
        if len(addresses) > 1:
            raise Malformed("login: one address only").on_screen("one_address")
        password = form.password if form.entrance == OnboardingMethod.PASSWORD else None
        created = await self._people_admin.create(
            admin.actor,
            login=addresses[0].login,
            nick=form.nick or addresses[0].nick,
            lang=form.lang,
            password=password,
        )
        return Saved(address=f"{ENTRY.path}/{created.user_id}", message="person_created")

    async def _invite(self, request: Request, admin: AdminRequest, form: NewPersonForm) -> Response:
        addresses = parse_addresses(form.login)
        access = await self._invitations.parse_access(admin, form)
        if len(addresses) > 1:
            done = await self._invitations.bulk.invite_addresses(
                admin.actor, addresses, lang=form.lang, access=access
            )
            return self._invitations.show(request, admin, done)
        (one,) = addresses
        invitation = await self._people_admin.invite(
            admin.actor, login=one.login, nick=form.nick or one.nick, lang=form.lang, access=access
        )
        if not invitation.path:
            address = f"{ENTRY.path}/{invitation.user.user_id}"
            message = "person_invited" if self._sends_mail() else "person_invited_waits"
            return self._view.redirect_with_flash(address, message)
        context = invitation_page(
            self._view.words(request), invitation, base_url=self._base_url, sends_mail=self._sends_mail()
        )
        return self._view.render(request, admin, ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        people = ListScreen(view=self._view, path="/people", query=PeopleQuery, page=self._list, file=people_file)
        new = EditScreen(
            view=self._view,
            path="/people/new",
            form=NewPersonForm,
            load=self._require_right,
            page=self._new_page,
            save=self._create,
        )
        return [
            *people.routes(),
            *new.routes(),
            self._view.form("/people/views", ViewForm, self.save_view, form_suffix="/views"),
            self._view.form("/people/views/remove", ViewForm, self.remove_view, form_suffix="/views/remove"),
        ]


def people_file(page: PeopleContext) -> CsvFile[PersonListItem]:
    return CsvFile(name="people", columns=COLUMNS, rows=page.found.rows)
