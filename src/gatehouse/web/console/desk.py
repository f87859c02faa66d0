"""Where people come who administer something: what every screen of the console shares, so that none can forget it.

A session takes the place of JWT and factor, and from there on it is the same caller with the same rights as at the
API. A form must be this browser's own; an act that breaks something needs a fresh proof; what the command refuses
comes back to the form that asked for it, and after a proof the page says that its form was not sent, and has what was
typed in it again (static/console-typed.js).
"""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import SignedIn, User
from gatehouse.accounts.sessions import Sessions
from gatehouse.admin.model.sight import Sight
from gatehouse.admin.sights import Sights
from gatehouse.audit.model import Origin
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput, Conflict, GatehouseError, NotFound, Refused, TooMany
from gatehouse.permissions.callers.callers import Caller
from gatehouse.permissions.callers.desk import Desk
from gatehouse.permissions.callers.desk import Visit as Standing
from gatehouse.permissions.callers.standing import CallerKind
from gatehouse.permissions.errors import NoRight, PersonNotFound
from gatehouse.permissions.evaluation.reading import Reading
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.facts import Facts
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.rights import Rights
from gatehouse.web.browser import Browser, is_full
from gatehouse.web.console.door import Threshold, address_of
from gatehouse.web.console.frame import Frame, entries_for
from gatehouse.web.console.notes import NOT_SAVED, Notes
from gatehouse.web.console.places import Entry
from gatehouse.web.console.screens import Screen
from gatehouse.web.errors import WORDS, problem_of
from gatehouse.web.middleware.client_address import caller_of
from gatehouse.web.origin import origin_of
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.pages.words import Words
from gatehouse.web.parse import read_form
from gatehouse.web.responses import see_other

