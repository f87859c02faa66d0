"""Templates contain only structure; every text, form and script follows the project's rules."""

import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markupsafe import Markup
from msgspec.structs import replace

from gatehouse.languages import FALLBACK_LANG
from gatehouse.permissions.login_rules import LoginRefusalReason
from gatehouse.web.forward_auth.denied_page import SiteDeniedContext
from gatehouse.web.pages import contexts as page
from gatehouse.web.pages.assets import STATIC_DIRECTORY, Assets
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.rendering import DisplayPreferences, PageRenderer
from gatehouse.web.pages.template_filters import (
    DAY,
    HOUR,
    MINUTE,
    day_heading,
    duration,
    exact_time,
    relative_time,
)
from gatehouse.web.pages.translations import Languages, Translator, load_languages
from gatehouse.web.pages.vocabulary import Notice, PageProblem, ProblemKind
from tests.support.gallery import CSRF, FORM_POST, FULL_ACCOUNT, NOW, SIGN_IN, STATES, WHY_DENIED

TEMPLATES = STATIC_DIRECTORY.parent / "templates"
NAMES = sorted(
    path.relative_to(TEMPLATES).as_posix() for path in TEMPLATES.rglob("*.html") if path.parent.name != "mail"
)
TEXTS = load_languages()[FALLBACK_LANG].texts
WITH_CONSOLE = load_languages("console")[FALLBACK_LANG].texts
JINJA = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
TAG = re.compile(r"<[^>]*>", re.DOTALL)
SAME_IN_EVERY_LANGUAGE = re.compile(r"<(kbd|code)\b[^>]*>.*?</\1>", re.DOTALL)  # keys and paths
DEVELOPMENT_ONLY = {"console/gallery.html"}
READ_ALOUD = re.compile(r"\b(?:aria-label|alt|placeholder|title|content)=\"([^\"]*)\"")
# The few values of `content` that are for the browser.
FOR_BROWSERS = {"width=device-width, initial-scale=1", "noindex", "light dark"}
# Shown on the sites of others, so with a policy and a style of its own.
SITE_DENIED = SiteDeniedContext(application="wiki.studio.example", login="anna@studio.example", style="", more="/")
BEGUN = re.compile(r"[\"']([a-z_0-9]+\.[a-z_0-9]*)[\"'](?:\s*~|\)|(?<=_[\"']),)")
BEGUN_IN_MODULE = re.compile(r"\bt\(\s*f\"([a-z_0-9]+\.[a-z_0-9]*){")
FIELDS_BEGUN = re.compile(r"field_controls?\([^()]*?\"([a-z_]+\.)\"")  # of the hints of a form's fields
USED = re.compile(r"\bt\(\s*[\"']([a-z_0-9.]+)[\"']\s*[,)]")


@pytest.mark.parametrize("name", sorted(set(NAMES) - DEVELOPMENT_ONLY))
def test_no_template_contains_untranslated_text(name: str) -> None:
    bare = SAME_IN_EVERY_LANGUAGE.sub("", JINJA.sub("", (TEMPLATES / name).read_text()))
    spoken = [text for text in READ_ALOUD.findall(bare) if text not in FOR_BROWSERS]
    seen = TAG.sub("", bare.replace("<!doctype html>", ""))
    assert not [word for word in [*spoken, re.sub(r"&[a-z]+;", "", seen)] if re.search(r"[^\W\d_]", word)]


STYLE_SHEETS = {
    path.relative_to(STATIC_DIRECTORY).as_posix()
    for path in STATIC_DIRECTORY.rglob("*.css")
    if "vendor" not in path.parts
}


@pytest.mark.parametrize("sheet", sorted(STYLE_SHEETS))
def test_a_style_sheet_closes_what_it_opens(sheet: str) -> None:
    """An unclosed block swallows all that follows it, without an error."""
    depth = 0
    for line in (STATIC_DIRECTORY / sheet).read_text().splitlines():
        depth += line.count("{") - line.count("}")
        assert depth in (0, 1, 2), line
    assert depth == 0


def test_every_component_is_part_of_a_style_sheet() -> None:
    imported = [
        name
        for sheet in STYLE_SHEETS
        for name in re.findall(r'^@import "(.*)";$', (STATIC_DIRECTORY / sheet).read_text(), re.MULTILINE)
    ]
    components = [name for name in imported if name.startswith("components/")]
    assert sorted(components) == sorted(sheet for sheet in STYLE_SHEETS if sheet.startswith("components/"))


def test_every_text_key_used_by_a_template_or_module_exists() -> None:
    assert len(requested_keys()) > 100
    assert {key for key in requested_keys() if key not in WITH_CONSOLE and f"{key}_one" not in WITH_CONSOLE} == set()


def requested_keys() -> set[str]:
    sources = [
        *(TEMPLATES / name for name in NAMES),
        *modules("pages"),
        *modules("forward_auth"),
        *modules("console"),
    ]
    return {key for source in sources for key in USED.findall(source.read_text())}


def modules(package: str) -> list[Path]:
    return sorted((STATIC_DIRECTORY.parent / package).rglob("*.py"))


def test_every_console_text_is_used() -> None:
    """By its whole key, or by the prefix of a key that is built at run time."""
    templates = "".join((TEMPLATES / name).read_text() for name in NAMES if name.startswith("console/"))
    started = (*BEGUN.findall(templates), *BEGUN_IN_MODULE.findall("".join(map(Path.read_text, modules("console")))))
    started += ("reason.", "built_in.")  # found by their English text, which is stored
    fields = tuple(FIELDS_BEGUN.findall(templates))
    own = {key.removesuffix("_one").removesuffix("_other") for key in WITH_CONSOLE.keys() - TEXTS.keys()}
    own -= {key for key in own if key.startswith(fields) and key.endswith(("_hint", "_check"))}
    assert {key for key in own - requested_keys() if not key.startswith(started)} == set()


