"""Settings: signing keys on their time line, and their rotation before its time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.key_strip import Picture, Strip
from gatehouse.admin.keys import KeyOffice
from gatehouse.kernel.errors import NotFound
from gatehouse.keys.model import Algorithm, KeyLine, Purpose, State
from gatehouse.keys.rotation import DAY, Manner, RotationPolicy
from gatehouse.web.console.api_calls import settings_call
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import csv_file, list_query
from gatehouse.web.console.screens import Screen
from gatehouse.web.console.settings import HERE, TABBED
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.parse import read_query
from gatehouse.web.permissions.setting_parts import keys as keys_part

COLUMNS: Final = {
    "kid": lambda one: one[1].kid,
    "purpose": lambda one: one[0].purpose,
    "alg": lambda one: one[0].alg,
    "state": lambda one: one[1].state,
    "published": lambda one: one[1].created_at,
    "signs_from": lambda one: one[1].signs_from,
    "signs_until": lambda one: one[1].signs_until or "",
    "verifies_until": lambda one: one[1].verifies_until or "",
}
MANNERS: Final = {"planned": Manner.PLANNED, "at_once": Manner.AT_ONCE, "distrust": Manner.DISTRUST}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysContext(PageContext):
    template = "console/settings/keys.html"

    picture: Picture
    rotate_days: int
    call: ApiCall
    states: Sequence[State] = tuple(State)
    tabs_shown: Sequence[tuple[str, str]] = TABBED


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateContext(PageContext):
    template = "console/settings/rotate.html"

    line: KeyLine
    strip: Strip
    manners: Sequence[str]
    chosen: str
    lead_minutes: int
    problem: Problem | None = None


class RotateQuery(msgspec.Struct, frozen=True, kw_only=True):
    purpose: str = ""
    alg: str = ""


class RotateForm(Guarded, frozen=True, kw_only=True):
    purpose: str = ""
    alg: str = ""
    manner: str = ""


class KeyScreens:
    def __init__(self, *, office: KeyOffice, desk: ConsoleDesk) -> None:
        self._office = office
        self._desk = desk

    @property
    def _policy(self) -> RotationPolicy:
        return self._office.policy

    async def show(self, request: Request, guest: Guest) -> Response:
        picture = await self._office.picture(guest.actor)
        if list_query(request).is_file:
            return csv_file("keys", COLUMNS, [(strip.line, bar) for strip in picture.strips for bar in strip.bars])
        context = KeysContext(
            picture=picture,
            rotate_days=self._policy.every // DAY,
            call=settings_call(keys_part(picture, every=self._policy.every)),
        )
        return self._desk.show(request, guest, HERE, context)

    async def ask(self, request: Request, guest: Guest) -> Response:
        query = read_query(request, RotateQuery)
        return await self._asked(request, guest, line_of(query.purpose, query.alg))

    async def ask_again(self, request: Request, guest: Guest, form: RotateForm, problem: Problem) -> Response:
        return await self._asked(request, guest, line_of(form.purpose, form.alg), form.manner, problem)

    async def rotate(self, request: Request, guest: Guest, form: RotateForm) -> Response:  # noqa: ARG002
        if form.manner not in MANNERS:
            raise NotFound("no such rotation method")
        await self._office.rotate(guest.actor, line_of(form.purpose, form.alg), MANNERS[form.manner])
        return self._desk.done(HERE.path, f"key_{form.manner}")

    async def _asked(
        self, request: Request, guest: Guest, line: KeyLine, chosen: str = "", problem: Problem | None = None
    ) -> Response:
        strips = (await self._office.picture(guest.actor)).strips
        strip = next((one for one in strips if one.line == line), None)
        if strip is None:
            raise NotFound("no such keys")
        manners = [name for name in MANNERS if is_offered(name, strip)]
        context = RotateContext(
            line=line,
            strip=strip,
            manners=manners,
            chosen=chosen if chosen in manners else manners[0],
            lead_minutes=self._policy.publish_lead // 60,
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[Screen]:
        desk, path = self._desk, "/settings/keys/rotate"
        return [
            desk.shown("/settings", self.show),
            desk.shown(path, self.ask, fresh=True),
            desk.posted(path, RotateForm, self.rotate, again=self.ask_again, fresh=True),
        ]


def is_offered(manner: str, strip: Strip) -> bool:
    """No second key is planned while one waits, and what sealed the audit log is never distrusted."""
    if manner == "planned":
        return not strip.waits
    return manner != "distrust" or strip.line.purpose is not Purpose.AUDIT


def line_of(purpose: str, alg: str) -> KeyLine:
    try:
        return KeyLine(Purpose(purpose), Algorithm(alg))
    except ValueError:
        raise NotFound("no such keys") from None
