"""Allowed and refused redirect URIs (checklist section 1, R3)."""

import re
from html import unescape

import pytest

from gatehouse.accounts.model import User
from gatehouse.oauth.clients import check_client
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import Client, ClientProfile
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import a_record
from tests.support.oauth import RelyingPartyClient, a_native_client, a_public_client, an_oidc_client, challenge_of
from tests.support.service import RunningService
from tests.wire.oauth.authorize_responses import count_grants, is_error_page, redirect_error, redirect_parameters

HOST = "https://good.example/cb"
PKCE = {"code_challenge": challenge_of("v" * 43), "code_challenge_method": "S256"}


@pytest.fixture
async def host_client(service: RunningService) -> RelyingPartyClient:
    """A client in host mode."""
    return await a_native_client(service, "good", redirect_hosts=("good.example",))


@pytest.fixture
async def exact_client(service: RunningService) -> RelyingPartyClient:
    return await an_oidc_client(service, "exact", redirect_uris=(HOST,))


async def expect_refusal(browser_client: HttpBrowser, *clients: RelyingPartyClient, uris: tuple[str, ...]) -> None:
    for client in clients:
        for uri in uris:
            response = await browser_client.get(client.authorize_path(redirect_uri=uri))
            assert is_error_page(response), (client.client.client_id, uri, response.status_code)
            assert not any("\r" in value or "\n" in value for value in response.headers.values())
    assert await count_grants(clients[0].service) == 0


async def expect_accepted(browser_client: HttpBrowser, client: RelyingPartyClient, *uris: str, **more: str) -> None:
    for uri in uris:
        parameters = redirect_parameters(
            await browser_client.get(client.authorize_path(redirect_uri=uri, **more)), uri
        )
        assert "code" in parameters, uri


async def test_host_mode_accepts_any_path_and_query_of_the_host(
    signed_in_browser: HttpBrowser, host_client: RelyingPartyClient
) -> None:
    await expect_accepted(
        signed_in_browser,
        host_client,
        HOST,
        "https://good.example",
        "https://good.example/",
        "https://good.example/a/b",
    )
    parameters = redirect_parameters(
        await signed_in_browser.get(host_client.authorize_path(redirect_uri=f"{HOST}?a=1&b=%20")),
        f"{HOST}?a=1&b=%20&",
    )
    assert parameters.keys() >= {"a", "b", "code", "state", "iss"}


async def test_az_12_user_info_is_refused(
    signed_in_browser: HttpBrowser, host_client: RelyingPartyClient, exact_client: RelyingPartyClient
) -> None:
    uris = (
        "https://good.example@evil.example/cb",
        "https://u:p@good.example/cb",
        "https://a@b@good.example/cb",
        "https://good.example:443@evil.example/",
        "https://good.example%40evil.example/cb",
        "https://evil.example\\@good.example/cb",
    )
    await expect_refusal(signed_in_browser, host_client, exact_client, uris=uris)


async def test_az_14_a_host_that_only_resembles_the_registered_one_is_refused(
    signed_in_browser: HttpBrowser, host_client: RelyingPartyClient, exact_client: RelyingPartyClient
) -> None:
    names = (
        *("good.example.evil.example", "evilgood.example", "sub.good.example", "good.example.", "goodXexample"),
        *(
            "GOOD.example",
            "good.exampl\u0435",
            "go\u03bfd.example",
            "good%2eexample",
            "good.example%00.evil.example",
            "",
        ),
        *("good.example,evil.example", "good.example\u3002evil.example", "[good.example]", "good..example", ""),
    )
    await expect_refusal(
        signed_in_browser,
        host_client,
        exact_client,
        uris=tuple(f"https://{name}/cb" for name in names if "\0" not in name),
    )


async def test_az_15_other_schemes_and_ports_are_refused(
    service: RunningService,
    signed_in_browser: HttpBrowser,
    host_client: RelyingPartyClient,
    exact_client: RelyingPartyClient,
) -> None:
    uris = (
        "http://good.example/cb",
        "HTTPS://good.example/cb",
        *(f"https://good.example:{port}/cb" for port in ("8443", "443", "0443", "", "99999", "-1", "4 43", "٤٤٣")),
        *("http://localhost/cb", "http://localhost:3000/cb", "http://127.0.0.1:3000/cb", "http://[::1]:3000/cb"),
    )
    await expect_refusal(signed_in_browser, host_client, exact_client, uris=uris)
    ported = await a_native_client(service, "ported", redirect_hosts=("good.example:8443", "other.example:443"))
    await expect_refusal(
        signed_in_browser, ported, uris=(HOST, "https://good.example:8444/cb", "http://good.example:8443/cb")
    )
    await expect_accepted(
        signed_in_browser,
        ported,
        "https://good.example:8443/cb",
        "https://other.example/",
        "https://other.example:443/",
    )


