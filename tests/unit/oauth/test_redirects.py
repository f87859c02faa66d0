"""The grammar of redirect URIs, compared with a second parser (R3)."""

from string import printable

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gatehouse.oauth.model import Client, ClientProfile
from gatehouse.oauth.redirects import csp_source, display_host, is_registered_redirect, with_query

HOSTED = Client(client_id="web", name="Web", redirect_hosts=("good.example",), created_at=0)
PIECES = st.sampled_from(
    [
        *(
            "https://",
            "http://",
            "//",
            "good.example",
            "evil.example",
            "@",
            ":",
            ":443",
            ":80",
            "/",
            "\\",
            "?",
            "#",
            ".",
        ),
        *("%40", "%2f", "%00", "\t", "\n", " ", "[", "]", "javascript:", "localhost", "..", "\u3002", "\uff0f"),
    ]
)


@given(st.one_of(st.lists(PIECES, max_size=8).map("".join), st.text(printable, max_size=40).map("https://".__add__)))
@example("https://good.example\\@evil.example/")
@example("https://good.example%40evil.example/")
def test_whatever_is_accepted_leads_to_the_registered_host_for_every_reader(uri: str) -> None:
    if is_registered_redirect(HOSTED, uri):
        read = httpx2.URL(uri)
        assert (read.scheme, read.host, read.userinfo, read.fragment) == ("https", "good.example", b"", "")
        assert read.port is None
        assert uri.isascii()
        assert uri.isprintable()


@given(st.text(max_size=30))
def test_an_exact_uri_is_matched_by_itself_alone(tail: str) -> None:
    uri = "https://good.example/cb"
    client = Client(
        client_id="web", name="Web", profile=ClientProfile.OIDC, redirect_uris=(uri,), public=True, created_at=0
    )
    assert is_registered_redirect(client, uri + tail) == (not tail)


@pytest.mark.parametrize(
    ("uri", "host", "source"),
    [
        ("https://good.example/cb?a=1", "good.example", "https://good.example"),
        ("https://good.example:8443", "good.example:8443", "https://good.example:8443"),
        ("http://127.0.0.1:3000/cb", "127.0.0.1:3000", "http://127.0.0.1:3000"),
        ("http://[::1]:3000/cb", "[::1]:3000", "http://*:3000"),
        ("com.example.app:/cb", "com.example.app", "com.example.app:"),
    ],
)
def test_a_redirect_uri_is_told_by_its_host_and_allowed_by_its_origin(uri: str, host: str, source: str) -> None:
    assert (display_host(uri), csp_source(uri)) == (host, source)


@pytest.mark.parametrize(
    ("uri", "whole"),
    [
        ("https://a.example", "https://a.example?code=x%20%26"),
        ("https://a.example/cb?", "https://a.example/cb?code=x%20%26"),
        ("https://a.example/cb?b=1", "https://a.example/cb?b=1&code=x%20%26"),
        ("https://a.example/cb?b=1&", "https://a.example/cb?b=1&code=x%20%26"),
        ("https://a.example/news&", "https://a.example/news&?code=x%20%26"),
        ("com.example.app:/cb", "com.example.app:/cb?code=x%20%26"),
    ],
)
def test_an_answer_is_added_to_the_query_there_is(uri: str, whole: str) -> None:
    assert with_query(uri, {"code": "x &"}) == whole
