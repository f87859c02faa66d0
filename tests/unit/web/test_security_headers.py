import pytest

from gatehouse.web.http.context import content_security_policy
from tests.support.asgi import Pair, RecordingApp, an_asgi_call, call_asgi, in_context

STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


async def headers_of(*own: Pair, https: bool = True) -> dict[str, str]:
    response = await call_asgi(in_context(RecordingApp(answer_headers=own), https=https), an_asgi_call())
    assert len(dict(response.headers)) == len(response.headers), "a header occurs twice"
    return dict(response.headers)


async def test_ht_01_every_answer_carries_the_strict_headers() -> None:
    headers = await headers_of()
    del headers["x-request-id"]
    assert headers.pop("permissions-policy").startswith("accelerometer=(), camera=()")
    assert headers == {
        "content-security-policy": STRICT,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
        "strict-transport-security": "max-age=63072000; includeSubDomains",
    }


async def test_ht_01_without_https_nothing_is_promised_about_it() -> None:
    assert "strict-transport-security" not in await headers_of(https=False)


@pytest.mark.parametrize(
    "own",
    [("Content-Security-Policy", "default-src 'self'"), ("cache-control", "public, max-age=31536000, immutable")],
)
async def test_headers_set_by_the_response_are_kept(own: Pair) -> None:
    headers = await headers_of(own)
    assert headers[own[0]] == own[1]
    assert headers["x-content-type-options"] == "nosniff"
    assert [name.lower() for name in headers].count(own[0].lower()) == 1


async def test_the_body_and_the_lifespan_pass_untouched() -> None:
    response = await call_asgi(in_context(RecordingApp(), https=True), an_asgi_call())
    assert response.body == b"fine"


def test_s_08_a_page_may_name_a_clients_origin() -> None:
    policy = content_security_policy(form_action=["https://good.example:8443"])
    assert "form-action 'self' https://good.example:8443;" in policy
    assert content_security_policy() == STRICT


@pytest.mark.parametrize(
    "source", ["https://a.example; script-src *", "https://a.example *", "a,b", "a\r\nb", "a\tb", "ä.example"]
)
def test_s_08_a_source_cannot_smuggle_a_directive_in(source: str) -> None:
    with pytest.raises(ValueError, match="more than one source"):
        content_security_policy(form_action=[source])