async def test_az_15_a_loopback_host_will_do_on_any_port_when_it_is_registered(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    local = await a_native_client(service, "local", redirect_hosts=("localhost", "[::1]", "127.0.0.1:3000"))
    await expect_accepted(
        signed_in_browser, local, "http://localhost/cb", "http://localhost:3000/cb", "https://localhost:8443/cb"
    )
    await expect_accepted(signed_in_browser, local, "http://[::1]:3000/cb", "http://127.0.0.1:3000/cb")
    uris = ("http://127.0.0.1:3001/cb", "http://127.1:3000/cb", "http://localhost.evil.example/", "http://[::2]/")
    for uri in uris:
        assert is_error_page(await signed_in_browser.get(local.authorize_path(redirect_uri=uri))), uri


async def test_a_public_clients_loopback_uri_matches_on_any_port(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    uris = ("http://127.0.0.1/cb", "http://localhost:1/x?a=1", HOST, "com.example.app:/cb")
    app = await a_public_client(service, "tool", redirect_uris=uris)
    await expect_accepted(
        signed_in_browser, app, *uris, "http://127.0.0.1:49152/cb", "http://localhost/x?a=1", **PKCE
    )
    for uri in (
        *(
            "http://127.0.0.1:49152/cb/",
            "http://127.0.0.1:0/cb",
            "http://127.0.0.1:65536/cb",
            "http://127.0.0.2:1/cb",
        ),
        *("https://127.0.0.1:1/cb", "http://localhost:2/x?a=2", "https://good.example:1/cb", "com.example.app://cb"),
    ):
        assert is_error_page(await signed_in_browser.get(app.authorize_path(redirect_uri=uri, **PKCE))), uri
    secret = await an_oidc_client(service, "secret", redirect_uris=("http://127.0.0.1/cb",))
    assert is_error_page(await signed_in_browser.get(secret.authorize_path(redirect_uri="http://127.0.0.1:49152/cb")))


async def test_az_16_white_space_and_line_ends_reach_no_header(
    signed_in_browser: HttpBrowser, host_client: RelyingPartyClient, exact_client: RelyingPartyClient
) -> None:
    marks = (
        " ",
        "\t",
        "\n",
        "\r",
        "\r\n",
        "%0a",
        "%0d%0a",
        "%09",
        "%20",
        "\u00a0",
        "\u200b",
        "\ufeff",
        "\x0b",
        "\x7f",
    )
    uris = tuple(
        uri
        for mark in marks
        for uri in (f"{mark}{HOST}", f"ht{mark}tps://good.example/cb", f"https://go{mark}od.example/cb")
    )
    await expect_refusal(signed_in_browser, host_client, exact_client, uris=uris)
    await expect_refusal(
        signed_in_browser,
        host_client,
        exact_client,
        uris=tuple(f"{HOST}{mark}" for mark in marks if not mark.startswith("%")),
    )
    for uri in ("\0https://good.example/cb", "https://good.example\0/cb"):
        response = await signed_in_browser.get(host_client.authorize_path(redirect_uri=uri))
        assert (response.status_code, "location" in response.headers) == (400, False)


async def test_az_17_dangerous_and_relative_schemes_are_refused(
    signed_in_browser: HttpBrowser, host_client: RelyingPartyClient, exact_client: RelyingPartyClient
) -> None:
    uris = (
        *("javascript://good.example/%0aalert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "file:///etc/passwd"),
        *("vbscript:x", "intent://good.example/#Intent;end", "//good.example/cb", "/cb", "cb", "good.example/cb"),
        *(
            "https:good.example/cb",
            "https:/good.example/cb",
            "https:///good.example/cb",
            "https:\\\\good.example\\cb",
        ),
        *("com.example.app:/cb", "ftp://good.example/", "about:blank", "blob:https://good.example/x"),
    )
    await expect_refusal(signed_in_browser, host_client, exact_client, uris=uris)


async def test_az_17_a_scheme_without_a_dot_is_one_exact_uri_and_no_system_scheme(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    uri = "oc://ios.cloud.example/callback"
    app = await a_public_client(service, "files", redirect_uris=(uri, HOST))
    await expect_accepted(signed_in_browser, app, uri, **PKCE)
    for other in (
        *(
            "oc://ios.cloud.example",
            "oc:/callback",
            f"{uri}/",
            f"{uri}?a=1",
            f"{uri}#x",
            "OC://ios.cloud.example/callback",
        ),
        *("oc://android.cloud.example/callback", "ocx://ios.cloud.example/callback", f" {uri}"),
    ):
        assert is_error_page(await signed_in_browser.get(app.authorize_path(redirect_uri=other, **PKCE))), other
    form = app.authorize_path(redirect_uri=uri, response_mode="form_post", **PKCE)
    assert redirect_error(await signed_in_browser.get(form), uri) == "invalid_request"
    for wrong in (
        *("javascript:/alert(1)", "data:/text/html,x", "file:///etc/passwd", "intent://shop.example/x", "c:/windows"),
        *("ms-msdt:/id", "ms-word:/ofe", "search-ms:/query=x", "vbscript:/x", "http:/x"),
        *("oc:x", "oc:", f"{uri}?code=1", "ws://shop.example/", "blob:/x", "view-source:/x", "Oc://x"),
    ):
        with pytest.raises(BadClient):
            await an_oidc_client(service, "wrong", redirect_uris=(wrong,))
    for fields in (
        {"redirect_uris": (uri, "other://callback")},
        {"redirect_uris": (HOST,), "post_logout_uris": (uri,)},
    ):
        with pytest.raises(BadClient):
            await an_oidc_client(service, "wrong", **fields)
    with pytest.raises(BadClient, match="needs profile oidc"):
        await a_native_client(service, "wrong", redirect_uris=(uri,))


async def test_az_36_a_scheme_without_a_dot_asks_for_consent_each_time(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    uri = "oc://ios.cloud.example"
    app = await a_public_client(service, "files", redirect_uris=(uri,), first_party=False)
    for _ in range(2):
        await signed_in_browser.get(app.authorize_path(redirect_uri=uri, **PKCE))
        page = await signed_in_browser.follow()
        assert "form-action 'self' oc:" in page.headers["content-security-policy"]
        answer = await signed_in_browser.post("/sign-in/consent", decision="allow")
        assert "code" in redirect_parameters(answer, uri)
    silent = app.authorize_path(redirect_uri=uri, prompt="none", **PKCE)
    assert redirect_error(await signed_in_browser.get(silent), uri) == "interaction_required"


async def test_az_18_a_fragment_is_refused(
    service: RunningService,
    signed_in_browser: HttpBrowser,
    host_client: RelyingPartyClient,
    exact_client: RelyingPartyClient,
) -> None:
    await expect_refusal(signed_in_browser, host_client, exact_client, uris=(f"{HOST}#x", f"{HOST}#", f"{HOST}?a#b"))
    await expect_refusal(signed_in_browser, exact_client, uris=(f"{HOST}%23x",))
    so = await an_oidc_client(service, "so", redirect_uris=(f"{HOST}%23x",))
    await expect_accepted(signed_in_browser, so, f"{HOST}%23x")


async def test_az_19_an_exact_uri_has_one_spelling(
    service: RunningService, signed_in_browser: HttpBrowser, exact_client: RelyingPartyClient
) -> None:
    ways = ("/../x", "/..;/x", "%2f..%2fx", "/%252e%252e/", "/", "?", "?a=1", ";a", "%00", "//", "/.")
    uris = (*(f"{HOST}{way}" for way in ways), "https://good.example/CB", "https://good.example/%63b", HOST[:-1])
    await expect_refusal(signed_in_browser, exact_client, uris=uris)
    both = await a_native_client(service, "both", redirect_hosts=("good.example",), redirect_uris=(HOST,))
    await expect_refusal(
        signed_in_browser, both, uris=("https://good.example/other",)
    )  # if exact ones are registered, only they match
    await expect_accepted(signed_in_browser, exact_client, HOST)
    await expect_accepted(signed_in_browser, both, HOST)


async def test_az_21_a_registered_query_is_kept_and_must_be_the_registered_one(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    uri = f"{HOST}?tenant=1&x=2"
    client = await an_oidc_client(service, "tenant", redirect_uris=(uri,))
    await expect_refusal(
        signed_in_browser, client, uris=(f"{uri}&y=1", f"{HOST}?x=2&tenant=1", HOST, f"{HOST}?tenant=1")
    )
    parameters = redirect_parameters(
        await signed_in_browser.get(client.authorize_path(redirect_uri=uri)), f"{uri}&code="
    )
    assert (parameters["tenant"], parameters["x"]) == ("1", "2")
    assert redirect_error(
        await signed_in_browser.get(client.authorize_path(redirect_uri=uri, scope="email")), f"{uri}&error="
    )


RESERVED = (
    *("code", "state", "iss", "error", "error_description", "error_uri", "id_token", "access_token"),
    *("token_type", "expires_in", "session_state", "response"),
)
SPELLINGS = (
    *(f"{name}=evil" for name in RESERVED),
    *("c%6Fde=evil", "%63%6f%64%65=evil", "CODE=evil", "Id_Token=evil", "%C5%BFtate=evil", "%C4%B1ss=evil"),
    *("code", "code=", "a=1&code=evil", "a=1;code=evil", ";code=evil", "&&code=evil", "a&iss=https://evil.example"),
    *(
        "+code=evil",
        "code+=evil",
        "%20code=evil",
        "code%5B%5D=evil",
        "code%5B0%5D=evil",
        "id.token=x",
        "id%5Btoken=x",
    ),
    *("c%6=evil", "co%de=evil", "%=1", "code%00=evil", "co%FFde=evil", "%C1%A3ode=evil", "code%0A=evil"),
)
HARMLESS = (
    "?a=code",
    "?code_of_conduct=1",
    "?a=%26code",
    "?estate=1",
    "?errors=1",
    "?codes=1;b=2",
    "?=1",
    "?",
    "/code",
)


async def test_az_20_reserved_names_in_a_query_match_no_host(
    signed_in_browser: HttpBrowser, host_client: RelyingPartyClient
) -> None:
    await expect_refusal(signed_in_browser, host_client, uris=tuple(f"{HOST}?{query}" for query in SPELLINGS))
    await expect_accepted(signed_in_browser, host_client, *(f"{HOST}{query}" for query in HARMLESS))


async def test_az_20_a_stored_uri_with_a_reserved_name_matches_no_more(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    """As registrations were stored before such names were refused."""
    uris = (*(f"{HOST}?{query}" for query in SPELLINGS), "com.example.app:/cb?code=evil", HOST)
    stored = Client(
        client_id="old",
        name="Old",
        profile=ClientProfile.OIDC,
        redirect_uris=uris,
        first_party=True,
        public=True,
        created_at=0,
    )
    await service.services.storage.clients.create_client(stored, a_record())
    client = RelyingPartyClient(service=service, client=stored, secret="")
    for uri in uris[:-1]:
        assert is_error_page(await signed_in_browser.get(client.authorize_path(redirect_uri=uri, **PKCE))), uri
    await expect_accepted(signed_in_browser, client, HOST, **PKCE)


@pytest.mark.parametrize("query", SPELLINGS)
def test_az_20_reserved_names_are_registered_by_no_one(query: str) -> None:
    """The check of every registration: API, console, apply and command line each have a test."""
    client = Client(client_id="web", name="Web", redirect_uris=(HOST, f"{HOST}?{query}"), created_at=0)
    with pytest.raises(BadClient, match=r"the query parameter .* is reserved") as error:
        check_client(client)
    assert error.value.field == "redirect_uris[1]"


@pytest.mark.parametrize("query", HARMLESS)
def test_az_20_other_queries_are_registered(query: str) -> None:
    check_client(Client(client_id="web", name="Web", redirect_uris=(f"{HOST}{query}",), created_at=0))


async def test_az_20_a_developer_is_shown_the_reserved_name(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    debug = await a_native_client(service, "debug", redirect_hosts=("good.example",), explain_errors=True)
    page = await browser_client.get(debug.authorize_path(redirect_uri=f"{HOST}?a=1&C%6FDE=evil"))
    assert "reserved parameter C%6FDE in the query of redirect_uri" in visible_text(page.text)


async def test_a_code_never_ends_up_in_the_path(
    signed_in_browser: HttpBrowser, host_client: RelyingPartyClient
) -> None:
    uri = "https://good.example/news&"
    assert "code" in redirect_parameters(
        await signed_in_browser.get(host_client.authorize_path(redirect_uri=uri)), f"{uri}?code="
    )


def visible_text(text: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", text))


async def test_a_developer_is_shown_what_was_received_beside_what_is_registered(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    wrong = f"{HOST}/<i>"
    quiet = await an_oidc_client(service, "quiet", redirect_uris=(HOST,))
    debug = await an_oidc_client(service, "debug", redirect_uris=(HOST,), explain_errors=True)
    page = await browser_client.get(debug.authorize_path(redirect_uri=wrong))
    assert f"<code>{HOST}<mark>/&lt;i&gt;</mark></code>" in page.text
    assert "redirect_uri is not registered for this client" in visible_text(page.text)
    for someone in ("a stranger", "Anna"):
        if someone == "Anna":
            await browser_client.sign_in(anna.login or "")
        hidden = await browser_client.get(quiet.authorize_path(redirect_uri=wrong))
        assert is_error_page(hidden)
        assert HOST not in visible_text(hidden.text), someone
        assert hidden.headers["x-request-id"] in hidden.text
    root = await service.services.accounts.administration.new_user(
        login="root@studio.example", nick="Root", password=PASSWORD
    )
    await service.services.storage.accounts.create_user(root, a_record(), administrator=True)
    await browser_client.sign_in("root@studio.example")
    assert HOST in visible_text((await browser_client.get(quiet.authorize_path(redirect_uri=wrong))).text)
    assert "the client is unknown" in (await browser_client.get(quiet.authorize_path(client_id="no_one"))).text
