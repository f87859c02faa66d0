"""One person: what is above every tab, what the account says, and the acts that end something."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.editing import AccountDraft
from gatehouse.accounts.model import Kind, User
from gatehouse.admin.model.people import PeopleListStore, PersonBreaks, Standing
from gatehouse.admin.people import PeopleOffice
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.editing import Clash, clashes, lines, typed_lines
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.places import Entry
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.permissions.users import user_entry

HERE: Final = Entry.PEOPLE
TABS: Final = ("overview", "permissions", "roles", "sessions", "methods", "activity")
YES: Final = "yes"


class PersonAct(StrEnum):
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
        return self in (PersonAct.BLOCK, PersonAct.SIGN_OUT, PersonAct.DEMOTE, PersonAct.ERASE)


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
        return f"{HERE.path}/{self.user_id}"

    @property
    def tabs(self) -> Sequence[tuple[str, str]]:
        return [(tab, self.path if tab == "overview" else f"{self.path}/{tab}") for tab in TABS]

    @property
    def acts(self) -> Sequence[PersonAct]:
        """What there is to do; whoever looks at himself neither blocks nor erases the account he stands in."""
        found = [PersonAct.SIGN_OUT]
        if not self.is_service:
            found += [PersonAct.LINK, PersonAct.DEMOTE if self.administers else PersonAct.PROMOTE]
        if not self.is_me:
            found += [PersonAct.UNBLOCK if self.blocked else PersonAct.BLOCK]
            found += [] if self.is_service else [PersonAct.ERASE]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonContext(PageContext):
    template = "console/people/overview.html"

    head: PersonHead
    user: User
    standing: Standing
    form: "PersonForm"
    call: ApiCall
    problem: Problem | None = None
    clashes: tuple[Clash, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailContext(PageContext):
    template = "console/people/email.html"

    head: PersonHead
    form: "EmailForm"
    version: int  # that is stored now
    problem: Problem | None = None
    clashes: tuple[Clash, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonActContext(PageContext):
    template = "console/people/act.html"

    head: PersonHead
    act: PersonAct
    breaks: PersonBreaks
    problem: Problem | None = None


class PersonForm(Guarded, frozen=True, kw_only=True):
    """Lists are a line each."""

    nick: str = ""
    lang: str = ""
    country: str = ""
    tags: str = ""
    purchases: str = ""
    version: int = 0

    def draft(self, user: User) -> AccountDraft:
        return replace(
            draft_of(user),
            nick=self.nick,
            lang=self.lang.strip(),
            country=self.country.strip().upper(),
            tags=frozenset(typed_lines(self.tags)),
            purchases=frozenset(typed_lines(self.purchases)),
            version=self.version,
        )


class EmailForm(Guarded, frozen=True, kw_only=True):
    login: str = ""
    email_verified: str = ""
    version: int = 0

    def draft(self, user: User) -> AccountDraft:
        verified = self.email_verified == YES
        return replace(draft_of(user), login=self.login, email_verified=verified, version=self.version)


class ActForm(Guarded, frozen=True, kw_only=True):
    typed: str = ""  # the person's id once more, for what cannot be taken back


class Persons:
    """Finds the person an address names, for every tab."""

    def __init__(self, *, office: PeopleOffice, lists: PeopleListStore, desk: ConsoleDesk, clock: Clock) -> None:
        self.office = office
        self.lists = lists
        self.desk = desk
        self.clock = clock

    async def found(self, request: Request, guest: Guest, tab: str) -> tuple[User, PersonHead]:
        user, standing = await self.with_standing(request, guest)
        return user, head(guest, user, standing, tab)

    async def with_standing(self, request: Request, guest: Guest) -> tuple[User, Standing]:
        user = await self.office.person(guest.actor, request.path_params["user_id"])
        return user, await self.lists.standing(user.user_id, self.clock.now())


class PersonScreens:
    def __init__(self, persons: Persons) -> None:
        self._persons = persons
        self._office = persons.office
        self._desk = persons.desk

    async def show(self, request: Request, guest: Guest) -> Response:
        user, standing = await self._persons.with_standing(request, guest)
        return self._overview(request, guest, user, standing, form_of(user))

    async def save(self, request: Request, guest: Guest, form: PersonForm) -> Response:
        return await self._saved(request, guest, form)

    async def show_email(self, request: Request, guest: Guest) -> Response:
        user, shown = await self._persons.found(request, guest, "overview")
        context = EmailContext(head=shown, form=email_form_of(user), version=user.version)
        return self._desk.show(request, guest, HERE, context)

    async def save_email(self, request: Request, guest: Guest, form: EmailForm) -> Response:
        return await self._saved(request, guest, form)

    async def email_again(self, request: Request, guest: Guest, form: EmailForm, problem: Problem) -> Response:
        user, shown = await self._persons.found(request, guest, "overview")
        theirs = clashes(form, email_form_of(user)) if is_stale(problem, form.version, user) else ()
        context = EmailContext(head=shown, form=form, version=user.version, problem=problem, clashes=theirs)
        return self._desk.show(request, guest, HERE, context, status=problem.status)

    async def _saved(self, request: Request, guest: Guest, form: PersonForm | EmailForm) -> Response:
        user = await self._office.person(guest.actor, request.path_params["user_id"])
        await self._office.change(guest.actor, user, form.draft(user))
        return self._desk.done(f"{HERE.path}/{user.user_id}", "saved")

    async def show_again(self, request: Request, guest: Guest, form: PersonForm, problem: Problem) -> Response:
        user, standing = await self._persons.with_standing(request, guest)
        theirs = clashes(form, form_of(user)) if is_stale(problem, form.version, user) else ()
        return self._overview(request, guest, user, standing, form, problem=problem, theirs=theirs)

    async def ask(self, request: Request, guest: Guest) -> Response:
        return await self._asked(request, guest)

    async def ask_again(self, request: Request, guest: Guest, form: ActForm, problem: Problem) -> Response:  # noqa: ARG002
        return await self._asked(request, guest, problem)

    async def act(self, request: Request, guest: Guest, form: ActForm) -> Response:
        act = act_of(request)
        user_id: str = request.path_params["user_id"]
        if act is PersonAct.ERASE and form.typed.strip() != user_id:
            return await self._asked(request, guest, Problem(text="", status=400))
        await self._done(guest, act, user_id)
        to = HERE.path if act is PersonAct.ERASE else f"{HERE.path}/{user_id}"
        return self._desk.done(to, f"person_{act}")

    async def _done(self, guest: Guest, act: PersonAct, user_id: str) -> None:
        match act:
            case PersonAct.BLOCK | PersonAct.UNBLOCK:
                await self._office.block(guest.actor, user_id, blocked=act is PersonAct.BLOCK)
            case PersonAct.SIGN_OUT:
                await self._office.sign_out(guest.actor, user_id, keep=guest.signed_in.session)
            case PersonAct.LINK:
                await self._office.send_link(guest.actor, user_id)
            case PersonAct.PROMOTE | PersonAct.DEMOTE:
                about = await self._desk.about(guest, CENTRAL_ID)
                central = about.standing.opened(Operation.ADMINISTER)
                holds = act is PersonAct.PROMOTE
                await self._office.set_administrator(about.actor, central, user_id, holds=holds)
            case PersonAct.ERASE:
                await self._office.erase(guest.actor, user_id)

    async def _asked(self, request: Request, guest: Guest, problem: Problem | None = None) -> Response:
        user, shown = await self._persons.found(request, guest, "overview")
        context = PersonActContext(
            head=shown,
            act=act_of(request),
            breaks=await self._persons.lists.breaks(user.user_id, self._persons.clock.now()),
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    def _overview(
        self,
        request: Request,
        guest: Guest,
        user: User,
        standing: Standing,
        form: PersonForm,
        *,
        problem: Problem | None = None,
        theirs: tuple[Clash, ...] = (),
    ) -> Response:
        context = PersonContext(
            head=head(guest, user, standing, "overview"),
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
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[Screen]:
        desk, path = self._desk, "/people/{user_id}/act/{act}"
        return [
            desk.shown("/people/{user_id}", self.show),
            desk.posted("/people/{user_id}", PersonForm, self.save, again=self.show_again),
            desk.shown("/people/{user_id}/email", self.show_email, fresh=True),
            desk.posted("/people/{user_id}/email", EmailForm, self.save_email, again=self.email_again, fresh=True),
            desk.shown(path, self.ask, fresh=True),
            desk.posted(path, ActForm, self.act, again=self.ask_again, fresh=True),
        ]


def act_of(request: Request) -> PersonAct:
    try:
        return PersonAct(request.path_params["act"])
    except ValueError:
        raise NotFound("no such act") from None


def head(guest: Guest, user: User, standing: Standing, tab: str) -> PersonHead:
    return PersonHead(
        user_id=user.user_id,
        nick=user.nick,
        login=user.login or "",
        tab=tab,
        blocked=user.blocked,
        is_service=user.kind is Kind.SERVICE,
        administers=standing.administers,
        is_me=user.user_id == guest.user.user_id,
    )


def is_stale(problem: Problem, version: int, user: User) -> bool:
    return problem.is_conflict and version != user.version


def draft_of(user: User) -> AccountDraft:
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


def email_form_of(user: User) -> EmailForm:
    return EmailForm(login=user.login or "", email_verified=YES if user.email_verified else "", version=user.version)


def form_of(user: User) -> PersonForm:
    return PersonForm(
        nick=user.nick,
        lang=user.lang,
        country=user.country,
        tags=lines(sorted(user.tags)),
        purchases=lines(sorted(user.purchases)),
        version=user.version,
    )
