"""Rendering a response from a request and a context: language, theme, cookies, error pages."""

import pytest
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.web.pages.assets import Assets
from gatehouse.web.pages.contexts import ExpiredContext, ForgotContext, ThrottledContext
from gatehouse.web.pages.rendering import DisplayPreferences, PageRenderer
from gatehouse.web.pages.vocabulary import PageProblem, ProblemKind, Theme
from tests.support.gallery import STATES
from tests.support.sample_asgi_app import a_scope

GERMAN, ENGLISH = "Passwort zurücksetzen", "Reset your password"


@pytest.fixture(scope="module")
def pages() -> PageRenderer:
    return PageRenderer(Assets())


def a_request(target: str = "/forgot", method: str = "GET", **headers: str) -> Request:
    return Request(a_scope(method, target, [(name.replace("_", "-"), value) for name, value in headers.items()]))


def render_page(pages: PageRenderer, request: Request, **wishes: str) -> tuple[str, Response]:
    response = pages.render(request, ForgotContext(csrf="c"), **wishes)  # type: ignore[arg-type]
    return bytes(response.body).decode(), response


def test_the_page_is_in_the_language_of_its_reader(pages: PageRenderer) -> None:
    page, response = render_page(pages, a_request(accept_language="de-DE,de;q=0.9"))
    assert f"<h1>{GERMAN}</h1>" in page
    assert '<html lang="de">' in page
    assert response.headers["content-language"] == "de"
    assert response.headers["cache-control"] == "no-store"


def test_link_cookie_account_and_application_come_before_the_browser(pages: PageRenderer) -> None:
    ways: list[tuple[Request, dict[str, str]]] = [
        (a_request("/forgot?lang=de", cookie="__Host-gh_lang=en"), {"account_lang": "en"}),
        (a_request(cookie="__Host-gh_lang=de"), {"account_lang": "en"}),
        (a_request(), {"account_lang": "de", "ui_locales": "en"}),
        (a_request(accept_language="en"), {"ui_locales": "fr de"}),
        (a_request("/logout?ui_locales=fr+de", accept_language="en"), {}),
    ]
    for request, wishes in ways:
        assert GERMAN in render_page(pages, request, **wishes)[0]


def test_only_a_language_from_the_link_is_stored_in_a_cookie(pages: PageRenderer) -> None:
    _, response = render_page(pages, a_request("/forgot?lang=de"))
    assert response.headers["set-cookie"] == (
        "__Host-gh_lang=de; HttpOnly; Max-Age=31536000; Path=/; SameSite=lax; Secure"
    )
    for request in (
        a_request(accept_language="de"),
        a_request("/forgot?lang=fr"),
        a_request(cookie="__Host-gh_lang=de"),
    ):
        assert "set-cookie" not in render_page(pages, request)[1].headers


def test_preference_cookies_have_no_host_prefix_on_plain_http() -> None:
    local = PageRenderer(Assets(), https=False)
    answer = Response()
    local.set_preference_cookies(answer, lang="de", theme=Theme.DARK)
    cookies = [value.decode() for name, value in answer.raw_headers if name == b"set-cookie"]
    assert cookies == [
        "gh_lang=de; HttpOnly; Max-Age=31536000; Path=/; SameSite=lax",
        "gh_theme=dark; HttpOnly; Max-Age=31536000; Path=/; SameSite=lax",
    ]
    assert GERMAN in render_page(local, a_request(cookie="gh_lang=de"))[0]


@pytest.mark.parametrize(
    ("target", "link"),
    [
        ("/forgot", "?lang=de"),
        ("/forgot?token=a%2Bb&x=1", "?token=a%2Bb&amp;x=1&amp;lang=de"),
        ("/forgot?lang=en&x=1&lang=fr", "?x=1&amp;lang=de"),
        ('/forgot?x="><script>', "?x=&#34;&gt;&lt;script&gt;&amp;lang=de"),
    ],
)
def test_the_language_links_keep_the_rest_of_the_address(pages: PageRenderer, target: str, link: str) -> None:
    assert f'<a href="{link}" lang="de" hreflang="de"' in render_page(pages, a_request(target))[0]


