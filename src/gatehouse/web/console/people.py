"""People: the list, and a new one."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import EnabledMethods
from gatehouse.accounts.registration import Invitation
from gatehouse.admin.paging import Page
from gatehouse.admin.people import PeopleListStore
from gatehouse.admin.people_admin import PeopleAdmin
from gatehouse.admin.people_list import (
    PeopleFilter,
    PeopleListQuery,
    PeopleSort,
    PersonListItem,
    SeenFilter,
)
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption
from gatehouse.web.console.forms import ListQuery, csv_file
from gatehouse.web.console.frame import NewSecretContext
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
            sort=self.order,
        )

    @property
    def list_among(self) -> PeopleFilter:
        return PeopleFilter(self.among) if self.among in list(PeopleFilter) else PeopleFilter.EVERYBODY

    @property
    def order(self) -> PeopleSort:
        return PeopleSort(self.sort) if self.sort in list(PeopleSort) else PeopleSort.NEWEST

    @property
    def filters(self) -> str:
        """The query string of the same list in another order."""
        names = ("q", "among", "tag", "provider", "application_id", "role", "seen")
        query = urlencode({name: getattr(self, name) for name in names if getattr(self, name)})
        return f"{query}&" if query else ""

    @property
    def kept(self) -> str:
        """The query string of the next page."""
        return f"{self.filters}sort={self.order}&" if self.sort else self.filters

    @property
    def has_more_filters(self) -> bool:
        return bool(self.provider or self.application_id or self.role or self.tag or self.seen not in ("", "any"))


class PeopleContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/list.html"

    found: Page[PersonListItem]
    query: PeopleQuery
    providers: Sequence[str]
    picked: Mapping[str, ComboboxOption]
    problem: FormProblem | None = None
    choices: Sequence[PeopleFilter] = tuple(PeopleFilter)
    seen_choices: Sequence[SeenFilter] = tuple(SeenFilter)
    actions: Sequence[BulkAction] = tuple(BulkAction)


class NewPersonContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/new.html"

    form: "NewPersonForm"
    onboarding_methods: Sequence[OnboardingMethod] = tuple(OnboardingMethod)
    problem: FormProblem | None = None


class NewPersonForm(CsrfForm, frozen=True, kw_only=True):
    login: str = ""
    nick: str = ""
    lang: str = "en"
    entrance: str = OnboardingMethod.INVITE.value
    password: str = ""


def invitation_page(t: Translator, invitation: Invitation, *, base_url: str, sends_mail: bool) -> NewSecretContext:
    """The link of an invitation, to copy; an email takes it there only if there is a mail server."""
    user = invitation.user
    return NewSecretContext(
        title=t("people.invited", nick=user.nick),
        trail=[(user.nick, f"{ENTRY.path}/{user.user_id}")],
        text=t(f"people.invited_{'by' if sends_mail else 'without'}_mail", email=user.login or ""),
        value=f"{base_url}{invitation.path}",
        back=f"{ENTRY.path}/{user.user_id}",
    )


class PeopleScreens:
    """`sends_mail`: whether a mail server is configured."""

    def __init__(
        self,
        *,
        people_admin: PeopleAdmin,
        lists: PeopleListStore,
        lookup: Lookup,
        view: ConsoleView,
        clock: Clock,
        sends_mail: Callable[[], bool],
        sign_in_methods: Callable[[], EnabledMethods],
        base_url: str,
    ) -> None:
        self._sign_in_methods = sign_in_methods
        self._people_admin = people_admin
        self._lists = lists
        self._lookup = lookup
        self._view = view
        self._clock = clock
        self._sends_mail = sends_mail
        self._base_url = base_url

    async def list(self, request: Request, admin: AdminRequest) -> Response:
        require_operation(admin.rights, Operation.ADMINISTER)
        query, problem = read_query(request, PeopleQuery), None
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
        if query.is_file and problem is None:
            return csv_file("people", COLUMNS, found.rows)
        context = PeopleContext(
            found=found,
            query=query,
            providers=await self._lists.providers(),
            picked=await self._lookup.describe(admin, query, FILTER_FIELDS),
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context)

    async def new(self, request: Request, admin: AdminRequest) -> Response:
        require_operation(admin.rights, Operation.ADMINISTER)
        return self._view.render(request, admin, ENTRY, NewPersonContext(form=NewPersonForm()))

    async def create(self, request: Request, admin: AdminRequest, form: NewPersonForm) -> Response:
        if form.entrance == OnboardingMethod.INVITE:
            invitation = await self._people_admin.invite(
                admin.actor, login=form.login, nick=form.nick, lang=form.lang
            )
            if not invitation.path:
                address = f"{ENTRY.path}/{invitation.user.user_id}"
                message = "person_link" if self._sends_mail() else "person_link_waits"
                return self._view.redirect_with_flash(address, message)
            context = invitation_page(
                self._view.words(request), invitation, base_url=self._base_url, sends_mail=self._sends_mail()
            )
            return self._view.render(request, admin, ENTRY, context)
        password = form.password if form.entrance == OnboardingMethod.PASSWORD else None
        created = await self._people_admin.create(
            admin.actor, login=form.login, nick=form.nick, lang=form.lang, password=password
        )
        return self._view.redirect_with_flash(f"{ENTRY.path}/{created.user_id}", "person_created")

    async def rerender_new(
        self, request: Request, admin: AdminRequest, form: NewPersonForm, problem: FormProblem
    ) -> Response:
        """Keeps what was typed, except the password."""
        kept = NewPersonForm(login=form.login, nick=form.nick, lang=form.lang, entrance=form.entrance)
        context = NewPersonContext(form=kept, problem=problem)
        return self._view.render(request, admin, ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        return [
            view.page("/people", self.list),
            view.page("/people/new", self.new),
            view.form("/people/new", NewPersonForm, self.create, rerender=self.rerender_new),
        ]
