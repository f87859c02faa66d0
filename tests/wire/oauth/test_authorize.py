"""The authorization endpoint: parameters, sessions, prompts (checklist section 1, R3)."""

import asyncio
import json
from functools import partial
from urllib.parse import parse_qsl, quote, urlencode

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.web.pages.sign_in_flow import pack_request
from tests.support.browser import PASSWORD, AccountBrowser, HttpBrowser, hidden_fields, totp_code
from tests.support.cpu_time import await_within_cpu_seconds
from tests.support.oauth import (
    AUTHORIZE,
    REDIRECT,
    RelyingPartyClient,
    a_native_client,
    an_oidc_client,
    challenge_of,
    query_of,
)
from tests.support.permission_builders import set_fields, set_project_fields
from tests.support.raw_http import send_request
from tests.support.service import RunningService
from tests.support.studio import PROJECT, a_studio
from tests.wire.oauth.authorize_responses import (
    CODE,
    LOGIN,
    count_grants,
    count_sign_in_flows,
    grant_of,
    is_error_page,
    issue_id_token,
    redirect_error,
    redirect_parameters,
    wants_sign_in,
)

LATER = 601  # seconds after which an unfinished sign-in has expired


@pytest.mark.usefixtures("anna")
async def test_az_01_a_complete_request_ends_at_exactly_the_redirect_uri_with_code_state_and_iss(
    service: RunningService, browser_client: HttpBrowser, web: RelyingPartyClient
) -> None:
    state = "S" * 64
    await browser_client.get(web.authorize_path(state=state))
    await browser_client.follow()
    assert browser_client.page is not None
    assert "Web shop" in browser_client.page.text
    assert "shop.example" in browser_client.page.text
    response = await browser_client.post("/sign-in", login=LOGIN, password=PASSWORD)
    parameters = redirect_parameters(response)
    assert response.headers["location"].partition("?")[0] == REDIRECT
    assert parameters.keys() == {"code", "state", "iss"}
    assert (parameters["state"], parameters["iss"]) == (state, service.base_url)
    assert CODE.fullmatch(parameters["code"])
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["referrer-policy"] == "no-referrer"
    grant = await grant_of(service, parameters["code"])
    assert (grant.client_id, grant.redirect_uri, grant.nonce) == ("web", REDIRECT, "n1")
    assert grant.scopes == ("openid", "offline_access", "email", "profile", "trust")


async def test_someone_signed_in_goes_straight_back_with_a_code_of_their_session(
    service: RunningService, signed_in_browser: HttpBrowser, anna: User, web: RelyingPartyClient
) -> None:
    proved_at = service.clock.now()
    await service.clock.advance(30)
    parameters = redirect_parameters(await signed_in_browser.get(web.authorize_path(state="")))
    assert "state" not in parameters
    grant = await grant_of(service, parameters["code"])
    session = (await service.services.storage.sessions.sessions_of_user(anna.user_id, service.clock.now()))[0]
    assert (grant.user_id, grant.session_id, grant.auth) == (anna.user_id, session.session_id, "login")
    assert (grant.auth_time, grant.created_at) == (proved_at, proved_at + 30)
    assert grant.code_ends_at == service.clock.now() + 60
    assert await count_sign_in_flows(service) == 0


async def test_grant_without_offline_access_ends_with_its_access_token(
    service: RunningService, signed_in_browser: HttpBrowser, web: RelyingPartyClient
) -> None:
    parameters = redirect_parameters(await signed_in_browser.get(web.authorize_path(scope="openid")))
    assert (await grant_of(service, parameters["code"])).ends_at == service.clock.now() + 60 + 3_600


@pytest.mark.usefixtures("anna")
async def test_the_code_of_a_walk_through_the_pages_is_good_at_the_token_endpoint(web: RelyingPartyClient) -> None:
    assert (await web.tokens(await web.sign_in(LOGIN)))["token_type"] == "Bearer"


@pytest.mark.usefixtures("anna")
async def test_the_way_leads_through_the_second_factor_and_tells_so(
    service: RunningService, web: RelyingPartyClient
) -> None:
    account_browser = AccountBrowser(service)
    await account_browser.sign_in_and_open_account()
    secret, _ = await account_browser.set_up_totp(service)
    await service.clock.advance(60)
    await account_browser.get(web.authorize_path(prompt="login"))
    await account_browser.follow()
    response = await account_browser.post("/sign-in", login=LOGIN, password=PASSWORD)
    assert response.headers["location"].startswith("/sign-in/factor?")
    page = await account_browser.follow()
    assert "form-action 'self' https://shop.example;" in page.headers["content-security-policy"]
    assert await count_grants(service) == 0
    parameters = redirect_parameters(await account_browser.post("/sign-in/factor", otp=totp_code(secret, service)))
    grant = await grant_of(service, parameters["code"])
    assert (grant.auth, grant.auth_time) == ("2step", service.clock.now())
    await account_browser.client.aclose()


