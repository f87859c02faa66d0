"""One person: what is above every tab, what the account says, and the acts that end something."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.editing import AccountDraft
from gatehouse.accounts.model import AccountKind, User
from gatehouse.admin.model.people import AccountState, PeopleListStore, PersonErasureImpact
from gatehouse.admin.people import PeopleAdmin
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.desk import AdminRequest, ConsoleView, FormProblem
from gatehouse.web.console.editing import FieldConflict, field_conflicts, join_lines, split_lines
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.places import ConsoleEntry
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import CsrfForm
from gatehouse.web.permissions.users import user_entry

ENTRY: Final = ConsoleEntry.PEOPLE
TABS: Final = ("overview", "permissions", "roles", "sessions", "methods", "activity")
YES: Final = "yes"


class PersonAction(StrEnum):
    """What an administrator does to an account as a whole; the words are `person_act.<value>…`."""

    BLOCK = "block"
    UNBLOCK = "unblock"
    SIGN_OUT = "sign_out"
    LINK = "link"
    PROMOTE = "promote"
    DEMOTE = "demote"
    ERASE = "erase"

    @property
    def breaks(self) -> bool:
        return self in (PersonAction.BLOCK, PersonAction.SIGN_OUT, PersonAction.DEMOTE, PersonAction.ERASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonHead:
    """What every tab of a person shows above itself."""

    user_id: str
    nick: str
    login: str
    tab: str
    blocked: bool
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
    def acts(self) -> Sequence[PersonAction]:
        """What there is to do; whoever looks at himself neither blocks nor erases the account he stands in."""
        found = [PersonAction.SIGN_OUT]
        if not self.is_service:
            found += [PersonAction.LINK, PersonAction.DEMOTE if self.administers else PersonAction.PROMOTE]
        if not self.is_me:
            found += [PersonAction.UNBLOCK if self.blocked else PersonAction.BLOCK]
            found += [] if self.is_service else [PersonAction.ERASE]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonContext(PageContext):
    template = "console/people/overview.html"

    head: PersonHead
    user: User
    standing: AccountState
    form: "PersonForm"
    call: ApiCall
    problem: FormProblem | None = None
    clashes: tuple[FieldConflict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonEmailContext(PageContext):
    template = "console/people/email.html"

    head: PersonHead
    form: "PersonEmailForm"
    version: int  # that is stored now
    problem: FormProblem | None = None
    clashes: tuple[FieldConflict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonActionContext(PageContext):
    template = "console/people/act.html"

    head: PersonHead
    act: PersonAction
    breaks: PersonErasureImpact
    problem: FormProblem | None = None


class PersonForm(CsrfForm, frozen=True, kw_only=True):
    """Lists are a line each."""

    nick: str = ""
    lang: str = ""
    country: str = ""
    tags: str = ""
    purchases: str = ""
    version: int = 0

    def draft(self, user: User) -> AccountDraft:
        return replace(
            unchanged_draft(user),
            nick=self.nick,
            lang=self.lang.strip(),
            country=self.country.strip().upper(),
            tags=frozenset(split_lines(self.tags)),
            purchases=frozenset(split_lines(self.purchases)),
            version=self.version,
        )


class PersonEmailForm(CsrfForm, frozen=True, kw_only=True):
    login: str = ""
    email_verified: str = ""
    version: int = 0

    def draft(self, user: User) -> AccountDraft:
        verified = self.email_verified == YES
        return replace(unchanged_draft(user), login=self.login, email_verified=verified, version=self.version)


class PersonActionForm(CsrfForm, frozen=True, kw_only=True):
    typed: str = ""  # the person's id once more, for what cannot be taken back


class PersonLoader:
    """Finds the person an address names, for every tab."""

    def __init__(self, *, office: PeopleAdmin, lists: PeopleListStore, desk: ConsoleView, clock: Clock) -> None:
        self.office = office
        self.lists = lists
        self.desk = desk
        self.clock = clock

    async def found(self, request: Request, guest: AdminRequest, tab: str) -> tuple[User, PersonHead]:
        user, standing = await self.with_standing(request, guest)
        return user, person_head(guest, user, standing, tab)

    async def with_standing(self, request: Request, guest: AdminRequest) -> tuple[User, AccountState]:
        user = await self.office.person(guest.actor, request.path_params["user_id"])
        return user, await self.lists.standing(user.user_id, self.clock.now())


class PersonScreens:
    def __init__(self, persons: PersonLoader) -> None:
        self._persons = persons
        self._office = persons.office
        self._desk = persons.desk

    async def show(self, request: Request, guest: AdminRequest) -> Response:
        user, standing = await self._persons.with_standing(request, guest)
        return self._overview(request, guest, user, standing, form_of(user))

    async def save(self, request: Request, guest: AdminRequest, form: PersonForm) -> Response:
        return await self._saved(request, guest, form)

    async def show_email(self, request: Request, guest: AdminRequest) -> Response:
        user, shown = await self._persons.found(request, guest, "overview")
        context = PersonEmailContext(head=shown, form=email_form_of(user), version=user.version)
        return self._desk.show(request, guest, ENTRY, context)

    async def save_email(self, request: Request, guest: AdminRequest, form: PersonEmailForm) -> Response:
        return await self._saved(request, guest, form)

    async def email_again(
        self, request: Request, guest: AdminRequest, form: PersonEmailForm, problem: FormProblem
    ) -> Response:
        user, shown = await self._persons.found(request, guest, "overview")
        theirs = field_conflicts(form, email_form_of(user)) if is_stale(problem, form.version, user) else ()
        context = PersonEmailContext(head=shown, form=form, version=user.version, problem=problem, clashes=theirs)
        return self._desk.show(request, guest, ENTRY, context, status=problem.status)

    async def _saved(self, request: Request, guest: AdminRequest, form: PersonForm | PersonEmailForm) -> Response:
        user = await self._office.person(guest.actor, request.path_params["user_id"])
        await self._office.change(guest.actor, user, form.draft(user))
        return self._desk.done(f"{ENTRY.path}/{user.user_id}", "saved")

    async def show_again(
        self, request: Request, guest: AdminRequest, form: PersonForm, problem: FormProblem
    ) -> Response:
        user, standing = await self._persons.with_standing(request, guest)
        theirs = field_conflicts(form, form_of(user)) if is_stale(problem, form.version, user) else ()
        return self._overview(request, guest, user, standing, form, problem=problem, theirs=theirs)

    async def ask(self, request: Request, guest: AdminRequest) -> Response:
        return await self._asked(request, guest)

    async def ask_again(
        self,
        request: Request,
        guest: AdminRequest,
        form: PersonActionForm,  # noqa: ARG002 - as the other screens take it
        problem: FormProblem,
    ) -> Response:
        return await self._asked(request, guest, problem)

    async def act(self, request: Request, guest: AdminRequest, form: PersonActionForm) -> Response:
        act = parse_action(request)
        user_id: str = request.path_params["user_id"]
        if act is PersonAction.ERASE and form.typed.strip() != user_id:
            return await self._asked(request, guest, FormProblem(text="", status=400))
        await self._done(guest, act, user_id)
        to = ENTRY.path if act is PersonAction.ERASE else f"{ENTRY.path}/{user_id}"
        return self._desk.done(to, f"person_{act}")

    async def _done(self, guest: AdminRequest, act: PersonAction, user_id: str) -> None:
        match act:
            case PersonAction.BLOCK | PersonAction.UNBLOCK:
                await self._office.block(guest.actor, user_id, blocked=act is PersonAction.BLOCK)
            case PersonAction.SIGN_OUT:
                await self._office.sign_out(guest.actor, user_id, keep=guest.signed_in.session)
            case PersonAction.LINK:
                await self._office.send_link(guest.actor, user_id)
            case PersonAction.PROMOTE | PersonAction.DEMOTE:
                about = await self._desk.about(guest, CENTRAL_ID)
                central = about.standing.opened(Operation.ADMINISTER)
                holds = act is PersonAction.PROMOTE
                await self._office.set_administrator(about.actor, central, user_id, holds=holds)
            case PersonAction.ERASE:
                await self._office.erase(guest.actor, user_id)

    async def _asked(self, request: Request, guest: AdminRequest, problem: FormProblem | None = None) -> Response:
        user, shown = await self._persons.found(request, guest, "overview")
        context = PersonActionContext(
            head=shown,
            act=parse_action(request),
            breaks=await self._persons.lists.breaks(user.user_id, self._persons.clock.now()),
            problem=problem,
        )
        return self._desk.show(request, guest, ENTRY, context, status=problem.status if problem else None)

    def _overview(
        self,
        request: Request,
        guest: AdminRequest,
        user: User,
        standing: AccountState,
        form: PersonForm,
        *,
        problem: FormProblem | None = None,
        theirs: tuple[FieldConflict, ...] = (),
    ) -> Response:
        context = PersonContext(
            head=person_head(guest, user, standing, "overview"),
            user=user,
            standing=standing,
            form=form,
            call=ApiCall(
                path="user",
                body={"action": "get", "data": {"user_id": user.user_id}},
                record=user_entry(user),
            ),
            problem=problem,
            clashes=theirs,
        )
        return self._desk.show(request, guest, ENTRY, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[ConsoleRoute]:
        desk, path = self._desk, "/people/{user_id}/act/{act}"
        return [
            desk.shown("/people/{user_id}", self.show),
            desk.posted("/people/{user_id}", PersonForm, self.save, again=self.show_again),
            desk.shown("/people/{user_id}/email", self.show_email, fresh=True),
            desk.posted(
                "/people/{user_id}/email", PersonEmailForm, self.save_email, again=self.email_again, fresh=True
            ),
            desk.shown(path, self.ask, fresh=True),
            desk.posted(path, PersonActionForm, self.act, again=self.ask_again, fresh=True),
        ]


def parse_action(request: Request) -> PersonAction:
    try:
        return PersonAction(request.path_params["act"])
    except ValueError:
        raise NotFound("no such act") from None


def person_head(guest: AdminRequest, user: User, standing: AccountState, tab: str) -> PersonHead:
    return PersonHead(
        user_id=user.user_id,
        nick=user.nick,
        login=user.login or "",
        tab=tab,
        blocked=user.blocked,
        is_service=user.kind is AccountKind.SERVICE,
        administers=standing.administers,
        is_me=user.user_id == guest.user.user_id,
    )


def is_stale(problem: FormProblem, version: int, user: User) -> bool:
    return problem.is_conflict and version != user.version


def unchanged_draft(user: User) -> AccountDraft:
    """A save that would change nothing."""
    return AccountDraft(
        nick=user.nick,
        login=user.login or "",
        email_verified=user.email_verified,
        lang=user.lang,
        country=user.country,
        tags=user.tags,
        purchases=user.purchases,
        version=user.version,
    )


def email_form_of(user: User) -> PersonEmailForm:
    return PersonEmailForm(
        login=user.login or "", email_verified=YES if user.email_verified else "", version=user.version
    )


def form_of(user: User) -> PersonForm:
    return PersonForm(
        nick=user.nick,
        lang=user.lang,
        country=user.country,
        tags=join_lines(sorted(user.tags)),
        purchases=join_lines(sorted(user.purchases)),
        version=user.version,
    )
