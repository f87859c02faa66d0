"""RP-initiated logout: /proxy/oauth/logout (OpenID Connect RP-Initiated Logout 1.0, R3)."""

from collections.abc import AsyncIterator
from urllib.parse import urlencode

import httpx2
import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.oauth.errors import BadClient
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import a_record
from tests.support.oauth import RelyingPartyClient, an_oidc_client
from tests.support.service import RunningService

LOGOUT = "/proxy/oauth/logout"
BYE = "https://shop.example/bye"


@pytest.fixture
async def oidc_client(service: RunningService) -> RelyingPartyClient:
    return await an_oidc_client(service, post_logout_uris=(BYE, "https://shop.example/bye?tenant=1"))


@pytest.fixture
async def browser_client(service: RunningService) -> AsyncIterator[HttpBrowser]:
    someone = HttpBrowser(service)
    yield someone
    await someone.client.aclose()


@pytest.fixture
async def id_token(oidc_client: RelyingPartyClient, browser_client: HttpBrowser, anna: User) -> str:
    """The id_token after Anna signed in to the client with this browser."""
    code = oidc_client.code_from(await oidc_client.walk_authorize(browser_client, anna.login or ""))
    return str((await oidc_client.tokens(code))["id_token"])


def path(**fields: str) -> str:
    return f"{LOGOUT}?{urlencode(fields)}"


async def is_signed_in(browser_client: HttpBrowser) -> bool:
    return (await browser_client.client.get("/account")).status_code == 200


def sent_to(response: httpx2.Response) -> str:
    assert response.status_code == 303, response.text
    return str(response.headers["location"])


async def test_a_hint_signs_out_at_once_and_leads_back_with_the_state(
    browser_client: HttpBrowser, id_token: str
) -> None:
    response = await browser_client.get(path(id_token_hint=id_token, post_logout_redirect_uri=BYE, state="a b&c=ü"))
    assert sent_to(response) == f"{BYE}?state=a%20b%26c%3D%C3%BC"
    assert 'gh_session=""' in response.headers["set-cookie"]
    assert not await is_signed_in(browser_client)


async def test_a_registered_query_is_kept_and_no_state_adds_nothing(
    browser_client: HttpBrowser, id_token: str
) -> None:
    uri = "https://shop.example/bye?tenant=1"
    answer = await browser_client.get(path(id_token_hint=id_token, post_logout_redirect_uri=uri))
    assert sent_to(answer) == uri


async def test_an_expired_hint_is_one_still(
    service: RunningService, browser_client: HttpBrowser, id_token: str
) -> None:
    await service.clock.advance(2 * 86_400)
    assert sent_to(await browser_client.get(path(id_token_hint=id_token, post_logout_redirect_uri=BYE))) == BYE
    assert not await is_signed_in(browser_client)


async def test_logout_without_a_redirect_uri_shows_a_confirmation_page(
    browser_client: HttpBrowser, id_token: str
) -> None:
    page = await browser_client.get(path(id_token_hint=id_token))
    assert (page.status_code, "You're signed out" in page.text) == (200, True)
    assert not await is_signed_in(browser_client)


async def test_logout_by_post_works_like_logout_by_get(browser_client: HttpBrowser, id_token: str) -> None:
    fields = {"id_token_hint": id_token, "post_logout_redirect_uri": BYE, "state": "s", "client_id": "shelf"}
    response = await browser_client.client.post(LOGOUT, data=fields, headers={"Origin": "https://shop.example"})
    assert sent_to(await browser_client.get(sent_to(response))) == f"{BYE}?state=s"
    assert not await is_signed_in(browser_client)


@pytest.mark.parametrize(
    "uri",
    [
        *("https://shop.example/bye/", "https://shop.example/BYE", "https://shop.example/bye?x=1", f"{BYE}#x"),
        *("https://evil.example/bye", "https://shop.example@evil.example/bye", "//shop.example/bye", "/bye"),
        *("javascript:alert(1)", "https://shop.example/callback", " https://shop.example/bye"),
    ],
)
async def test_an_address_that_is_not_registered_exactly_is_not_followed(
    browser_client: HttpBrowser, id_token: str, uri: str
) -> None:
    for fields in ({"id_token_hint": id_token}, {"client_id": "shelf"}):
        response = await browser_client.get(path(post_logout_redirect_uri=uri, **fields))
        assert (response.status_code, "location" in response.headers) == (400, False)
        assert uri not in response.text
    assert await is_signed_in(browser_client)