def test_a_page_that_answers_a_form_offers_no_link_to_itself(pages: PageRenderer) -> None:
    page, _ = render_page(pages, a_request(method="POST"))
    assert "lang=de" not in page


def test_an_address_with_raw_bytes_is_no_trouble(pages: PageRenderer) -> None:
    request = a_request()
    request.scope["query_string"] = b"lang=de&x=\xff\xfe"
    page, response = render_page(pages, request)
    assert ENGLISH in page
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    ("cookie", "root"),
    [
        ("__Host-gh_theme=dark", '<html lang="en" data-theme="dark">'),
        ("__Host-gh_theme=light", '<html lang="en" data-theme="light">'),
        ("__Host-gh_theme=auto", '<html lang="en">'),
        ("__Host-gh_theme=pink", '<html lang="en">'),
        ("gh_theme=dark", '<html lang="en">'),
        ("", '<html lang="en">'),
    ],
)
def test_the_theme_is_the_one_kept_in_the_cookie(pages: PageRenderer, cookie: str, root: str) -> None:
    request = a_request(cookie=cookie)
    assert root in render_page(pages, request)[0]
    assert pages.theme_of(request) is (Theme.AUTO if "data-theme" not in root else Theme(cookie.partition("=")[2]))


def test_a_context_brings_its_status_and_a_handler_may_say_another(pages: PageRenderer) -> None:
    assert pages.render(a_request(), ExpiredContext(start_again="/")).status_code == 400
    assert pages.render(a_request(), ThrottledContext(retry_after=61, start_again="/")).status_code == 429
    assert pages.render(a_request(), ExpiredContext(start_again="/"), status=410).status_code == 410


def test_a_handler_may_add_headers(pages: PageRenderer) -> None:
    response = pages.render(a_request(), ExpiredContext(start_again="/"), headers={"Retry-After": "5"})
    assert response.headers["retry-after"] == "5"


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (PageProblem(what=ProblemKind.THROTTLED, seconds=61), "Versuchen Sie es in 2 Minuten noch einmal"),
        (
            PageProblem(what=ProblemKind.INPUT, text="the password must have at least 10 characters"),
            "Prüfen Sie Ihre Eingabe: das Passwort muss mindestens 10 Zeichen haben.",
        ),
        (
            PageProblem(what=ProblemKind.INPUT, text="something <new>"),
            "Prüfen Sie Ihre Eingabe: something &lt;new&gt;.",
        ),
    ],
)
def test_a_problem_is_told_in_words(pages: PageRenderer, problem: PageProblem, words: str) -> None:
    response = pages.render(a_request(accept_language="de"), ForgotContext(csrf="c", problem=problem))
    assert words in bytes(response.body).decode()


def test_an_english_error_page_says_what_the_error_says(pages: PageRenderer) -> None:
    page = pages.render_error(404, "Page not found", "Not found.", "r1")
    assert "<h1>Page not found</h1>" in page
    assert "Not found." in page
    assert "404 · Reference for support: <code>r1</code>" in page


@pytest.mark.parametrize(
    ("status", "message", "title", "text"),
    [
        (409, "An account with this email already exists.", "Etwas ist schiefgegangen", "Ein Konto mit"),
        (404, "Not found.", "Seite nicht gefunden", "Diese Seite gibt es nicht."),
        (418, "I am a teapot", "Etwas ist schiefgegangen", "Auf unserer Seite ist etwas schiefgegangen."),
    ],
)
def test_an_error_page_in_another_language_has_words_for_the_refusal_or_its_status(
    pages: PageRenderer, status: int, message: str, title: str, text: str
) -> None:
    page = pages.render_error(status, "English title", message, "r1", a_request(accept_language="de").scope)
    assert f"<h1>{title}</h1>" in page
    assert text in page
    assert message not in page


def test_only_pages_of_a_demo_show_the_demo_badge(pages: PageRenderer) -> None:
    demo = PageRenderer(Assets(), demo=True)
    for context in STATES.values():
        for lang in ("en", "de"):
            assert '<span class="badge demo">Demo</span>' in demo.render_html(context, DisplayPreferences(lang=lang))
            assert "Demo" not in pages.render_html(context, DisplayPreferences(lang=lang))
