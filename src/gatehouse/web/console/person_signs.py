"""One person: where he is signed in and with what, how he signs in, and what happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import Session, User
from gatehouse.accounts.own.model import Holdings
from gatehouse.accounts.own.profile import Profile
from gatehouse.accounts.second_factors.model import Factor
from gatehouse.accounts.sessions import Sessions
from gatehouse.admin.model.nicks import NickStore
from gatehouse.admin.model.paging import Page
from gatehouse.admin.model.people import Side
from gatehouse.admin.seen_log import shown as as_shown
from gatehouse.audit.model import Record
from gatehouse.kernel.errors import NotFound
from gatehouse.oauth.consent import Consents
from gatehouse.web.agents import device_of
from gatehouse.web.console.activity import Told
from gatehouse.web.console.activity_words import lines, named
from gatehouse.web.console.desk import Guest, Problem
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import ListQuery, csv_file
from gatehouse.web.console.person import HERE, PersonHead, Persons
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages import account_contexts as shown
from gatehouse.web.pages.account_applications import connected
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.parse import read_query
from gatehouse.web.permissions.user_signs import methods_of, signed_in
from gatehouse.web.places import Places

EVERY: Final = "all"
SESSIONS: Final = {
    "device": lambda one: one.device,
    "place": lambda one: one.place,
    "address": lambda one: one.address,
    "seen": lambda one: one.seen_at,
    "since": lambda one: one.created_at,
}
CONNECTED: Final = {
    "client_id": lambda one: one.client_id,
    "name": lambda one: one.name,
    "scopes": lambda one: one.scopes,
    "since": lambda one: one.since,
}
COLUMNS: Final = {
    "at": lambda one: one.at,
    "event": lambda one: one.event,
    "by": lambda one: one.actor,
    "about": lambda one: one.subject,
    "address": lambda one: (one.personal or {}).get("address", ""),
    "details": lambda one: [f"{name}: {value}" for name, value in one.details.items()],
    "id": lambda one: one.record_id,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsContext(PageContext):
    template = "console/people/sessions.html"

    head: PersonHead
    sessions: Sequence[shown.Session]
    applications: Sequence[shown.ConnectedApplication]
    call: ApiCall


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodsContext(PageContext):
    template = "console/people/methods.html"

    head: PersonHead
    user: User
    held: Holdings
    call: ApiCall


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFactorContext(PageContext):
    template = "console/people/remove_factor.html"

    head: PersonHead
    factor: str  # or EVERY
    passkey_id: str
    passkey: str  # its name
    leaves_nothing: bool  # no password, and no other passkey
    reason: str = ""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityContext(PageContext):
    template = "console/people/activity.html"

    head: PersonHead
    found: Page[Record]
    happenings: Sequence[Told]
    side: Side
    nicks: Mapping[str, str]  # of others, by id
    sides: Sequence[Side] = tuple(Side)


class EndForm(Guarded, frozen=True, kw_only=True):
    """One of the two: a session to end, or a client to take away what it holds."""

    session_id: str = ""
    client_id: str = ""


class RemoveFactorQuery(msgspec.Struct, frozen=True, kw_only=True):
    factor: str = EVERY
    passkey_id: str = ""


class RemoveFactorForm(Guarded, frozen=True, kw_only=True):
    factor: str = ""
    passkey_id: str = ""
    reason: str = ""


class ActivityQuery(ListQuery, frozen=True, kw_only=True):
    side: str = ""

    @property
    def chosen(self) -> Side:
        return Side(self.side) if self.side in list(Side) else Side.ABOUT


class SessionsQuery(ListQuery, frozen=True, kw_only=True):
    list: str = ""  # which of the two


class SignScreens:
    def __init__(
        self,
        persons: Persons,
        *,
        sessions: Sessions,
        consents: Consents,
        profile: Profile,
        nicks: NickStore,
        places: Places,
    ) -> None:
        self._persons = persons
        self._desk = persons.desk
        self._sessions = sessions
        self._consents = consents
        self._profile = profile
        self._nicks = nicks
        self._places = places

    async def sessions(self, request: Request, guest: Guest) -> Response:
        user, head = await self._persons.found(request, guest, "sessions")
        query = read_query(request, SessionsQuery)
        current = guest.signed_in.session.session_id
        live = await self._sessions.of_user(user.user_id)
        sessions = [self._shown(one, guest.user.lang, current) for one in live]
        given = await self._consents.of_user(user.user_id)
        applications = connected(given)
        if query.is_file and query.list == "applications":
            return csv_file("connected-applications", CONNECTED, applications)
        if query.is_file:
            return csv_file("sessions", SESSIONS, sessions)
        context = SessionsContext(
            head=head,
            sessions=sessions,
            applications=applications,
            call=signs_call("sessions", user.user_id, signed_in(live, given, self._places)),
        )
        return self._desk.show(request, guest, HERE, context)

    async def end(self, request: Request, guest: Guest, form: EndForm) -> Response:
        user_id: str = request.path_params["user_id"]
        if form.client_id:
            await self._persons.office.disconnect(guest.actor, user_id, form.client_id)
        else:
            await self._persons.office.end_session(guest.actor, user_id, form.session_id)
        note = "client_disconnected" if form.client_id else "session_ended"
        return self._desk.done(f"{HERE.path}/{user_id}/sessions", note)

    async def methods(self, request: Request, guest: Guest) -> Response:
        user, head = await self._persons.found(request, guest, "methods")
        held = await self._profile.holdings(user)
        call = signs_call("methods", user.user_id, methods_of(user, held))
        context = MethodsContext(head=head, user=user, held=held, call=call)
        return self._desk.show(request, guest, HERE, context)

    async def ask_removal(self, request: Request, guest: Guest) -> Response:
        query = read_query(request, RemoveFactorQuery)
        return await self._removal(request, guest, factor=query.factor, passkey_id=query.passkey_id)

    async def ask_again(self, request: Request, guest: Guest, form: RemoveFactorForm, problem: Problem) -> Response:
        return await self._removal(
            request, guest, factor=form.factor, passkey_id=form.passkey_id, reason=form.reason, problem=problem
        )

    async def remove(self, request: Request, guest: Guest, form: RemoveFactorForm) -> Response:
        user_id: str = request.path_params["user_id"]
        office = self._persons.office
        if form.factor == EVERY:
            await office.remove_all_factors(guest.actor, user_id, reason=form.reason)
        else:
            factor = factor_of(form.factor)
            await office.remove_factor(guest.actor, user_id, factor, reason=form.reason, passkey_id=form.passkey_id)
        return self._desk.done(f"{HERE.path}/{user_id}/methods", "factor_removed")

    async def activity(self, request: Request, guest: Guest) -> Response:
        user, head = await self._persons.found(request, guest, "activity")
        query = read_query(request, ActivityQuery)
        page = await self._persons.lists.activity(user.user_id, query.chosen, query.wanted)
        found = replace(page, rows=[as_shown(record, guest.rights) for record in page.rows])
        if query.is_file:
            return csv_file("activity", COLUMNS, found.rows)
        others = {one for record in found.rows for one in (record.actor, record.subject) if one.isdecimal()}
        nicks = await self._nicks.nicks(others)
        happenings = [in_words(record, nicks) for record in found.rows]
        context = ActivityContext(head=head, found=found, happenings=happenings, side=query.chosen, nicks=nicks)
        return self._desk.show(request, guest, HERE, context)

    async def _removal(
        self,
        request: Request,
        guest: Guest,
        *,
        factor: str,
        passkey_id: str,
        reason: str = "",
        problem: Problem | None = None,
    ) -> Response:
        user, head = await self._persons.found(request, guest, "methods")
        passkeys = (await self._profile.holdings(user)).passkeys
        names: Mapping[str, str] = {one.passkey_id: one.name for one in passkeys}
        if factor != EVERY:
            factor_of(factor)
        gone = len(passkeys) if factor == EVERY else 1 if factor == Factor.PASSKEY else 0
        context = RemoveFactorContext(
            head=head,
            factor=factor,
            passkey_id=passkey_id,
            passkey=names.get(passkey_id, ""),
            leaves_nothing=user.password_hash is None and gone == len(passkeys) > 0,
            reason=reason,
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    def _shown(self, session: Session, lang: str, current: str) -> shown.Session:
        return shown.Session(
            session_id=session.session_id,
            device=device_of(session.agent),
            place=self._places.name(session.address, lang),
            address=session.address,
            created_at=session.created_at,
            seen_at=session.seen_at,
            is_current=session.session_id == current,
        )

    def screens(self) -> Sequence[Screen]:
        desk, removal = self._desk, "/people/{user_id}/methods/remove"
        return [
            desk.shown("/people/{user_id}/sessions", self.sessions),
            desk.posted("/people/{user_id}/sessions", EndForm, self.end, fresh=True),
            desk.shown("/people/{user_id}/methods", self.methods),
            desk.shown(removal, self.ask_removal, fresh=True),
            desk.posted(removal, RemoveFactorForm, self.remove, again=self.ask_again, fresh=True),
            desk.shown("/people/{user_id}/activity", self.activity),
        ]


def signs_call(of: str, user_id: str, record: object) -> ApiCall:
    return ApiCall(path=f"user/{of}", body={"action": "get", "data": {"user_id": user_id}}, record=record)


def factor_of(text: str) -> Factor:
    try:
        return Factor(text)
    except ValueError:
        raise NotFound("no such factor") from None


def in_words(record: Record, nicks: Mapping[str, str]) -> Told:
    return Told(
        record=record,
        actor=named(record.actor, nicks, {}),
        subject=named(record.subject, nicks, {}),
        lines=lines(record.details),
    )