@pytest.mark.parametrize("uri", [f"{BYE}?state=evil", f"{BYE}?a=1&St%61te"])
async def test_az_20_a_stored_address_with_a_state_of_its_own_is_not_followed(
    service: RunningService, browser_client: HttpBrowser, oidc_client: RelyingPartyClient, id_token: str, uri: str
) -> None:
    await service.services.storage.clients.change_client(
        replace(oidc_client.client, post_logout_uris=(uri,)), a_record()
    )
    response = await browser_client.get(path(id_token_hint=id_token, post_logout_redirect_uri=uri, state="s"))
    assert (response.status_code, "location" in response.headers) == (400, False)
    with pytest.raises(BadClient, match="te is reserved"):
        await an_oidc_client(service, "new", post_logout_uris=(uri,))


@pytest.mark.parametrize("change", ["cut", "foreign", "unsigned", "access"])
async def test_a_hint_that_is_no_id_token_of_ours_ends_nothing(
    browser_client: HttpBrowser, id_token: str, change: str
) -> None:
    header, payload, signature = id_token.split(".")
    hint = {
        "cut": id_token[:-2],
        "foreign": f"{header}.{payload}.{'A' * len(signature)}",
        "unsigned": f"eyJhbGciOiJub25lIn0.{payload}.",
        "access": "abc",
    }[change]
    response = await browser_client.get(path(id_token_hint=hint, post_logout_redirect_uri=BYE))
    assert (response.status_code, "location" in response.headers) == (400, False)
    assert await is_signed_in(browser_client)


async def test_a_hint_of_another_client_than_is_named_ends_nothing(
    service: RunningService, browser_client: HttpBrowser, id_token: str
) -> None:
    await an_oidc_client(service, "other", post_logout_uris=(BYE,))
    assert (await browser_client.get(path(id_token_hint=id_token, client_id="other"))).status_code == 400
    assert (await browser_client.get(path(client_id="no_one"))).status_code == 400
    assert await is_signed_in(browser_client)


@pytest.mark.usefixtures("id_token")
async def test_the_page_after_a_bad_request_signs_out_or_leads_home(
    browser_client: HttpBrowser, oidc_client: RelyingPartyClient
) -> None:
    bad = path(client_id=oidc_client.client.client_id, post_logout_redirect_uri="https://evil.example/")
    page = await browser_client.get(bad)
    assert page.status_code == 400
    assert "you're still signed in" in page.text
    assert "the post_logout_redirect_uri is not registered for this client" in page.text
    assert "https://evil.example" not in page.text
    stays = await browser_client.post(f"{LOGOUT}/confirm", decision="cancel")
    assert sent_to(stays) == "/"
    assert await is_signed_in(browser_client)
    await browser_client.get(bad)
    signed_out = await browser_client.post(f"{LOGOUT}/confirm", decision="confirm")
    assert (signed_out.status_code, "You're signed out" in signed_out.text) == (200, True)
    assert not await is_signed_in(browser_client)
    page = await browser_client.get(bad)
    assert page.status_code == 400
    assert '<a href="/sign-in" role="button">Sign in</a>' in page.text
    german = await browser_client.get(f"{bad}&lang=de")
    assert '<a href="/sign-in" role="button">Anmelden</a>' in german.text
    assert "Abmeldelink" in german.text


async def test_a_repeated_parameter_gets_the_same_page(browser_client: HttpBrowser) -> None:
    page = await browser_client.get(f"{LOGOUT}?state=a&state=b")
    assert page.status_code == 400
    assert "Something's wrong with this sign-out link" in page.text


@pytest.mark.usefixtures("id_token")
async def test_logout_without_a_hint_asks_first_and_then_redirects(browser_client: HttpBrowser) -> None:
    page = await browser_client.get(path(client_id="shelf", post_logout_redirect_uri=BYE, state="s"))
    assert page.status_code == 200
    assert "Web shop" in page.text
    assert "form-action 'self' https://shop.example;" in page.headers["content-security-policy"]
    assert await is_signed_in(browser_client)
    assert sent_to(await browser_client.post(f"{LOGOUT}/confirm", decision="confirm")) == f"{BYE}?state=s"
    assert not await is_signed_in(browser_client)


@pytest.mark.usefixtures("id_token")
async def test_canceled_logout_leaves_the_person_signed_in(browser_client: HttpBrowser) -> None:
    await browser_client.get(path(client_id="shelf", post_logout_redirect_uri=BYE))
    assert sent_to(await browser_client.post(f"{LOGOUT}/confirm", decision="cancel")) == "/"
    assert await is_signed_in(browser_client)


