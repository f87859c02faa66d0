"""Page contexts to HTML: escaped, with every name known, in the reader's language."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from gatehouse.audit.events import AuditEvent
from gatehouse.interaction.confirming import NetworkNearness
from gatehouse.permissions.evaluation.gathering import SourceKind
from gatehouse.web.branding import DEFAULT_BRAND, Brand
from gatehouse.web.pages import formats, tables
from gatehouse.web.pages.contexts import ErrorContext, PageContext
from gatehouse.web.pages.look import DisplayPreferenceCookies, DisplayPreferences
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import (
    AccountSection,
    FactorMethod,
    GameEnd,
    MailPurpose,
    PageProblem,
    ProblemKind,
    Theme,
)
from gatehouse.web.pages.words import FALLBACK_LANG, Languages, Translator, load_languages
from gatehouse.web.responses import OffLoopHtmlResponse, html_response
from gatehouse.web.static import Assets

# Templates compare with the same closed choices as handlers: a misspelt one fails the first rendering.
TEMPLATE_CHOICES: Final[Mapping[str, object]] = {
    "Path": Path,
    "Method": FactorMethod,
    "Section": AccountSection,
    "Theme": Theme,
    "MailPurpose": MailPurpose,
    "GameEnd": GameEnd,
    "Nearness": NetworkNearness,
    "SourceKind": SourceKind,
}


class PageRenderer:
    """`choices`: more closed choices that templates compare with. `demo`: every page says that it is one."""

    def __init__(
        self,
        assets: Assets,
        *,
        https: bool = True,
        languages: Languages | None = None,
        choices: Mapping[str, object] = MappingProxyType({}),
        demo: bool = False,
        brand: Brand = DEFAULT_BRAND,
    ) -> None:
        self._assets = assets
        self._https = https
        self._demo = demo
        self._brand = brand
        self._languages = languages or load_languages()
        self._preferences = DisplayPreferenceCookies(self._languages, https=https)
        self._choices = choices
        self._templates = template_environment(assets)

    def with_part(self, part: str, choices: Mapping[str, object]) -> "PageRenderer":
        """The same pages with the words of one more part, and its choices."""
        return PageRenderer(
            self._assets,
            https=self._https,
            languages=load_languages(part),
            choices=choices,
            demo=self._demo,
            brand=self._brand,
        )

    def render(
        self,
        request: Request,
        context: PageContext,
        *,
        status: int | None = None,
        account_lang: str = "",
        ui_locales: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """The page of that context; a language asked for by `?lang=` is kept for the pages to come.

        `account_lang` and `ui_locales`: see `Looks.of`, which knows who is signed in by itself.
        """
        look = self._preferences.read(request.scope, account_lang=account_lang, ui_locales=ui_locales)
        response = html_response(self.render_html(context, look), status=status or context.status, headers=headers)
        return self._with_preferences(response, look)

    def render_off_loop(
        self,
        request: Request,
        make: Callable[[], PageContext],
        *,
        status: int = 200,
        frame: Mapping[str, object] = MappingProxyType({}),
    ) -> Response:
        """A page that may be long: its context is made and rendered off the event loop.

        `around`: what a frame that many pages stand in has to be told.
        """
        look = self._preferences.read(request.scope)
        return self._with_preferences(
            OffLoopHtmlResponse(lambda: self.render_html(make(), look, frame), status=status), look
        )

    def _with_preferences(self, response: Response, look: DisplayPreferences) -> Response:
        response.headers["Content-Language"] = look.lang
        if look.requested_lang:
            self._preferences.set_cookies(response, lang=look.requested_lang)
        return response

    def render_html(
        self, context: PageContext, look: DisplayPreferences, frame: Mapping[str, object] = MappingProxyType({})
    ) -> str:
        told = {field.name: getattr(context, field.name) for field in fields(context)}
        return self._templates.get_template(context.template).render(self._shared_context(look), **frame, **told)

    def language_of(self, request: Request) -> str:
        """The language a page would be shown in, for the mail or the account that comes of it."""
        return self._preferences.read(request.scope).lang

    def translator_for(self, request: Request) -> Translator:
        """What a page would speak in, for a file that stands for one."""
        return self._languages[self.language_of(request)]

    def theme_of(self, request: Request) -> Theme:
        return self._preferences.read(request.scope).theme

    def set_preference_cookies(
        self, response: Response, *, lang: str | None = None, theme: Theme | None = None
    ) -> None:
        """Keep the choice in cookies of this browser."""
        self._preferences.set_cookies(response, lang=lang, theme=theme)

    def render_error(self, status: int, title: str, message: str, request_id: str, scope: Scope | None = None) -> str:
        """English words come from the error itself; other languages have their own for it, or for its status."""
        look = DisplayPreferences(lang=FALLBACK_LANG) if scope is None else self._preferences.read(scope)
        t = self._languages[look.lang]
        said = self._languages.translate_message(look.lang, message)
        shown = ErrorContext(
            code=status,
            title=title if look.lang == FALLBACK_LANG else t(_error_key(t, "title", status)),
            message=t(_error_key(t, "text", status)) if said is None else said,
            request_id=request_id,
        )
        return self.render_html(shown, look)

    def _shared_context(self, look: DisplayPreferences) -> dict[str, object]:
        t = self._languages[look.lang]
        return {
            **self._choices,
            "t": t,
            "look": look,
            "demo": self._demo,
            "brand": self._brand,
            "languages": [(lang, self._languages[lang]("language.name")) for lang in self._languages],
            "moment": partial(formats.exact_time, t),
            "ago": partial(formats.relative_time, t),
            "wait": partial(formats.duration, t),
            "trouble": partial(self._problem_text, t),
            "happened": partial(_event_text, t),
            "granted": partial(_scope_text, t),
        }

    def _problem_text(self, t: Translator, problem: PageProblem) -> str:
        if problem.what is ProblemKind.INPUT:
            return t("trouble.input", text=self._languages.translate_message(t.lang, problem.text) or problem.text)
        return t(f"trouble.{problem.what}", wait=formats.duration(t, problem.seconds))


@lru_cache(maxsize=1)  # a template is compiled once in a process
def template_environment(assets: Assets) -> Environment:
    environment = Environment(
        loader=PackageLoader("gatehouse.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(TEMPLATE_CHOICES, asset=assets.address)
    environment.filters.update(
        foldable=formats.breakable_email,
        grouped=formats.group_characters,
        qr_code=formats.qr_code,
        stackable=tables.stackable,
    )
    return environment


def _event_text(t: Translator, event: str) -> str:
    """An audit event in the words of the locale, or else as the audit log explains it."""
    if t.knows(f"event.{event}"):
        return t(f"event.{event}")
    return next((known.meaning for known in AuditEvent if known == event), event)


def _scope_text(t: Translator, scope: str) -> str:
    """What an application gets by a scope, in plain words; one that has none is shown as it is."""
    return t(f"scope.{scope}") if t.knows(f"scope.{scope}") else scope


def _error_key(t: Translator, kind: str, status: int) -> str:
    key = f"error.{kind}_{status}"
    return key if t.knows(key) else f"error.{kind}_other"
