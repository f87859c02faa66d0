"""response_mode=form_post: the browser posts the response to the client (checklist AZ-06, R9)."""

import httpx2
import msgspec
import pytest

from gatehouse.keys.encoding import encode_base64url
from tests.support.browser import PASSWORD, HttpBrowser, form_to, hidden_fields
from tests.support.oauth import REDIRECT, RelyingPartyClient, an_oidc_client
from tests.support.service import RunningService
from tests.wire.oauth.authorize_responses import LOGIN, redirect_error

APP_URI = "com.example.shop:/callback"


def posted_fields(response: httpx2.Response) -> dict[str, str]:
    """The fields of the form to the client, on a page that may post nowhere else."""
    assert response.status_code == 200, response.text
    assert f'<form method="post" action="{REDIRECT}" data-post>' in response.text
    assert "; form-action https://shop.example; " in response.headers["content-security-policy"]
    assert "script-src 'self';" in response.headers["content-security-policy"]
    assert '<button type="submit">' in response.text
    assert response.headers["cache-control"] == "no-store"
    return hidden_fields(form_to(REDIRECT, response.text))


async def test_az_06_form_post_carries_code_state_and_iss_and_its_code_is_redeemed(
    service: RunningService, signed_in_browser: HttpBrowser, oidc_client: RelyingPartyClient
) -> None:
    state = """ö"'><script>alert(1)</script>&amp;"""
    response = await signed_in_browser.get(oidc_client.authorize_path(response_mode="form_post", state=state))
    fields = posted_fields(response)
    assert fields.keys() == {"code", "state", "iss"}
    assert (fields["state"], fields["iss"]) == (state, service.base_url)
    assert (await oidc_client.tokens(fields["code"]))["token_type"] == "Bearer"


@pytest.mark.usefixtures("anna")
async def test_az_06_errors_are_posted_as_forms_too(
    browser_client: HttpBrowser, oidc_client: RelyingPartyClient
) -> None:
    for wrong, error in (
        ({"prompt": "none"}, "login_required"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "email"}, "invalid_scope"),
    ):
        path = oidc_client.authorize_path(response_mode="form_post", **wrong)
        fields = posted_fields(await browser_client.get(path))
        assert fields.keys() == {"error", "error_description", "state", "iss"}
        assert (fields["error"], fields["state"]) == (error, "st")


async def test_az_06_what_a_form_cannot_carry_is_refused_in_the_query(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    client = await an_oidc_client(service, redirect_uris=(REDIRECT, APP_URI))
    path = client.authorize_path(response_mode="form_post", redirect_uri=APP_URI)
    assert redirect_error(await signed_in_browser.get(path), APP_URI) == "invalid_request"
    for path in (
        client.authorize_path(response_mode="form_post", state="a\r\nb"),
        f"{client.authorize_path(response_mode='form_post')}&response_mode=form_post",
    ):
        assert redirect_error(await signed_in_browser.get(path)) == "invalid_request"


@pytest.mark.usefixtures("anna")
async def test_form_post_follows_sign_in_and_consent(service: RunningService, browser_client: HttpBrowser) -> None:
    client = await an_oidc_client(service, first_party=False)
    for decision, outcome in (("deny", "error"), ("allow", "code")):
        await browser_client.get(client.authorize_path(response_mode="form_post"))
        page = await browser_client.follow()
        if page.url.path == "/sign-in":
            await browser_client.post("/sign-in", login=LOGIN, password=PASSWORD)
            await browser_client.follow()
        fields = posted_fields(await browser_client.post("/sign-in/consent", decision=decision))
        assert outcome in fields
        assert fields["state"] == "st"
    # Consent is stored: the sign-in form itself ends with the form to the client, and opens the session.
    browser_client.client.cookies.clear()
    await browser_client.get(client.authorize_path(response_mode="form_post", ui_locales="de"))
    await browser_client.follow()
    response = await browser_client.post("/sign-in", login=LOGIN, password=PASSWORD)
    assert "code" in posted_fields(response)
    assert '<html lang="de"' in response.text
    assert "gh_session" in browser_client.cookies


def request_object(**claims: object) -> str:
    parts = (encode_base64url(msgspec.json.encode(part)).decode() for part in ({"alg": "none"}, claims))
    return ".".join((*parts, ""))


async def test_ci_08_the_refusal_of_a_request_object_is_sent_in_the_mode_that_it_names(
    browser_client: HttpBrowser, oidc_client: RelyingPartyClient
) -> None:
    inside = request_object(response_mode="form_post", redirect_uri="https://evil.example/", state="theirs")
    fields = posted_fields(await browser_client.get(oidc_client.authorize_path(request=inside)))
    assert (fields["error"], fields["state"]) == ("request_not_supported", "st"), "nothing else in it counts"
    for unread in (
        *(request_object(), request_object(response_mode="fragment"), request_object(response_mode=["form_post"])),
        *("x", "..", "a.b.c", "a.é.c"),
    ):
        answer = await browser_client.get(oidc_client.authorize_path(request=unread))
        assert redirect_error(answer, REDIRECT) == "request_not_supported", unread[:60]
    unmatched = oidc_client.authorize_path(request=inside, redirect_uri="https://evil.example/")
    assert (await browser_client.get(unmatched)).status_code == 400