@pytest.mark.usefixtures("id_token")
async def test_redirect_uri_without_a_client_is_not_followed(browser_client: HttpBrowser) -> None:
    """oidcc-rp-initiated-logout-no-id-token-hint: confirmed, signed out, and not redirected."""
    page = await browser_client.get(path(post_logout_redirect_uri=BYE, state="s"))
    assert BYE not in page.text
    response = await browser_client.post(f"{LOGOUT}/confirm", decision="confirm")
    assert (response.status_code, "You're signed out" in response.text, BYE in response.text) == (200, True, False)
    assert not await is_signed_in(browser_client)


@pytest.mark.usefixtures("id_token")
async def test_logout_form_parameters_are_validated_again(browser_client: HttpBrowser) -> None:
    await browser_client.get(path(client_id="shelf", post_logout_redirect_uri=BYE))
    forged = {"decision": "confirm", "post_logout_redirect_uri": "https://evil.example/"}
    assert (await browser_client.post(f"{LOGOUT}/confirm", **forged)).status_code == 400
    assert await is_signed_in(browser_client)


@pytest.mark.usefixtures("id_token")
async def test_the_form_of_another_site_ends_nothing(browser_client: HttpBrowser) -> None:
    assert (await browser_client.client.post(f"{LOGOUT}/confirm", data={"decision": "confirm"})).status_code == 403
    assert await is_signed_in(browser_client)


async def test_a_hint_about_someone_else_asks_first(
    service: RunningService, browser_client: HttpBrowser, id_token: str
) -> None:
    await service.services.accounts.administration.create(
        login="bob@studio.example", nick="Bob", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    await browser_client.sign_in("bob@studio.example")
    page = await browser_client.get(path(id_token_hint=id_token, post_logout_redirect_uri=BYE))
    assert (page.status_code, "Bob" in page.text) == (200, True)
    assert await is_signed_in(browser_client)


async def test_logout_without_a_session_redirects_only_with_a_hint(
    service: RunningService, browser_client: HttpBrowser, id_token: str
) -> None:
    signed_out_browser = HttpBrowser(service)
    assert sent_to(await signed_out_browser.get(path(id_token_hint=id_token, post_logout_redirect_uri=BYE))) == BYE
    page = await signed_out_browser.get(path(client_id="shelf", post_logout_redirect_uri=BYE))
    assert (page.status_code, f'href="{BYE}"' in page.text) == (200, True)
    assert (await signed_out_browser.get(LOGOUT)).status_code == 200
    assert await is_signed_in(browser_client)
    await signed_out_browser.client.aclose()


async def test_head_and_repeated_parameters_end_nothing(browser_client: HttpBrowser, id_token: str) -> None:
    assert (await browser_client.client.head(path(id_token_hint=id_token))).status_code == 200
    assert (await browser_client.get(f"{path(id_token_hint=id_token)}&id_token_hint=x")).status_code == 400
    assert await is_signed_in(browser_client)


@pytest.mark.parametrize(
    "headers", [{"Sec-Purpose": "prefetch;prerender"}, {"Purpose": "prefetch"}], ids=["new", "old"]
)
async def test_a_browser_that_reads_ahead_signs_no_one_out(
    browser_client: HttpBrowser, id_token: str, headers: dict[str, str]
) -> None:
    ahead = await browser_client.client.get(
        path(id_token_hint=id_token, post_logout_redirect_uri=BYE), headers=headers
    )
    assert (ahead.status_code, "location" in ahead.headers, "set-cookie" in ahead.headers) == (503, False, False)
    assert await is_signed_in(browser_client)


async def test_signing_out_ends_what_came_of_the_session_but_not_offline_access(
    oidc_client: RelyingPartyClient, browser_client: HttpBrowser, anna: User
) -> None:
    online = await oidc_client.tokens(
        oidc_client.code_from(await oidc_client.walk_authorize(browser_client, anna.login or "", scope="openid"))
    )
    offline = await oidc_client.tokens(
        oidc_client.code_from(await oidc_client.walk_authorize(browser_client, anna.login or ""))
    )
    assert (
        sent_to(await browser_client.get(path(id_token_hint=online["id_token"], post_logout_redirect_uri=BYE))) == BYE
    )
    assert (await oidc_client.userinfo(online["access_token"])).status_code == 401
    assert (await oidc_client.userinfo(offline["access_token"])).status_code == 200
    assert (await oidc_client.refresh(offline["refresh_token"])).status_code == 200