Form = TypeVar("Form", bound=Guarded)
ABOUT: Final = "application_id"  # the part of a path that says which application a screen is about
PLACE: Final = re.compile(
    r"(?:data|(?:data\.)?(?P<field>[a-z_]+)): (?P<said>.+)", re.DOTALL
)  # about one member, or all
NO_SUCH_PERSON: Final = "No person has this ID."  # the API's words are fixed (interface §7)
PROVING: Final = 10 * 60  # seconds in which somebody has found his password or second factor
FORESEEN: Final = (BadInput, Conflict, NotFound, Refused, TooMany)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """One request of somebody who is signed in, with what he may do."""

    browser: Browser
    signed_in: SignedIn
    standing: Standing
    sight: Sight
    origin: Origin

    @property
    def user(self) -> User:
        return self.signed_in.user

    @property
    def rights(self) -> Rights:
        return self.standing.rights

    @property
    def actor(self) -> Actor:
        return self.standing.actor(self.origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a form comes back, in words."""

    text: str
    status: int
    field: str = ""  # the member of the request that `text` is about; its label is `field.<field>`

    @property
    def is_conflict(self) -> bool:
        return self.status == 409  # noqa: PLR2004 - HTTP


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedContext(PageContext):
    template = "console/refused.html"

    problem: Problem
    reference: str


Show = Callable[[Request, Guest], Awaitable[Response]]
Act = Callable[[Request, Guest, Form], Awaitable[Response]]
Again = Callable[[Request, Guest, Form, Problem], Awaitable[Response]]


class ConsoleDesk:
    def __init__(
        self,
        *,
        threshold: Threshold,
        sessions: Sessions,
        desk: Desk,
        reading: Reading,
        sights: Sights,
        pages: Pages,
        notes: Notes,
        clock: Clock,
    ) -> None:
        self._threshold = threshold
        self._browsers = threshold.browsers
        self._sessions = sessions
        self._desk = desk
        self._reading = reading
        self._sights = sights
        self._pages = pages
        self._notes = notes
        self._clock = clock

    def shown(self, path: str, show: Show, *, fresh: bool = False) -> Screen:
        """A screen. `fresh`: it is about something that breaks, so whoever sees it has just proved who he is."""

        async def handler(request: Request) -> Response:
            guest = await self._guest(request)
            if not isinstance(guest, Guest):
                return guest
            if fresh and not self._sessions.is_fresh(guest.signed_in.session):
                return self.prove_again(address_of(request))
            return await self._or_refused(request, guest, show(request, guest))

        return Screen(method="GET", path=path, handler=handler)

    def posted(
        self,
        path: str,
        into: type[Form],
        act: Act[Form],
        *,
        again: Again[Form] | None = None,
        fresh: bool = False,
        below: str = "",
    ) -> Screen:
        """A form. What the command refuses is shown by `again`, with what was typed; who has no right sees no form.

        `below`: what its address has more than that of the page it is on, which a fresh proof leads back to.
        """

        async def handler(request: Request) -> Response:
            guest = await self._guest(request)
            if not isinstance(guest, Guest):
                return guest
            form = await read_form(request, into)
            self._browsers.check_form(request, guest.browser, form.csrf)
            if fresh and not self._sessions.is_fresh(guest.signed_in.session):
                back = self.prove_again(address_of(request).removesuffix(below))
                return self._notes.leave(back, NOT_SAVED, lifetime=PROVING)  # nor is it sent by itself
            if again is None:
                return await self._or_refused(request, guest, act(request, guest, form))
            try:
                return await act(request, guest, form)
            except NoRight as error:
                return self._refused(request, guest, told(error))
            except FORESEEN as error:
                shown = again(request, guest, form, told(error))
                return await self._or_refused(request, guest, shown)

        return Screen(method="POST", path=path, handler=handler)

    async def nowhere(self, request: Request) -> Response:
        """An address that leads nowhere, inside the console: its entries are the way on."""
        guest = await self._guest(request)
        if not isinstance(guest, Guest):
            return guest
        return self._refused(request, guest, Problem(text=WORDS[404], status=404))

    def show(
        self, request: Request, guest: Guest, here: Entry, context: PageContext, *, status: int | None = None
    ) -> Response:
        return self.show_made(request, guest, here, lambda: context, status=status or context.status)

    def show_made(
        self,
        request: Request,
        guest: Guest,
        here: Entry,
        make: Callable[[], PageContext],
        *,
        status: int | None = None,
    ) -> Response:
        """The page in its frame: where one is, where one may go, and what was just done.

        `make`: called off the event loop, for a context that takes long to make and is never refused.
        """
        frame = Frame(
            here=here,
            entries=entries_for(guest.sight),
            nick=guest.user.nick,
            user_id=guest.user.user_id,
            csrf=self._browsers.csrf(guest.browser),
            note=self._notes.read(request),
            now=self._clock.now(),
            address=address_of(request),
        )
        page = self._pages.show_off_loop(request, make, status=status or 200, around={"frame": frame})
        return self._notes.forget(page) if frame.note else page

    def words(self, request: Request) -> Words:
        """The reader's language, for words that no template says."""
        return self._pages.words_for(request)

    def done(self, address: str, note: str) -> Response:
        """On to another page of the console, which says once what was done; the words are `note.<note>`."""
        return self._notes.leave(see_other(address), note)

    def prove_again(self, address: str) -> Response:
        """To the page that asks for a fresh proof, and back to this one."""
        return see_other(f"{Path.CONFIRM}?{urlencode({'next': address})}")

    async def about(self, guest: Guest, application_id: int) -> Guest:
        """The same guest, with his rights on an application that no part of the path names."""
        standing = await self._standing(guest.user.user_id, guest.standing.caller, application_id)
        return Guest(
            browser=guest.browser,
            signed_in=guest.signed_in,
            standing=standing,
            sight=guest.sight,
            origin=guest.origin,
        )

    async def standings(self, guest: Guest, application_ids: Collection[int]) -> Mapping[int, Standing]:
        """His rights on many applications, of one moment."""
        return await self._desk.about_each(guest.standing.caller, application_ids)

    async def _guest(self, request: Request) -> Guest | Response:
        browser = await self._browsers.read(request)
        signed_in = browser.signed_in
        if not is_full(signed_in):
            return await self._threshold.sign_in(request, browser)
        address = caller_of(request.scope)
        caller = Caller(by=CallerKind.FACTOR, address=address.address if address.proven else None)
        application_id = request.path_params.get(ABOUT)
        standing = await self._standing(signed_in.user.user_id, caller, application_id)
        return Guest(
            browser=browser,
            signed_in=signed_in,
            standing=standing,
            sight=await self._sights.of(standing.rights),
            origin=origin_of(request, signed_in.user.user_id),
        )

    async def _standing(self, user_id: str, caller: Caller, application_id: int | None) -> Standing:
        facts = await self._facts(user_id, {CENTRAL_ID, application_id or CENTRAL_ID})
        return await self._desk.visit(
            Caller(by=caller.by, facts=facts, application_id=application_id, address=caller.address)
        )

    async def _facts(self, user_id: str, application_ids: Collection[int]) -> Facts:
        facts = await self._reading.facts(user_id, application_ids)
        if facts is None:
            raise NoRight("the account is gone")
        return facts

    async def _or_refused(self, request: Request, guest: Guest, answer: Awaitable[Response]) -> Response:
        try:
            return await answer
        except FORESEEN as error:
            return self._refused(request, guest, told(error))

    def _refused(self, request: Request, guest: Guest, problem: Problem) -> Response:
        """A refusal stays inside the console: who asks has to know whom to ask, and finds the way back."""
        context = RefusedContext(problem=problem, reference=guest.origin.request_id)
        return self.show(request, guest, here_of(request), context, status=problem.status)


def told(error: GatehouseError) -> Problem:
    """What an API says to a program, as a form says it to a person: of a field, not of a member's path."""
    problem = problem_of(error)
    if isinstance(error, PersonNotFound | UserNotFound):
        return Problem(text=NO_SUCH_PERSON, status=problem.status)
    place = PLACE.fullmatch(problem.shown)
    if place is None:
        return Problem(text=problem.shown.removeprefix("data."), status=problem.status)
    return Problem(text=place["said"], status=problem.status, field=place["field"] or "")


def here_of(request: Request) -> Entry:
    parts: list[str] = request.scope["path"].split("/")
    return next((entry for entry in Entry if entry.value in parts[2:3]), Entry.HOME)