async def test_az_02_a_client_that_is_not_there_gets_a_page_and_no_redirect(
    service: RunningService, signed_in_browser: HttpBrowser, web: RelyingPartyClient
) -> None:
    for client_id in ("", "unknown", "WEB", "web ", "x" * 5_000, "' OR 1=1--", "weβ"):
        assert is_error_page(await signed_in_browser.get(web.authorize_path(client_id=client_id))), client_id
    for client_id in ("x" * 10_240, "web\0"):
        response = await signed_in_browser.get(web.authorize_path(client_id=client_id))
        assert response.status_code in (400, 414)
        assert "location" not in response.headers
    assert await count_grants(service) == 0


async def test_az_03_a_foreign_redirect_uri_is_never_used_whatever_else_is_wrong(
    signed_in_browser: HttpBrowser, web: RelyingPartyClient
) -> None:
    foreign = "https://evil.example/cb"
    for more in ({}, {"response_type": "token", "scope": "bad"}, {"request": "x.y.z"}, {"prompt": "none"}):
        response = await signed_in_browser.get(web.authorize_path(redirect_uri=foreign, **more))
        assert is_error_page(response)
        assert "//evil.example" not in response.text


async def test_az_04_without_redirect_uri_there_is_a_page(
    signed_in_browser: HttpBrowser, web: RelyingPartyClient, oidc_client: RelyingPartyClient
) -> None:
    for client in (web, oidc_client):
        assert is_error_page(await signed_in_browser.get(client.authorize_path(redirect_uri="")))
        assert is_error_page(await signed_in_browser.get(client.authorize_path(redirect_uri="") + "&redirect_uri="))


async def test_az_05_any_response_type_but_code_is_refused(
    signed_in_browser: HttpBrowser, web: RelyingPartyClient, oidc_client: RelyingPartyClient
) -> None:
    for client in (web, oidc_client):
        assert (
            redirect_error(await signed_in_browser.get(client.authorize_path(response_type=""))) == "invalid_request"
        )
        for response_type in ("token", "id_token", "code token", "CODE", "none", "code "):
            answer = await signed_in_browser.get(client.authorize_path(response_type=response_type))
            assert redirect_error(answer) == "unsupported_response_type", response_type


async def test_az_06_any_response_mode_but_query_and_form_post_is_refused_and_native_has_query_only(
    signed_in_browser: HttpBrowser, web: RelyingPartyClient, oidc_client: RelyingPartyClient
) -> None:
    unknown = ("fragment", "web_message", "query.jwt", "form_post.jwt", "QUERY", "FORM_POST")
    for client, modes in ((web, (*unknown, "form_post")), (oidc_client, unknown)):
        for response_mode in modes:
            response = await signed_in_browser.get(client.authorize_path(response_mode=response_mode))
            assert redirect_error(response) == "invalid_request", response_mode
            assert not response.text
    assert redirect_error(await signed_in_browser.get(web.authorize_path(response_mode=""))) == "invalid_request"
    assert "code" in redirect_parameters(await signed_in_browser.get(oidc_client.authorize_path(response_mode="")))


async def test_az_07_openid_is_needed_and_unknown_scopes_are_never_granted(
    service: RunningService, signed_in_browser: HttpBrowser, web: RelyingPartyClient
) -> None:
    for scope in ("", "email profile", "OPENID", "openid2", 'openid "email"', "openid\temail", "openid\r\nX: y"):
        response = await signed_in_browser.get(web.authorize_path(scope=scope))
        assert redirect_error(response) == "invalid_scope", scope
        assert "x" not in response.headers
    parameters = redirect_parameters(
        await signed_in_browser.get(web.authorize_path(scope="profile unknown openid profile  admin"))
    )
    assert (await grant_of(service, parameters["code"])).scopes == ("openid", "profile")