def test_every_template_belongs_to_exactly_one_page_context() -> None:
    parts = {"base.html", "brand.html", "parts.html"} | {name for name in NAMES if "/" in name}
    packages = ("gatehouse.web.pages.", "gatehouse.web.forward_auth.")
    pages = [kind for kind in PageContext.__subclasses__() if kind.__module__.startswith(packages)]
    kinds = {kind.__name__: kind.template for kind in pages}
    assert sorted(kinds.values()) == sorted(set(NAMES) - parts)
    assert {context.template for context in [*STATES.values(), SITE_DENIED]} == set(kinds.values())


class RecordingTranslator(Translator):
    """Records the keys it is asked for."""

    def __init__(self, lang: str, texts: Mapping[str, str]) -> None:
        super().__init__(lang, texts)
        self.keys: set[str] = set()

    def __call__(self, key: str, /, **values: object) -> Markup:
        self.keys.add(self._plural_key(key, values))
        return super().__call__(key, **values)


def test_every_text_is_used() -> None:
    words = RecordingTranslator(FALLBACK_LANG, TEXTS)
    pages = PageRenderer(Assets(), languages=Languages({FALLBACK_LANG: words}), demo=True)
    problems = [replace(SIGN_IN, problem=PageProblem(what=what)) for what in ProblemKind]
    notices = [replace(SIGN_IN, notice=notice) for notice in Notice]
    denials = [
        replace(STATES["access-denied-explained"], why=replace(WHY_DENIED, by=reason))
        for reason in LoginRefusalReason
    ]
    for context in [*STATES.values(), *problems, *notices, *denials, SITE_DENIED]:
        pages.render_html(context, DisplayPreferences(lang=FALLBACK_LANG, query=""))
    for past in (0, 30, MINUTE, 2 * MINUTE, HOUR, 2 * HOUR, DAY, 2 * DAY, 30 * DAY):
        relative_time(words, NOW - past, NOW)
        relative_time(words, NOW + past, NOW)
        duration(words, past)
    for past in (0, DAY, 2 * DAY):
        day_heading(words, NOW - past, NOW, "Europe/Berlin")
    exact_time(words, NOW, "Europe/Berlin")
    by_status = {key for key in TEXTS if key.startswith(("error.title_", "error.text_"))}
    elsewhere = {key for key in TEXTS if key.startswith(("said.", "event."))}
    assert set(TEXTS) - words.keys - by_status - elsewhere == set()


class Inspector(HTMLParser):
    """The parts of a page that tests check."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[dict[str, str]] = []
        self.unsafe: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.ids += [named["id"]] if "id" in named else []
        self.unsafe += [name for name in named if name == "style" or name.startswith("on")]
        self.unsafe += [tag] if tag == "style" or (tag == "script" and "src" not in named) else []
        if tag == "form":
            self.forms.append({"method": named["method"], "action": named.get("action", "")})
        elif tag in ("input", "button", "select") and self.forms and named.get("name"):
            self.forms[-1][f"field {named['name']}"] = named.get("value", "")


def inspect_states() -> Iterator[tuple[str, Inspector]]:
    pages = PageRenderer(Assets())
    for state, context in STATES.items():
        inspector = Inspector()
        inspector.feed(pages.render_html(context, DisplayPreferences(lang="en", query="")))
        yield state, inspector


def test_every_form_posts_to_a_local_path_with_the_csrf_token() -> None:
    forms = [(state, form) for state, inspector in inspect_states() for form in inspector.forms]
    assert len(forms) > 50
    for state, form in forms:
        if form["method"] == "dialog":  # a script sends it, the browser never does
            assert form["action"] == "", state
            continue
        if form["method"] == "get" and state.startswith("guides"):  # it searches
            continue
        assert form["method"] == "post", state
        if form["action"] == FORM_POST.action:  # the response to a client, which carries nothing of ours
            assert "field csrf" not in form, state
            continue
        assert form["action"].startswith("/"), state
        # The setup page has no session to protect; its token is the secret.
        assert form.get("field csrf") == (None if form["action"] == "/setup" else CSRF), (state, form)


def test_no_page_has_inline_script_inline_style_or_duplicate_ids() -> None:
    for state, inspector in inspect_states():
        assert inspector.unsafe == [], state
        assert len(inspector.ids) == len(set(inspector.ids)), state


def test_the_fields_of_the_sign_in_forms_have_their_stable_names() -> None:
    """R1: third-party scripts and tests rely on them."""
    by_state = {state: inspector.forms for state, inspector in inspect_states()}
    assert {"field login", "field password", "field csrf"} <= set(by_state["sign-in"][0])
    assert {"field otp", "field csrf"} <= set(by_state["factor-totp"][0])


def test_lg_21_what_people_write_is_shown_and_not_obeyed() -> None:
    hostile = "\"><script>alert(1)</script>{{7*7}}${7*7}'"
    pages = PageRenderer(Assets())
    for context in (
        replace(SIGN_IN, login=hostile, application=hostile, returns_to=hostile, interaction=hostile, csrf=hostile),
        replace(SIGN_IN, passkey_options=hostile, problem=PageProblem(what=ProblemKind.INPUT, text=hostile)),
        page.ErrorContext(code=400, title=hostile, message=hostile, reference=hostile),
        replace(FULL_ACCOUNT, nick=hostile, typed=hostile, user_id=hostile, pending_login=hostile),
    ):
        html = pages.render_html(context, DisplayPreferences(lang="de", query=hostile))
        assert "<script>alert" not in html
        assert "&lt;script&gt;" in html
        assert "{{7*7}}" in html
