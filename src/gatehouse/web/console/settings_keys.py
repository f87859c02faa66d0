"""Settings: signing keys on their time line, and their rotation before its time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.key_strip import KeyLineTimeline, KeyTimeline
from gatehouse.admin.keys import KeyAdmin
from gatehouse.kernel.errors import NotFound
from gatehouse.keys.model import Algorithm, KeyLine, KeyPurpose, KeyState
from gatehouse.keys.rotation import DAY, RotationMode, RotationPolicy
from gatehouse.web.console.api_calls import settings_call
from gatehouse.web.console.desk import AdminRequest, ConsoleView, FormProblem
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import csv_file, read_list_query
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.console.settings import ENTRY, SETTINGS_TABS
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import CsrfForm
from gatehouse.web.parse import read_query
from gatehouse.web.permissions.setting_parts import keys_part

SIGNING_KEY_COLUMNS: Final = {
    "kid": lambda one: one[1].kid,
    "purpose": lambda one: one[0].purpose,
    "alg": lambda one: one[0].alg,
    "state": lambda one: one[1].state,
    "published": lambda one: one[1].created_at,
    "signs_from": lambda one: one[1].signs_from,
    "signs_until": lambda one: one[1].signs_until or "",
    "verifies_until": lambda one: one[1].verifies_until or "",
}
ROTATION_MODES: Final = {
    "planned": RotationMode.PLANNED,
    "at_once": RotationMode.AT_ONCE,
    "distrust": RotationMode.DISTRUST,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysContext(PageContext):
    template = "console/settings/keys.html"

    picture: KeyTimeline
    rotate_days: int
    call: ApiCall
    states: Sequence[KeyState] = tuple(KeyState)
    tabs_shown: Sequence[tuple[str, str]] = SETTINGS_TABS


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateContext(PageContext):
    template = "console/settings/rotate.html"

    line: KeyLine
    strip: KeyLineTimeline
    manners: Sequence[str]
    chosen: str
    lead_minutes: int
    problem: FormProblem | None = None


class RotateQuery(msgspec.Struct, frozen=True, kw_only=True):
    purpose: str = ""
    alg: str = ""


class RotateForm(CsrfForm, frozen=True, kw_only=True):
    purpose: str = ""
    alg: str = ""
    manner: str = ""


class SigningKeyScreens:
    def __init__(self, *, key_admin: KeyAdmin, view: ConsoleView) -> None:
        self._key_admin = key_admin
        self._view = view

    @property
    def _policy(self) -> RotationPolicy:
        return self._key_admin.policy

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        picture = await self._key_admin.timeline(admin.actor)
        if read_list_query(request).is_file:
            return csv_file(
                "keys", SIGNING_KEY_COLUMNS, [(strip.line, bar) for strip in picture.strips for bar in strip.bars]
            )
        context = KeysContext(
            picture=picture,
            rotate_days=self._policy.interval // DAY,
            call=settings_call(keys_part(picture, every=self._policy.interval)),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def confirm_rotation(self, request: Request, admin: AdminRequest) -> Response:
        query = read_query(request, RotateQuery)
        return await self._render_rotation(request, admin, parse_key_line(query.purpose, query.alg))

    async def rerender_rotation(
        self, request: Request, admin: AdminRequest, form: RotateForm, problem: FormProblem
    ) -> Response:
        return await self._render_rotation(
            request, admin, parse_key_line(form.purpose, form.alg), form.manner, problem
        )

    async def rotate(self, request: Request, admin: AdminRequest, form: RotateForm) -> Response:  # noqa: ARG002
        if form.manner not in ROTATION_MODES:
            raise NotFound("no such rotation method")
        await self._key_admin.rotate(admin.actor, parse_key_line(form.purpose, form.alg), ROTATION_MODES[form.manner])
        return self._view.redirect_with_flash(ENTRY.path, f"key_{form.manner}")

    async def _render_rotation(
        self,
        request: Request,
        admin: AdminRequest,
        line: KeyLine,
        chosen: str = "",
        problem: FormProblem | None = None,
    ) -> Response:
        strips = (await self._key_admin.timeline(admin.actor)).strips
        strip = next((one for one in strips if one.line == line), None)
        if strip is None:
            raise NotFound("no such keys")
        manners = [name for name in ROTATION_MODES if is_mode_offered(name, strip)]
        context = RotateContext(
            line=line,
            strip=strip,
            manners=manners,
            chosen=chosen if chosen in manners else manners[0],
            lead_minutes=self._policy.publish_lead // 60,
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context, status=problem.status if problem else None)

    def routes(self) -> Sequence[ConsoleRoute]:
        desk, path = self._view, "/settings/keys/rotate"
        return [
            desk.page("/settings", self.show),
            desk.page(path, self.confirm_rotation, fresh=True),
            desk.form(path, RotateForm, self.rotate, rerender=self.rerender_rotation, fresh=True),
        ]


def is_mode_offered(mode: str, strip: KeyLineTimeline) -> bool:
    """No second key is planned while one waits, and what sealed the audit log is never distrusted."""
    if mode == "planned":
        return not strip.waits
    return mode != "distrust" or strip.line.purpose is not KeyPurpose.AUDIT


def parse_key_line(purpose: str, alg: str) -> KeyLine:
    try:
        return KeyLine(KeyPurpose(purpose), Algorithm(alg))
    except ValueError:
        raise NotFound("no such keys") from None
