"""Pages and an email as people would see them with a brand that is not saved yet.

They are shown in a frame of the branding tab: no script runs in it and no form leads anywhere.
"""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from html import unescape
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import NotFound
from gatehouse.kernel.graphics import Color
from gatehouse.mail.composer import Composer, mail_brand
from gatehouse.mail.model import MailTemplate
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.sign_in_flow.questions import NetworkNearness
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.context import content_security_policy
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import html_response
from gatehouse.web.pages.branding import DEFAULT_ACCENT, Brand, ColorPreviewContext, style_sheet, swatches
from gatehouse.web.pages.contexts import ConfirmGameContext, ConsentContext, PageContext, SignInContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.rendering import DisplayPreferences, PageRenderer
from gatehouse.web.pages.vocabulary import Theme

PREVIEW_PATH: Final = "/settings/branding/preview"
STYLE_PATH: Final = f"{PREVIEW_PATH}/accent.css"
SCREENS: Final = ("sign_in", "consent", "game", "email", "colors")
THEMES: Final = {"light": Theme.LIGHT, "dark": Theme.DARK}
MAX_NAME_LENGTH: Final = 40  # as settings/grammar.py
SAMPLE_APPLICATION: Final = "Sky Raiders"
SAMPLE_PERSON: Final = ("Anna", "anna@studio.example")
SAMPLE_ADDRESS: Final = "192.0.2.10"  # RFC 5737
FRAME_HEADERS: Final = {"X-Frame-Options": "SAMEORIGIN"}
SCRIPT: Final = re.compile(r"<script\b[^>]*>.*?</script>", re.DOTALL)  # not run here: browsers would complain of each
STYLE_ATTRIBUTE: Final = re.compile(r' style="([^"]*)"')
STYLE_ELEMENT: Final = re.compile(r"<style>(.*?)</style>", re.DOTALL)


class PreviewQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which page to show, and the fields of the branding form; None: not sent, because it is locked."""

    screen: str = SCREENS[0]
    theme: str = "light"
    branding__name: str | None = None
    branding__accent: str | None = None
    branding__wordmark: list[str] | None = None  # "false", then "true" of a switch that is on


class PreviewForm(CsrfForm, frozen=True, kw_only=True):
    """The same, sent by the button that works without JavaScript."""

    part: str = ""
    screen: str = SCREENS[0]
    theme: str = "light"
    branding__name: str | None = None
    branding__accent: str | None = None
    branding__wordmark: list[str] | None = None


class BrandingPreviews:
    def __init__(
        self, *, pages: PageRenderer, composer: Composer, accent: Callable[[], str], view: ConsoleView
    ) -> None:
        """`pages` renders the pages that people see; `accent` returns the color that applies now."""
        self._pages = pages
        self._composer = composer
        self._accent = accent
        self._view = view

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        require_operation(admin.rights, Operation.ADMINISTER)
        return self._preview(request, read_query(request, PreviewQuery))

    async def show_typed(self, request: Request, admin: AdminRequest, form: PreviewForm) -> Response:
        require_operation(admin.rights, Operation.ADMINISTER)
        return self._preview(request, form)

    async def style(self, request: Request, admin: AdminRequest) -> Response:  # noqa: ARG002
        accent = parse_color(request.query_params.get("accent", ""))
        if accent is None:
            raise NotFound("no such color")
        return Response(style_sheet(accent), media_type="text/css; charset=utf-8")

    def _preview(self, request: Request, wanted: PreviewQuery | PreviewForm) -> Response:
        if wanted.screen not in SCREENS or wanted.theme not in THEMES:
            raise NotFound("no such preview")
        accent = self._accent_of(wanted)
        brand = self._brand(wanted, accent)
        look = DisplayPreferences(lang=self._pages.language_of(request), theme=THEMES[wanted.theme])
        if wanted.screen == "email":
            return self._email(look.lang, brand, "" if accent is None else str(accent))
        page = self._pages.with_brand(brand).render_html(self._sample(wanted.screen, accent), look)
        policy = content_security_policy(scripts=False, own_forms=False, framed=True)
        return html_response(SCRIPT.sub("", page), headers={**FRAME_HEADERS, "Content-Security-Policy": policy})

    def _accent_of(self, wanted: PreviewQuery | PreviewForm) -> Color | None:
        """Return the typed color, the one that applies now while it cannot be read, or None for the default."""
        typed = self._accent() if wanted.branding__accent is None else wanted.branding__accent.strip()
        return None if not typed else parse_color(typed) or parse_color(self._accent())

    def _brand(self, wanted: PreviewQuery | PreviewForm, accent: Color | None) -> Brand:
        current, name = self._pages.brand, (wanted.branding__name or "").strip()
        wordmark = current.wordmark if not wanted.branding__wordmark else wanted.branding__wordmark[-1] == "true"
        style = "" if accent is None else f"{ConsoleEntry.HOME.path}{STYLE_PATH}?{urlencode({'accent': str(accent)})}"
        return replace(
            current,
            name=name if 0 < len(name) <= MAX_NAME_LENGTH else current.name,
            wordmark=wordmark and bool(current.logo),
            style=style,
        )

    def _email(self, lang: str, brand: Brand, accent: str) -> Response:
        message = self._composer.render_with_brand(
            mail_brand(brand.name, accent),
            MailTemplate.NEW_DEVICE,
            to=SAMPLE_PERSON[1],
            lang=lang,
            address=SAMPLE_ADDRESS,
            device="Firefox",
        )
        policy = f"default-src 'none'; style-src {style_hashes(message.html)}; frame-ancestors 'self'; sandbox"
        return html_response(message.html, headers={**FRAME_HEADERS, "Content-Security-Policy": policy})

    def _sample(self, screen: str, accent: Color | None) -> PageContext:
        nick, login = SAMPLE_PERSON
        now = self._view.now()
        samples: Mapping[str, PageContext] = {
            "sign_in": SignInContext(
                csrf="", application=SAMPLE_APPLICATION, register_enabled=True, passkeys_enabled=True
            ),
            "consent": ConsentContext(
                csrf="",
                interaction="",
                application=SAMPLE_APPLICATION,
                returns_to="play.example",
                nick=nick,
                login=login,
                scopes=("openid", "profile", "email"),
            ),
            "game": ConfirmGameContext(
                csrf="",
                interaction="",
                gsid="",
                application=SAMPLE_APPLICATION,
                asked_at=now,
                now=now,
                place=SAMPLE_ADDRESS,
                nearness=NetworkNearness.SAME,
                is_waited_for=True,
                phone_link="",
                nick=nick,
                login=login,
            ),
            "colors": ColorPreviewContext(swatches=swatches(accent or Color.parse(DEFAULT_ACCENT))),
        }
        return samples[screen]

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        return [
            view.page(STYLE_PATH, self.style),
            view.page(PREVIEW_PATH, self.show),
            view.form(PREVIEW_PATH, PreviewForm, self.show_typed),
        ]


def parse_color(text: str) -> Color | None:
    try:
        return Color.parse(text)
    except ValueError:
        return None


def style_hashes(html: str) -> str:
    """Return the sources that allow exactly the styles of an email, which cannot have files of its own."""
    styles = {*map(unescape, STYLE_ATTRIBUTE.findall(html)), *STYLE_ELEMENT.findall(html)}
    hashes = sorted(base64.b64encode(sha256(style)).decode() for style in styles)
    return " ".join(["'unsafe-hashes'", *(f"'sha256-{one}'" for one in hashes)])