async def test_a_client_gets_no_scope_that_it_may_not_have(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    plain = await a_native_client(service, "plain", scopes=("openid", "email"))
    parameters = redirect_parameters(await signed_in_browser.get(plain.authorize_path()))
    assert (await grant_of(service, parameters["code"])).scopes == ("openid", "email")


async def test_az_08_a_nonce_is_needed_and_never_cut(
    service: RunningService, signed_in_browser: HttpBrowser, web: RelyingPartyClient, oidc_client: RelyingPartyClient
) -> None:
    assert redirect_error(await signed_in_browser.get(web.authorize_path(nonce=""))) == "invalid_request"
    for nonce in ("n" * 384, "ñ🙂", "n" * 2_048):
        parameters = redirect_parameters(await signed_in_browser.get(web.authorize_path(nonce=nonce)))
        assert (await grant_of(service, parameters["code"])).nonce == nonce
    assert redirect_error(await signed_in_browser.get(web.authorize_path(nonce="n" * 2_049))) == "invalid_request"
    parameters = redirect_parameters(await signed_in_browser.get(oidc_client.authorize_path(nonce="")))
    assert (await grant_of(service, parameters["code"])).nonce is None


async def test_az_09_state_comes_back_equal_and_never_raw_in_a_page(
    browser_client: HttpBrowser, anna: User, web: RelyingPartyClient
) -> None:
    state = ("&=+%#\"<>'/?\\;,🙂 ünï\r\n" * 100)[:1_990] + "<script>"
    response = await browser_client.get(web.authorize_path(state=state))
    page = await browser_client.follow()
    assert "<script>" not in page.text.replace("<script src", "")
    back = await browser_client.post("/sign-in", login=anna.login or "", password=PASSWORD)
    assert redirect_parameters(back)["state"] == state
    assert back.headers["location"].isascii()
    assert "\r" not in response.headers["location"]
    refusal = await browser_client.get(web.authorize_path(state=state, scope="email"))
    assert redirect_parameters(refusal)["state"] == state
    assert (await browser_client.get(f"{web.authorize_path(state='')}&state=%00")).status_code == 400


async def test_az_10_a_parameter_given_twice_is_refused(
    signed_in_browser: HttpBrowser, web: RelyingPartyClient
) -> None:
    once = web.authorize_path()
    for name in ("client_id", "redirect_uri"):
        assert is_error_page(await signed_in_browser.get(f"{once}&{name}={quote(web.authorize_fields()[name])}"))
    for name in ("state", "scope", "nonce", "response_type", "prompt=x&prompt"):
        answer = await signed_in_browser.get(f"{once}&{name}=openid")
        assert redirect_error(answer) == "invalid_request", name
        assert ("state" in redirect_parameters(answer)) == (name != "state")
    response = await signed_in_browser.client.post(once, data={"state": "other"})
    assert redirect_error(await signed_in_browser.get(response.headers["location"])) == "invalid_request"


async def test_az_22_oversized_requests_are_refused_quickly_and_others_do_not_notice(
    service: RunningService, signed_in_browser: HttpBrowser, web: RelyingPartyClient
) -> None:
    await signed_in_browser.get(web.authorize_path())
    oversized = [
        web.authorize_path(redirect_uri=f"{REDIRECT}/{'x' * 100_000}"),
        web.authorize_path(scope="openid " + "s " * 20_000),
        web.authorize_path() + "".join(f"&p{number}=x" for number in range(5_000)),
        web.authorize_path(state="s" * 65_536),
    ]
    port = int(service.base_url.rpartition(":")[2])
    for path in oversized:
        request = f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        response = await await_within_cpu_seconds(0.1, partial(send_request, port, request))
        assert response.status in (400, 414), response.status
    body = urlencode({**web.authorize_fields(), "scope": "openid " + "s " * 20_000})
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await signed_in_browser.client.post(AUTHORIZE, content=body, headers=form)).status_code == 414
    assert "code" in redirect_parameters(await signed_in_browser.get(web.authorize_path()))
    assert await count_grants(service) == 2


async def test_az_23_pkce_is_s256_or_an_error(
    service: RunningService,
    signed_in_browser: HttpBrowser,
    web: RelyingPartyClient,
    oidc_client: RelyingPartyClient,
    app: RelyingPartyClient,
) -> None:
    good = challenge_of("v" * 43)
    for client in (web, oidc_client, app):
        path = client.authorize_path(code_challenge=good, code_challenge_method="S256")
        parameters = redirect_parameters(await signed_in_browser.get(path))
        assert (await grant_of(service, parameters["code"])).code_challenge == good
        for changes in (
            {"code_challenge": good, "code_challenge_method": "plain"},
            {"code_challenge": good},
            {"code_challenge_method": "S256"},
            {"code_challenge": good[:42], "code_challenge_method": "S256"},
            {"code_challenge": "c" * 129, "code_challenge_method": "S256"},
            {"code_challenge": good[:42] + "+", "code_challenge_method": "S256"},
        ):
            answer = await signed_in_browser.get(client.authorize_path(**changes))
            assert redirect_error(answer) == "invalid_request", changes
    assert redirect_error(await signed_in_browser.get(app.authorize_path())) == "invalid_request"
    strict = await an_oidc_client(service, "strict", require_pkce=True)
    assert redirect_error(await signed_in_browser.get(strict.authorize_path())) == "invalid_request"


