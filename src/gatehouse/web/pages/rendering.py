"""Renders page contexts to HTML, in the browser's language and theme.

Language and theme come from a link, a cookie or the account.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import fields
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from gatehouse.audit.events import AuditEvent
from gatehouse.languages import FALLBACK_LANG
from gatehouse.oauth.api_model import SCOPE_MARK
from gatehouse.oauth.model import APPLICATION_SCOPES
from gatehouse.web.http.browser import signed_in_lang, signed_in_zone
from gatehouse.web.http.responses import OffLoopHtmlResponse, html_response
from gatehouse.web.pages import template_filters
from gatehouse.web.pages.assets import Assets
from gatehouse.web.pages.branding import Brand
from gatehouse.web.pages.contexts import ErrorContext, PageContext
from gatehouse.web.pages.translations import LanguagePolicy, Languages, Translator, choose_language, load_languages
from gatehouse.web.pages.vocabulary import (
    PageProblem,
    ProblemKind,
    Theme,
)

LANG_PARAMETER: Final = "lang"  # the parameter
RESOURCE_SCHEMES: Final = ("https://", "http://")  # of the address of an API
UI_LOCALES: Final = "ui_locales"  # of a client, at authorize and logout (OpenID Connect Core §3.1.2.1)
LANG_COOKIE: Final = "gh_lang"
THEME_COOKIE: Final = "gh_theme"
YEAR_SECONDS: Final = 365 * 24 * 3600
THEMES_BY_VALUE: Final = {theme.value: theme for theme in Theme}


class DisplayPreferences(Struct, frozen=True, kw_only=True):
    lang: str
    theme: Theme = Theme.AUTO
    requested_lang: str = ""  # named by this address
    zone: str = ""  # the time zone of the signed-in account
    query: str | None = None  # the rest of the query, or None where a link back here makes no sense


class DisplayPreferenceCookies:
    """Reads language and theme of a request, and stores choices in cookies."""

    def __init__(self, languages: Callable[[], tuple[str, ...]], *, https: bool) -> None:
        """`languages`: those to choose from, the default first."""
        self._languages = languages
        self._https = https
        self._prefix = "__Host-" if https else ""  # R8: plain names on loopback

    def read(self, scope: Scope, *, account_lang: str = "", ui_locales: str = "") -> DisplayPreferences:
        """Return the preferences; the order is that of `translations.choose_language`, for error pages too.

        `account_lang` belongs to an account that is known but not signed in yet; `ui_locales` to an earlier request
        of the flow. What this request itself says about either is found without them.
        """
        request = Request(scope)
        asked_for, rest = self._split_query(scope)
        lang = choose_language(
            available=self._languages(),
            chosen=asked_for or request.cookies.get(self._prefix + LANG_COOKIE, ""),
            account=account_lang or signed_in_lang(scope),
            ui_locales=ui_locales or request.query_params.get(UI_LOCALES, ""),
            accept_language=request.headers.get("accept-language", ""),
        )
        return DisplayPreferences(
            lang=lang,
            theme=THEMES_BY_VALUE.get(request.cookies.get(self._prefix + THEME_COOKIE, ""), Theme.AUTO),
            requested_lang=asked_for,
            zone=signed_in_zone(scope),
            query=rest if scope["method"] in ("GET", "HEAD") else None,
        )

    def set_cookies(self, response: Response, *, lang: str | None = None, theme: Theme | None = None) -> None:
        for name, value in ((LANG_COOKIE, lang), (THEME_COOKIE, theme)):
            if value is not None:
                response.set_cookie(
                    self._prefix + name,
                    value,
                    max_age=YEAR_SECONDS,
                    secure=self._https,
                    httponly=True,
                    samesite="lax",
                )

    def _split_query(self, scope: Scope) -> tuple[str, str | None]:
        """Return the supported language the query names, and the rest of the query as written."""
        query: bytes = scope.get("query_string", b"")
        if not query.isascii():
            return "", None
        parts = [part for part in query.decode("ascii").split("&") if part]
        named = [part.removeprefix(f"{LANG_PARAMETER}=") for part in parts if part.startswith(f"{LANG_PARAMETER}=")]
        asked_for = named[-1] if named and named[-1] in self._languages() else ""
        return asked_for, "&".join(part for part in parts if not part.startswith(f"{LANG_PARAMETER}="))


# Page contexts to HTML: escaped, with strict names, in the reader's language.


class PageRenderer:
    """`choices` are more enums for templates. With `demo` every page says that it is a demo."""

    def __init__(
        self,
        assets: Assets,
        *,
        https: bool = True,
        languages: Languages | None = None,
        choices: Mapping[str, object] = MappingProxyType({}),
        demo: bool = False,
        brand: Callable[[], Brand] = Brand,
        language_policy: Callable[[], LanguagePolicy] = LanguagePolicy,
    ) -> None:
        self._language_policy = language_policy
        self._assets = assets
        self._https = https
        self._demo = demo
        self._brand = brand
        self._languages = languages or load_languages()
        self._preferences = DisplayPreferenceCookies(self._offered_languages, https=https)
        self._choices = choices

    def with_part(self, part: str, choices: Mapping[str, object]) -> "PageRenderer":
        """Return a renderer with the texts and enums of one more part."""
        return PageRenderer(
            self._assets,
            https=self._https,
            languages=load_languages(part),
            choices=choices,
            demo=self._demo,
            brand=self._brand,
            language_policy=self._language_policy,
        )

    def with_brand(self, brand: Brand) -> "PageRenderer":
        """Return a renderer of the same pages with another brand."""
        return PageRenderer(
            self._assets,
            https=self._https,
            languages=self._languages,
            choices=self._choices,
            demo=self._demo,
            brand=lambda: brand,
            language_policy=self._language_policy,
        )

    @property
    def brand(self) -> Brand:
        return self._brand()

    def _offered_languages(self) -> tuple[str, ...]:
        return self._language_policy().available(self._languages)

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
        """Render the page of that context; a language requested by `?lang=` is stored for later pages.

        For `account_lang` and `ui_locales` see `DisplayPreferenceCookies.read`.
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
        """Build the context and render the page off the event loop, because it may be long.

        `frame` is what the template has beside the context; of two values with one name the context's counts.
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
        from gatehouse.web.pages.template_environment import template_environment  # noqa: PLC0415 - brings Jinja

        values = {field.name: getattr(context, field.name) for field in fields(context)}
        return (
            template_environment(self._assets)
            .get_template(context.template)
            .render({**self._shared_context(look), **frame, **values})
        )

    def language_of(self, request: Request) -> str:
        """Return the language a page would have, for the email or account that results."""
        return self._preferences.read(request.scope).lang

    def translator_for(self, request: Request) -> Translator:
        """Return the texts a page would use, for a file that replaces a page."""
        return self._languages[self.language_of(request)]

    def theme_of(self, request: Request) -> Theme:
        return self._preferences.read(request.scope).theme

    def set_preference_cookies(
        self, response: Response, *, lang: str | None = None, theme: Theme | None = None
    ) -> None:
        """Store the choice in cookies of this browser."""
        self._preferences.set_cookies(response, lang=lang, theme=theme)

    def render_error(self, status: int, title: str, message: str, reference: str, scope: Scope | None = None) -> str:
        """Render an error; other languages than English have a text for the message or for its status."""
        look = DisplayPreferences(lang=FALLBACK_LANG) if scope is None else self._preferences.read(scope)
        t = self._languages[look.lang]
        translated_message = self._languages.translate_message(look.lang, message)
        shown = ErrorContext(
            code=status,
            title=title if look.lang == FALLBACK_LANG else t(_error_key(t, "title", status)),
            message=t(_error_key(t, "text", status)) if translated_message is None else translated_message,
            reference=reference,
        )
        return self.render_html(shown, look)

    def _shared_context(self, look: DisplayPreferences) -> dict[str, object]:
        t = self._languages[look.lang]
        return {
            **self._choices,
            "t": t,
            "look": look,
            "demo": self._demo,
            "brand": self._brand(),
            "languages": [(lang, self._languages[lang]("language.name")) for lang in self._offered_languages()],
            "moment": partial(template_filters.exact_time, t, zone=look.zone),
            "ago": partial(template_filters.relative_time, t, zone=look.zone),
            "date_of": partial(template_filters.date_of, t, zone=look.zone),
            "day_of": partial(template_filters.day_heading, t, zone=look.zone),
            "wait": partial(template_filters.duration, t),
            "trouble": partial(self._problem_text, t),
            "built_in": lambda text: self._languages.translate_message(t.lang, text) or text,
            "reason_text": partial(self._reason_text, t),
            "happened": partial(_event_text, t),
            "granted": partial(_scope_text, t),
        }

    def _reason_text(self, t: Translator, english: str) -> str:
        """Return a stored reason in the reader's language; one of another server or version as it is."""
        translated = None if t.lang == FALLBACK_LANG else self._languages.translate_reason(t.lang, english)
        if translated is None and t.lang != FALLBACK_LANG:
            return Markup('<span lang="en">{}</span>').format(english)
        return english if translated is None else translated

    def _problem_text(self, t: Translator, problem: PageProblem) -> str:
        if problem.what is ProblemKind.INPUT:
            return t("trouble.input", text=self._languages.translate_message(t.lang, problem.text) or problem.text)
        return t(f"trouble.{problem.what}", wait=template_filters.duration(t, problem.seconds), text=problem.text)


def _event_text(t: Translator, event: str) -> str:
    """Return the text of an audit event from the locale, or else its English description."""
    if t.knows(f"event.{event}"):
        return t(f"event.{event}")
    return next((known.meaning for known in AuditEvent if known == event), event)


def _scope_text(t: Translator, scope: str, prefix: str = "scope.") -> str:
    """Return the text of a scope, to the person or by another prefix; an unknown scope is shown as it is.

    Access to an API, and `roles` and the like in its application, come with the application's name. Scopes of an API
    that is gone come with its resource.
    """
    api, of_api, name = scope.rpartition(SCOPE_MARK)
    if of_api and name in APPLICATION_SCOPES:
        return t(f"{prefix}api_{name}", application=api)
    if of_api and not name:
        return t(f"{prefix}api", application=api)
    if of_api and api.startswith(RESOURCE_SCHEMES):  # a title may contain the mark too
        return f"{name} ({api})"
    return t(f"{prefix}{scope}") if t.knows(f"{prefix}{scope}") else scope


def _error_key(t: Translator, kind: str, status: int) -> str:
    key = f"error.{kind}_{status}"
    return key if t.knows(key) else f"error.{kind}_unknown"
