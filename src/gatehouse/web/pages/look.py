"""How a page looks to this browser: its language and theme, chosen in a link, a cookie or an account."""

from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from gatehouse.web.browser import signed_in_lang
from gatehouse.web.pages.vocabulary import Theme
from gatehouse.web.pages.words import Languages, choose_language

LANG_PARAMETER: Final = "lang"  # the parameter
UI_LOCALES: Final = "ui_locales"  # a client's, at authorize and at the sign-out (OpenID Connect Core §3.1.2.1)
LANG_COOKIE: Final = "gh_lang"
THEME_COOKIE: Final = "gh_theme"
YEAR_SECONDS: Final = 365 * 24 * 3600
THEMES_BY_VALUE: Final = {theme.value: theme for theme in Theme}


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayPreferences:
    lang: str
    theme: Theme = Theme.AUTO
    requested_lang: str = ""  # the language this very address names
    query: str | None = None  # the rest of the address's query, or None where a link back here makes no sense


class DisplayPreferenceCookies:
    """Reads the look of a request, and remembers choices in cookies of their own."""

    def __init__(self, languages: Languages, *, https: bool) -> None:
        self._languages = languages
        self._https = https
        self._prefix = "__Host-" if https else ""  # R8: plain names on loopback

    def read(self, scope: Scope, *, account_lang: str = "", ui_locales: str = "") -> DisplayPreferences:
        """One rule for every page, error pages too: `words.choose_language` says who comes before whom.

        `account_lang`: of somebody who is known but not signed in yet; `ui_locales`: of a way begun by an earlier
        request. What this request itself tells of either is found without them.
        """
        request = Request(scope)
        asked_for, rest = self._split_query(scope)
        lang = choose_language(
            available=self._languages,
            chosen=asked_for or request.cookies.get(self._prefix + LANG_COOKIE, ""),
            account=account_lang or signed_in_lang(scope),
            ui_locales=ui_locales or request.query_params.get(UI_LOCALES, ""),
            accept_language=request.headers.get("accept-language", ""),
        )
        return DisplayPreferences(
            lang=lang,
            theme=THEMES_BY_VALUE.get(request.cookies.get(self._prefix + THEME_COOKIE, ""), Theme.AUTO),
            requested_lang=asked_for,
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
        """The language the query names, if we speak it, and the query without it, as it was written."""
        query: bytes = scope.get("query_string", b"")
        if not query.isascii():
            return "", None
        parts = [part for part in query.decode("ascii").split("&") if part]
        named = [part.removeprefix(f"{LANG_PARAMETER}=") for part in parts if part.startswith(f"{LANG_PARAMETER}=")]
        asked_for = named[-1] if named and named[-1] in set(self._languages) else ""
        return asked_for, "&".join(part for part in parts if not part.startswith(f"{LANG_PARAMETER}="))