async def test_az_24_optional_and_unknown_parameters_do_not_get_in_the_way(
    service: RunningService, signed_in_browser: HttpBrowser, web: RelyingPartyClient, oidc_client: RelyingPartyClient
) -> None:
    optional = {
        "extra": "foobar",
        "display": "popup",
        "ui_locales": "se",
        "claims_locales": "se",
        "acr_values": "1",
        "login_hint": "someone@else.example",
        "claims": json.dumps(
            {
                "id_token": {"auth_time": {"essential": True}, "email": None},
                "userinfo": {"nickname": {"essential": True}, "birthdate": None},
                "more": 1,
            }
        ),
        "scope": "trust profile email offline_access openid",
    }
    for client in (web, oidc_client):
        parameters = redirect_parameters(await signed_in_browser.get(client.authorize_path(**optional)))
        grant = await grant_of(service, parameters["code"])
        places = ("id_token.email", "userinfo.nickname")
        assert grant.wanted_claims == (("auth_time", "email", "nickname") if client is web else places)
        for claims in ("{", "[]", '{"userinfo":1}', "[" * 2_000):
            assert (
                redirect_error(await signed_in_browser.get(client.authorize_path(claims=claims))) == "invalid_request"
            ), claims


@pytest.mark.usefixtures("anna")
async def test_login_hint_is_typed_in_already_and_ui_locales_chooses_the_language(
    browser_client: HttpBrowser, web: RelyingPartyClient
) -> None:
    await browser_client.get(web.authorize_path(login_hint=f'{LOGIN}"><b>', ui_locales="xx de-CH en"))
    page = await browser_client.follow()
    assert f'value="{LOGIN}&#34;&gt;&lt;b&gt;"' in page.text
    assert page.headers["content-language"] == "de"
    assert "Anmelden" in page.text


async def test_az_25_prompt_none_answers_without_asking_anybody(
    service: RunningService, browser_client: HttpBrowser, anna: User, web: RelyingPartyClient
) -> None:
    assert redirect_error(await browser_client.get(web.authorize_path(prompt="none"))) == "login_required"
    await browser_client.sign_in(anna.login or "")
    assert "code" in redirect_parameters(await browser_client.get(web.authorize_path(prompt="none")))
    other = await an_oidc_client(service, "other", first_party=False)
    assert redirect_error(await browser_client.get(other.authorize_path(prompt="none"))) == "interaction_required"
    for prompt in ("none login", "none consent", "select_account none"):
        assert redirect_error(await browser_client.get(web.authorize_path(prompt=prompt))) == "invalid_request"
    assert await count_sign_in_flows(service) == 0


async def test_az_25_prompt_login_asks_again_and_auth_time_moves_on(
    service: RunningService, signed_in_browser: HttpBrowser, web: RelyingPartyClient
) -> None:
    await service.clock.advance(100)
    assert wants_sign_in(await signed_in_browser.get(web.authorize_path(prompt="login")))
    await signed_in_browser.follow()
    parameters = redirect_parameters(await signed_in_browser.post("/sign-in", login=LOGIN, password=PASSWORD))
    assert (await grant_of(service, parameters["code"])).auth_time == service.clock.now()


async def test_az_25_a_session_that_is_too_old_for_max_age_does_not_do(
    service: RunningService, signed_in_browser: HttpBrowser, web: RelyingPartyClient
) -> None:
    proved_at = service.clock.now()
    await service.clock.advance(2)
    parameters = redirect_parameters(await signed_in_browser.get(web.authorize_path(max_age="2")))
    assert (await grant_of(service, parameters["code"])).auth_time == proved_at
    assert "code" in redirect_parameters(await signed_in_browser.get(web.authorize_path(max_age="10000")))
    for max_age in ("1", "0"):
        assert wants_sign_in(await signed_in_browser.get(web.authorize_path(max_age=max_age)))
        assert (
            redirect_error(await signed_in_browser.get(web.authorize_path(max_age=max_age, prompt="none")))
            == "login_required"
        )
    await signed_in_browser.get(web.authorize_path(max_age="1"))
    await signed_in_browser.follow()
    parameters = redirect_parameters(await signed_in_browser.post("/sign-in", login=LOGIN, password=PASSWORD))
    assert (await grant_of(service, parameters["code"])).auth_time == service.clock.now()
    for max_age in ("-1", str(2**63), "1.5", "x", "1e3", " 1", "१"):
        assert (
            redirect_error(await signed_in_browser.get(web.authorize_path(max_age=max_age))) == "invalid_request"
        ), max_age


@pytest.mark.parametrize("changes", [{"prompt": "login"}, {"max_age": "0"}], ids=["prompt", "max_age"])
async def test_a_session_that_does_not_do_cannot_be_passed_off_as_a_choice_of_account(
    service: RunningService, signed_in_browser: HttpBrowser, web: RelyingPartyClient, changes: dict[str, str]
) -> None:
    response = await signed_in_browser.get(web.authorize_path(**changes))
    handle = dict(parse_qsl(response.headers["location"].partition("?")[2]))["interaction"]
    await signed_in_browser.get(f"/sign-in/as?interaction={handle}")
    assert wants_sign_in(await signed_in_browser.post("/sign-in/as", decision="continue"))
    assert await count_grants(service) == 0


async def test_az_25_an_id_token_hint_names_who_is_expected(
    service: RunningService,
    signed_in_browser: HttpBrowser,
    anna: User,
    web: RelyingPartyClient,
    oidc_client: RelyingPartyClient,
) -> None:
    berta = await service.services.accounts.administration.create(
        login="berta@studio.example", nick="Berta", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    for age in (0, 90_000):  # an expired one is still a hint
        hint = await issue_id_token(service, anna, "web", age=age)
        parameters = redirect_parameters(
            await signed_in_browser.get(web.authorize_path(id_token_hint=hint, prompt="none"))
        )
        assert "code" in parameters
    others = await issue_id_token(service, berta, "web")
    for prompt in ("none", ""):
        answer = await signed_in_browser.get(web.authorize_path(id_token_hint=others, prompt=prompt))
        assert redirect_error(answer) == "login_required"
    for unusable in ("garbage", f"{others[:-4]}AAAA", await issue_id_token(service, anna, "shelf")):
        answer = await signed_in_browser.get(web.authorize_path(id_token_hint=unusable, prompt="none"))
        assert redirect_error(answer) == "login_required"
        assert wants_sign_in(await signed_in_browser.get(web.authorize_path(id_token_hint=unusable)))
    its_own = await issue_id_token(service, anna, "shelf")
    assert "code" in redirect_parameters(
        await signed_in_browser.get(oidc_client.authorize_path(id_token_hint=its_own))
    )


@pytest.mark.usefixtures("anna")
async def test_az_25_anyone_who_signs_in_instead_of_the_hinted_person_is_refused(
    service: RunningService, browser_client: HttpBrowser, web: RelyingPartyClient
) -> None:
    berta = await service.services.accounts.administration.create(
        login="berta@studio.example", nick="Berta", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    hint = await issue_id_token(service, berta, "web")
    parameters = query_of(await web.walk_authorize(browser_client, LOGIN, id_token_hint=hint))
    assert parameters["error"] == "login_required"
    assert await count_grants(service) == 0


async def test_claims_may_name_who_is_expected_as_a_hint_does(
    service: RunningService, signed_in_browser: HttpBrowser, anna: User, web: RelyingPartyClient
) -> None:
    def path_with_claims(value: object, **more: str) -> str:
        return web.authorize_path(claims=json.dumps({"id_token": {"sub": {"value": value}}}), **more)

    for more in ({}, {"prompt": "none"}):
        assert "code" in redirect_parameters(await signed_in_browser.get(path_with_claims(anna.user_id, **more)))
        assert redirect_error(await signed_in_browser.get(path_with_claims("1000000009", **more))) == "login_required"
    hint = await issue_id_token(service, anna, "web")
    assert (
        redirect_error(await signed_in_browser.get(path_with_claims("1000000009", id_token_hint=hint)))
        == "login_required"
    )
    for wrong in (7, "", None, ["x"]):
        assert redirect_error(await signed_in_browser.get(path_with_claims(wrong))) == "invalid_request", wrong
    for no_one in ({"sub": None}, {"sub": {"essential": True}}, {}):
        claims = json.dumps({"id_token": no_one})
        assert "code" in redirect_parameters(await signed_in_browser.get(web.authorize_path(claims=claims)))


async def test_az_35_claims_may_name_several_users_and_each_member_once(
    service: RunningService, signed_in_browser: HttpBrowser, anna: User, web: RelyingPartyClient
) -> None:
    def path_with_sub(sub: object, **more: str) -> str:
        return web.authorize_path(claims=json.dumps({"id_token": {"sub": sub}}), **more)

    other = "1000000009"
    for expected in ({"values": [other, anna.user_id]}, {"value": anna.user_id, "values": [anna.user_id, other]}):
        assert "code" in redirect_parameters(await signed_in_browser.get(path_with_sub(expected)))
    for unexpected in ({"values": [other, "1000000008"]}, {"value": other, "values": [anna.user_id, other]}):
        assert redirect_error(await signed_in_browser.get(path_with_sub(unexpected))) == "login_required"
    hint = await issue_id_token(service, anna, "web")
    hinted = path_with_sub({"values": [other]}, id_token_hint=hint)
    assert redirect_error(await signed_in_browser.get(hinted)) == "login_required"
    for wrong in (
        {"values": []},
        {"values": "x"},
        {"values": [other, 7]},
        {"value": other, "values": [anna.user_id]},
    ):
        assert redirect_error(await signed_in_browser.get(path_with_sub(wrong))) == "invalid_request", wrong
    about = f'"sub":{{"value":"{anna.user_id}"}}'
    for twice in (
        f'{{"id_token":{{{about}}},"id_token":{{}}}}',
        f'{{"id_token":{{{about},"sub":null}}}}',
        f'{{"id_token":{{"sub":{{"value":"{other}","value":"{anna.user_id}"}}}}}}',
    ):
        answer = await signed_in_browser.get(web.authorize_path(claims=twice))
        assert redirect_error(answer) == "invalid_request", twice


@pytest.mark.usefixtures("anna")
async def test_sign_in_as_another_person_than_the_requested_sub_is_refused(
    service: RunningService, browser_client: HttpBrowser, web: RelyingPartyClient
) -> None:
    claims = json.dumps({"id_token": {"sub": {"value": "1000000009"}}})
    assert query_of(await web.walk_authorize(browser_client, LOGIN, claims=claims))["error"] == "login_required"
    assert await count_grants(service) == 0


async def test_prompt_select_account_offers_to_go_on_or_to_be_someone_else(
    service: RunningService, signed_in_browser: HttpBrowser, anna: User, web: RelyingPartyClient
) -> None:
    berta = await service.services.accounts.administration.create(
        login="berta@studio.example", nick="Berta", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    await signed_in_browser.get(web.authorize_path(prompt="select_account"))
    page = await signed_in_browser.follow()
    assert "Continue as Anna" in page.text
    parameters = redirect_parameters(await signed_in_browser.post("/sign-in/as", decision="continue"))
    assert (await grant_of(service, parameters["code"])).user_id == anna.user_id
    await signed_in_browser.get(web.authorize_path(prompt="select_account"))
    await signed_in_browser.follow()
    assert wants_sign_in(await signed_in_browser.post("/sign-in/as", decision="another"))
    await signed_in_browser.follow()
    parameters = redirect_parameters(
        await signed_in_browser.post("/sign-in", login=berta.login or "", password=PASSWORD)
    )
    assert (await grant_of(service, parameters["code"])).user_id == berta.user_id


@pytest.mark.usefixtures("anna")
async def test_prompt_select_account_without_a_session_is_the_sign_in(
    browser_client: HttpBrowser, web: RelyingPartyClient
) -> None:
    assert "code" in query_of(await web.walk_authorize(browser_client, LOGIN, prompt="select_account"))


async def test_az_26_request_objects_are_refused_by_name_and_nothing_is_fetched(
    signed_in_browser: HttpBrowser, web: RelyingPartyClient, oidc_client: RelyingPartyClient
) -> None:
    called = asyncio.Event()

    async def canary(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set()
        writer.close()

    async with await asyncio.start_server(canary, "127.0.0.1", 0) as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for client in (web, oidc_client):
            for name, error in (
                ("request", "request_not_supported"),
                ("request_uri", "request_uri_not_supported"),
                ("registration", "registration_not_supported"),
            ):
                assert redirect_error(await signed_in_browser.get(client.authorize_path(**{name: address}))) == error
        bare = web.authorize_path(request=address, scope="", nonce="", response_type="")
        assert redirect_error(await signed_in_browser.get(bare)) == "request_not_supported"
    assert not called.is_set()


async def test_az_27_pages_of_the_way_take_no_foreign_form_and_no_frame(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    other = await an_oidc_client(service, "other", first_party=False)
    response = await browser_client.get(other.authorize_path())
    for path, fields in (
        ("/sign-in", {"login": anna.login or "", "password": PASSWORD}),
        ("/sign-in/consent", {"decision": "allow"}),
    ):
        page = await browser_client.get(response.headers["location"])
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert page.headers["x-frame-options"] == "DENY"
        hidden = hidden_fields(page.text)
        foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
        for page_path, headers in (
            ({**hidden, "csrf": ""}, {}),
            ({**hidden, "csrf": "0" * 64}, {}),
            (hidden, foreign),
        ):
            posted = await browser_client.client.post(path, data={**page_path, **fields}, headers=headers)
            assert posted.status_code == 403
            assert "location" not in posted.headers
            assert "frame-ancestors 'none'" in posted.headers["content-security-policy"]
        response = await browser_client.post(path, **fields)
    assert "code" in redirect_parameters(response)


async def test_az_28_iss_is_the_issuer_in_every_answer(
    service: RunningService, signed_in_browser: HttpBrowser, web: RelyingPartyClient
) -> None:
    for changes in ({}, {"scope": "email"}, {"prompt": "none", "max_age": "0"}, {"request": "x"}, {"state": ""}):
        assert (
            redirect_parameters(await signed_in_browser.get(web.authorize_path(**changes)))["iss"] == service.base_url
        )
    discovery = (await service.client.get("/.well-known/openid-configuration")).json()
    assert discovery["authorization_response_iss_parameter_supported"] is True
    assert discovery["issuer"] == service.base_url


async def test_az_30_post_works_like_get_head_and_prefetch_mint_nothing_and_put_is_refused(
    service: RunningService, signed_in_browser: HttpBrowser, web: RelyingPartyClient
) -> None:
    cross_site = {"Origin": "https://shop.example", "Sec-Fetch-Site": "cross-site"}
    posted = await signed_in_browser.client.post(
        AUTHORIZE, data=web.authorize_fields(state="a b&c"), headers=cross_site
    )
    assert posted.status_code == 303
    assert posted.headers["location"].startswith(f"{AUTHORIZE}?")
    assert await count_grants(service) == 0
    parameters = redirect_parameters(await signed_in_browser.get(posted.headers["location"]))
    assert parameters["state"] == "a b&c"
    assert await count_grants(service) == 1
    headed = await signed_in_browser.client.head(web.authorize_path())
    assert (headed.status_code, headed.text) == (200, "")
    for headers in ({"Sec-Purpose": "prefetch;prerender"}, {"Purpose": "prefetch"}, {"X-Moz": "prefetch"}):
        ahead = await signed_in_browser.client.get(web.authorize_path(), headers=headers)
        assert ahead.status_code == 503
        assert "location" not in ahead.headers
    for method in ("PUT", "DELETE", "PATCH"):
        response = await signed_in_browser.client.request(method, web.authorize_path())
        assert response.status_code == 405
    as_json = await signed_in_browser.client.post(AUTHORIZE, json=web.authorize_fields())
    assert as_json.status_code == 415
    assert await count_grants(service) == 1
    assert await count_sign_in_flows(service) == 0


async def test_az_31_a_blocked_user_gets_no_code(
    service: RunningService, signed_in_browser: HttpBrowser, anna: User, web: RelyingPartyClient
) -> None:
    await signed_in_browser.get(web.authorize_path(prompt="login"))
    await signed_in_browser.follow()
    await service.services.accounts.administration.block(anna.user_id, AuditOrigin(actor="test"))
    assert redirect_error(await signed_in_browser.client.get(web.authorize_path(prompt="none"))) == "login_required"
    assert (await signed_in_browser.post("/sign-in", login=LOGIN, password=PASSWORD)).status_code == 403
    assert await count_grants(service) == 0


async def test_az_31_whom_the_application_keeps_out_gets_access_denied(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    studio = await a_studio(service)
    number = studio.shop.application_id
    shop = await a_native_client(service, "shop", application_id=number)
    storage = service.services.storage
    third = await an_oidc_client(service, "third", application_id=number, first_party=False)
    assert "code" in query_of(await shop.walk_authorize(browser_client, LOGIN))
    for login in ({"can": {"value": False}}, {"cannot": {"value": True}}):
        await storage.user_records.edit_record(number, anna.user_id, set_fields(login=login), 0)
        for client in (shop, third):  # no consent is requested for a request that will fail
            assert redirect_error(await browser_client.get(client.authorize_path())) == "access_denied"
            new_browser = HttpBrowser(service)
            assert query_of(await client.walk_authorize(new_browser, LOGIN))["error"] == "access_denied"
            await new_browser.client.aclose()
    await storage.user_records.edit_record(number, anna.user_id, set_fields(login={}), 0)
    assert "code" in redirect_parameters(await browser_client.get(shop.authorize_path()))
    await storage.projects.edit_project(PROJECT, set_project_fields(removed=True))
    assert redirect_error(await browser_client.get(shop.authorize_path())) == "access_denied"


async def test_az_32_a_sign_in_after_ten_minutes_has_expired_and_starts_again_on_our_own_origin(
    service: RunningService, browser_client: HttpBrowser, anna: User, web: RelyingPartyClient
) -> None:
    await browser_client.get(web.authorize_path(state="kept & whole"))
    await browser_client.follow()
    await service.clock.advance(LATER)
    late = await browser_client.post("/sign-in", login=anna.login or "", password=PASSWORD)
    assert late.status_code == 400
    assert "This page has expired" in late.text
    assert await count_grants(service) == 0
    again = link_in(late)
    assert again.startswith(f"{AUTHORIZE}?")
    await browser_client.get(again)
    await browser_client.follow()
    parameters = redirect_parameters(await browser_client.post("/sign-in", login=LOGIN, password=PASSWORD))
    assert parameters["state"] == "kept & whole"


@pytest.mark.parametrize(
    "path", ["/sign-in", "/sign-in/as", "/sign-in/factor", "/sign-in/consent", "/sign-in/confirm"]
)
async def test_az_32_a_link_to_start_again_leads_nowhere_else(browser_client: HttpBrowser, path: str) -> None:
    evil = (
        pack_request(b"//evil.example/\r\nX: y"),
        pack_request(b"//evil.example"),
        pack_request(b"x" * 100_000),
        pack_request(b"/?//x.example"),
    )
    for handle in ("x", "x.y", "x." + "A" * 40, "x.https://evil.example", *(f"x.{query}" for query in evil)):
        page = await browser_client.get(f"{path}?{urlencode({'interaction': handle})}")
        assert page.status_code == 400, page.text
        assert link_in(page).startswith(("/sign-in", "/device", "/?", f"{AUTHORIZE}?"))


async def test_another_browser_cannot_go_on_with_the_way(
    service: RunningService, browser_client: HttpBrowser, anna: User, web: RelyingPartyClient
) -> None:
    response = await browser_client.get(web.authorize_path())
    other_browser = HttpBrowser(service)
    await other_browser.sign_in(anna.login or "")
    assert (await other_browser.get(response.headers["location"])).status_code == 400
    await other_browser.client.aclose()


async def test_az_33_a_flood_of_requests_is_limited_and_leaves_a_bounded_pile(
    service: RunningService, web: RelyingPartyClient
) -> None:
    path = web.authorize_path()
    responses = [await service.client.get(path) for _ in range(200)]
    refusals = [response for response in responses if response.status_code == 429]
    assert refusals
    assert all(int(response.headers["retry-after"]) > 0 for response in refusals)
    started = await count_sign_in_flows(service)
    assert started <= service.services.settings.rates.login
    await service.clock.advance(LATER)
    await service.services.storage.sweep(service.clock.now())
    assert await count_sign_in_flows(service) == 0


async def test_a_flood_of_strangers_does_not_keep_those_out_who_are_signed_in(
    service: RunningService, signed_in_browser: HttpBrowser, web: RelyingPartyClient
) -> None:
    for _ in range(service.services.settings.rates.login + 1):
        flooded = await service.client.get(web.authorize_path())
    assert flooded.status_code == 429
    assert "code" in redirect_parameters(await signed_in_browser.get(web.authorize_path()))


async def test_a_session_from_a_short_lived_token_signs_in_to_first_party_clients_only(
    service: RunningService, browser_client: HttpBrowser, anna: User, web: RelyingPartyClient
) -> None:
    body = {"login": anna.login, "password": PASSWORD, "short_token": "1"}
    stoken = (await service.client.post("/proxy/api/login", json=body)).json()["stoken"]
    await browser_client.get(f"/?stoken={stoken}")
    await browser_client.post("/sign-in/stoken")
    other = await an_oidc_client(service, "other", first_party=False)
    assert "code" in redirect_parameters(await browser_client.get(web.authorize_path()))
    assert redirect_error(await browser_client.get(other.authorize_path(prompt="none"))) == "login_required"
    assert wants_sign_in(await browser_client.get(other.authorize_path()))
    assert wants_sign_in(await browser_client.get(web.authorize_path(prompt="consent")))


async def test_a_limited_session_cannot_choose_itself_for_a_third_party_client(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    body = {"login": anna.login, "password": PASSWORD, "short_token": "1"}
    stoken = (await service.client.post("/proxy/api/login", json=body)).json()["stoken"]
    other = await an_oidc_client(service, "other", first_party=False)
    response = await browser_client.get(other.authorize_path(prompt="select_account"))  # before there is a session
    await browser_client.get(f"/?stoken={stoken}")
    await browser_client.post("/sign-in/stoken")
    await browser_client.get(response.headers["location"].replace("/sign-in?", "/sign-in/as?"))
    assert wants_sign_in(await browser_client.post("/sign-in/as", decision="continue"))
    assert await count_grants(service) == 0


async def test_a_way_to_a_client_that_was_removed_meanwhile_ends(
    service: RunningService, browser_client: HttpBrowser, anna: User, web: RelyingPartyClient
) -> None:
    await browser_client.get(web.authorize_path())
    await browser_client.follow()
    await service.services.oauth.clients.commands.remove("web", AuditOrigin(actor="test"))
    response = await browser_client.post("/sign-in", login=anna.login or "", password=PASSWORD)
    assert (response.status_code, "location" in response.headers) == (400, False)
    assert is_error_page(await browser_client.get(web.authorize_path()))
    assert await count_grants(service) == 0


def link_in(page: httpx2.Response) -> str:
    """The link of the button on an expired page."""
    link = page.text.split('<a href="')[2].split('"')[0]
    return link.replace("&amp;", "&")
