"""Consent: requested once per set of scopes, stored, listed, withdrawn (R3)."""

import json
import re
from html import unescape
from typing import Any

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.times import DAY, iso8601
from tests.support.browser import PASSWORD, AccountBrowser, HttpBrowser, hidden_fields
from tests.support.builders import a_record
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.oauth import REDIRECT, RelyingPartyClient, a_public_client, an_oidc_client, challenge_of, query_of
from tests.support.service import RunningService
from tests.support.studio import a_studio
from tests.wire.oauth.authorize_responses import (
    LOGIN,
    count_grants,
    count_sign_in_flows,
    grant_of,
    redirect_error,
    redirect_parameters,
)

CONSENT = "/sign-in/consent"


@pytest.fixture
async def third_party_client(service: RunningService) -> RelyingPartyClient:
    """A third-party client."""
    return await an_oidc_client(service, "third", first_party=False, name="Sky <Atlas>")


async def open_consent_page(browser_client: HttpBrowser, client: RelyingPartyClient, **changes: str) -> str:
    """Open the consent page through the authorization endpoint."""
    response = await browser_client.get(client.authorize_path(**changes))
    assert response.status_code == 303
    assert response.headers["location"].startswith(f"{CONSENT}?interaction="), response.headers["location"]
    return (await browser_client.follow()).text


async def test_the_page_tells_who_wants_what_of_whom(
    signed_in_browser: HttpBrowser, third_party_client: RelyingPartyClient
) -> None:
    page = await open_consent_page(signed_in_browser, third_party_client, scope="openid email offline_access")
    text = unescape(page)
    for words in ("Sky <Atlas>", "shop.example", "Anna", LOGIN, "your email address", "this data while you're away"):
        assert words in text
    assert "your name" not in text
    assert "<Atlas>" not in page
    assert "form-action 'self' https://shop.example;" in policy_of(signed_in_browser)
    assert "<dt>Owner</dt>" not in text


async def test_another_account_is_used_from_the_question_and_the_question_comes_back(
    service: RunningService,
    signed_in_browser: HttpBrowser,
    third_party_client: RelyingPartyClient,
) -> None:
    bob = await service.services.accounts.administration.create(
        login="bob@studio.example", nick="Bob", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    page = await open_consent_page(signed_in_browser, third_party_client, state="kept")
    (link,) = re.findall(r'href="(/sign-in\?interaction=[^"]+)">Use another account<', page)
    assert "Sky &lt;Atlas&gt;" in (await signed_in_browser.get(unescape(link))).text
    await signed_in_browser.post("/sign-in", login="bob@studio.example", password=PASSWORD)
    question = await signed_in_browser.follow()
    assert (question.url.path, "bob@studio.example" in question.text, LOGIN in question.text) == (
        CONSENT,
        True,
        False,
    )
    allowed = await signed_in_browser.post(CONSENT, decision="allow")
    assert query_of(allowed.headers["location"])["state"] == "kept"
    tokens = await third_party_client.tokens(query_of(allowed.headers["location"])["code"])
    assert (await third_party_client.userinfo(tokens["access_token"])).json()["sub"] == bob.user_id

    hint = tokens["id_token"]
    named = await open_consent_page(signed_in_browser, third_party_client, prompt="consent", id_token_hint=hint)
    assert "Use another account" not in named, "the client asks for this person"


@pytest.mark.parametrize("redirect_uri", ["http://127.0.0.1:8765/back", "com.example.atlas:/back"])
async def test_az_36_consent_to_a_public_client_on_the_device_counts_once(
    service: RunningService, signed_in_browser: HttpBrowser, redirect_uri: str
) -> None:
    browser, uris = signed_in_browser, (redirect_uri, REDIRECT)
    asked = {"code_challenge": challenge_of("v" * 43), "code_challenge_method": "S256", "redirect_uri": redirect_uri}
    client = await a_public_client(service, redirect_uris=uris, first_party=False)
    for _ in range(2):
        await open_consent_page(browser, client, **asked)
        assert "code" in query_of((await browser.post(CONSENT, decision="allow")).headers["location"])
        silent = await browser.get(client.authorize_path(**asked, prompt="none"))
        assert query_of(silent.headers["location"])["error"] == "interaction_required"
    elsewhere = await browser.get(client.authorize_path(**{**asked, "redirect_uri": REDIRECT}))
    assert "code" in redirect_parameters(elsewhere)
    for trusted in (
        await a_public_client(service, "ours", redirect_uris=uris, first_party=True),
        await an_oidc_client(service, "proved", redirect_uris=uris, first_party=False),
    ):
        if not trusted.client.first_party:
            await open_consent_page(browser, trusted, **asked)
            await browser.post(CONSENT, decision="allow")
        silent = await browser.get(trusted.authorize_path(**asked, prompt="none"))
        assert "code" in query_of(silent.headers["location"])


@pytest.mark.usefixtures("anna")
async def test_links_of_the_client_are_shown_with_their_host_at_sign_in_and_consent(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    client = await an_oidc_client(
        service,
        "linked",
        first_party=False,
        client_uri="https://about.example/?a=1&b=2",
        tos_uri="http://localhost:3000/terms",
    )
    new_tab = 'target="_blank" rel="noopener noreferrer"'
    links = [
        f'<a href="{uri}" {new_tab}>{title}</a> <span class="host">{host}</span>'
        for uri, title, host in (
            ("https://about.example/?a=1&amp;b=2", "Website", "about.example"),
            ("http://localhost:3000/terms", "Terms of service", "localhost:3000"),
        )
    ]
    await browser_client.get(client.authorize_path())
    sign_in = await browser_client.follow()
    await browser_client.post("/sign-in", login=LOGIN, password=PASSWORD)
    consent = await browser_client.follow()
    for page in (sign_in, consent):
        assert all(link in page.text for link in links)
        assert "Privacy policy" not in page.text


async def test_the_page_tells_whose_the_application_is(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    studio = await a_studio(service)
    number = studio.shop.application_id
    client = await an_oidc_client(service, "shop", first_party=False, application_id=number)
    page = await open_consent_page(signed_in_browser, client)
    assert "<dt>Owner</dt>" in page
    assert "Mind Games" in page


async def test_allow_is_asked_for_once_for_each_set_of_scopes(
    service: RunningService, signed_in_browser: HttpBrowser, anna: User, third_party_client: RelyingPartyClient
) -> None:
    await open_consent_page(signed_in_browser, third_party_client, scope="openid email")
    parameters = redirect_parameters(await signed_in_browser.post(CONSENT, decision="allow"))
    assert (await grant_of(service, parameters["code"])).scopes == ("openid", "email")
    for scope in ("openid email", "email openid", "openid"):
        assert "code" in redirect_parameters(
            await signed_in_browser.get(third_party_client.authorize_path(scope=scope))
        )
    await open_consent_page(signed_in_browser, third_party_client, scope="openid profile")
    assert "code" in redirect_parameters(await signed_in_browser.post(CONSENT, decision="allow"))
    assert "code" in redirect_parameters(
        await signed_in_browser.get(third_party_client.authorize_path(scope="openid email profile"))
    )
    consent = await service.services.storage.consents.consent(anna.user_id, "third")
    assert consent is not None
    assert set(consent.scopes) == {"openid", "email", "profile"}
    assert await count_sign_in_flows(service) == 0


async def test_deny_tells_the_client_and_remembers_nothing(
    service: RunningService, signed_in_browser: HttpBrowser, anna: User, third_party_client: RelyingPartyClient
) -> None:
    await open_consent_page(signed_in_browser, third_party_client)
    denied = await signed_in_browser.post(CONSENT, decision="deny")
    assert redirect_error(denied) == "access_denied"
    parameters = redirect_parameters(denied)
    assert (parameters["state"], parameters["iss"]) == ("st", service.base_url)
    assert await service.services.storage.consents.consent(anna.user_id, "third") is None
    assert (await count_grants(service), await count_sign_in_flows(service)) == (0, 0)
    await open_consent_page(signed_in_browser, third_party_client)


async def test_a_denial_is_recorded_once(
    service: RunningService, signed_in_browser: HttpBrowser, anna: User, third_party_client: RelyingPartyClient
) -> None:
    page = await open_consent_page(signed_in_browser, third_party_client, scope="openid email")
    form = {**hidden_fields(page), "decision": "deny"}
    for _ in range(3):
        await signed_in_browser.client.post(CONSENT, data=form)
    records = await service.services.storage.audit.newest_records(10, anna.user_id, "consent.denied")
    assert [(record.actor, record.details) for record in records] == [
        (anna.user_id, {"client": "third", "scope": "openid email"})
    ]


async def test_a_consent_withdrawn_in_that_moment_leaves_no_grant(
    service: RunningService,
    signed_in_browser: HttpBrowser,
    anna: User,
    third_party_client: RelyingPartyClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await open_consent_page(signed_in_browser, third_party_client)
    redirect_parameters(await signed_in_browser.post(CONSENT, decision="allow"))
    store = type(service.services.storage.grants)
    begin = store.create_grant

    async def after_the_withdrawal(self: Any, *args: Any, **more: Any) -> bool:
        assert await service.services.oauth.consents.withdraw(anna.user_id, "third", AuditOrigin(actor="test"))
        return await begin(self, *args, **more)

    with monkeypatch.context() as patched:
        patched.setattr(store, "create_grant", after_the_withdrawal)
        assert redirect_error(await signed_in_browser.get(third_party_client.authorize_path())) == "login_required"
    assert await count_grants(service) == 1  # the first one, which is revoked
    await open_consent_page(signed_in_browser, third_party_client)


@pytest.mark.usefixtures("anna")
async def test_someone_who_has_just_signed_in_is_asked_next(
    service: RunningService, browser_client: HttpBrowser, third_party_client: RelyingPartyClient
) -> None:
    await browser_client.get(third_party_client.authorize_path())
    await browser_client.follow()
    signed_in = await browser_client.post("/sign-in", login=LOGIN, password=PASSWORD)
    assert signed_in.headers["location"].startswith(CONSENT)
    assert await count_grants(service) == 0
    await browser_client.follow()
    assert "code" in redirect_parameters(await browser_client.post(CONSENT, decision="allow"))


async def test_prompt_consent_asks_again_and_a_first_party_client_may_want_that_too(
    signed_in_browser: HttpBrowser, third_party_client: RelyingPartyClient, oidc_client: RelyingPartyClient
) -> None:
    for client in (third_party_client, oidc_client):
        for _ in range(2):
            await open_consent_page(signed_in_browser, client, prompt="consent")
            assert "code" in redirect_parameters(await signed_in_browser.post(CONSENT, decision="allow"))
    assert "code" in redirect_parameters(await signed_in_browser.get(third_party_client.authorize_path()))


async def test_a_decision_counts_once(
    service: RunningService, signed_in_browser: HttpBrowser, third_party_client: RelyingPartyClient
) -> None:
    page = await open_consent_page(signed_in_browser, third_party_client)
    form = {**hidden_fields(page), "decision": "allow"}
    assert "code" in redirect_parameters(await signed_in_browser.client.post(CONSENT, data=form))
    again = await signed_in_browser.client.post(CONSENT, data=form)
    assert (again.status_code, "location" in again.headers) == (400, False)
    assert await count_grants(service) == 1


async def test_only_the_session_that_was_asked_may_decide_on_consent(
    service: RunningService, signed_in_browser: HttpBrowser, third_party_client: RelyingPartyClient
) -> None:
    page = await open_consent_page(signed_in_browser, third_party_client)
    handle = hidden_fields(page)["interaction"]
    other_browser = HttpBrowser(service)
    await other_browser.sign_in(LOGIN)
    assert (await other_browser.get(f"{CONSENT}?interaction={handle}")).status_code == 400
    await other_browser.client.aclose()
    await signed_in_browser.sign_in(LOGIN)  # a new session of the same person
    assert (await signed_in_browser.get(f"{CONSENT}?interaction={handle}")).status_code == 400
    csrf = hidden_fields((await signed_in_browser.get("/account")).text)["csrf"]
    form = {"csrf": csrf, "interaction": handle, "decision": "allow"}
    assert (await signed_in_browser.client.post(CONSENT, data=form)).status_code == 400
    assert await count_grants(service) == 0


@pytest.mark.parametrize("decision", ["", "yes", "ALLOW"])
async def test_another_decision_is_none(
    service: RunningService, signed_in_browser: HttpBrowser, third_party_client: RelyingPartyClient, decision: str
) -> None:
    await open_consent_page(signed_in_browser, third_party_client)
    assert (await signed_in_browser.post(CONSENT, decision=decision)).status_code == 400
    assert await count_grants(service) == 0


async def test_the_step_cannot_be_skipped_by_choosing_an_account(
    service: RunningService, signed_in_browser: HttpBrowser, third_party_client: RelyingPartyClient
) -> None:
    page = await open_consent_page(signed_in_browser, third_party_client)
    form = {**hidden_fields(page), "decision": "continue"}
    response = await signed_in_browser.client.post("/sign-in/as", data=form)
    assert response.headers["location"].startswith(CONSENT)
    assert await count_grants(service) == 0


async def test_consent_that_came_too_late_starts_again(
    service: RunningService, signed_in_browser: HttpBrowser, third_party_client: RelyingPartyClient
) -> None:
    await open_consent_page(signed_in_browser, third_party_client, state="kept")
    await service.clock.advance(601)
    late = await signed_in_browser.post(CONSENT, decision="allow")
    assert late.status_code == 400
    assert "/proxy/oauth/authorize?" in late.text
    assert "state=kept" in late.text


@pytest.mark.usefixtures("anna")
async def test_the_account_page_lists_what_was_allowed_and_withdrawing_ends_it(
    service: RunningService, third_party_client: RelyingPartyClient
) -> None:
    account_browser = AccountBrowser(service)
    await account_browser.sign_in_and_open_account()
    await open_consent_page(account_browser, third_party_client)
    code = redirect_parameters(await account_browser.post(CONSENT, decision="allow"))["code"]
    page = unescape((await account_browser.get("/account")).text)
    assert "Sky <Atlas>" in page
    assert "this data while you're away" in page
    assert await account_browser.submit_and_read_notice("/account/applications/revoke", "third") == "Access withdrawn"
    assert (
        "Sky" not in (await account_browser.get("/account")).text.split('id="applications"')[1].split("</section>")[0]
    )
    holder = await service.services.storage.grants.find_grant_by_code(sha256(code))
    assert holder is not None
    assert holder.grant.revoked_at == service.clock.now()
    assert await service.services.storage.grants.find_live_grant(holder.grant.grant_id, service.clock.now()) is None
    assert (await third_party_client.redeem(code)).status_code == 400
    await open_consent_page(account_browser, third_party_client)
    activity = (await account_browser.get("/account")).text.split('id="activity"')[1]
    assert "Application access allowed" in activity
    assert "Application access withdrawn" in activity
    await account_browser.client.aclose()


async def test_no_one_withdraws_consent_for_another_account(
    service: RunningService, signed_in_browser: HttpBrowser, anna: User, third_party_client: RelyingPartyClient
) -> None:
    await open_consent_page(signed_in_browser, third_party_client)
    await signed_in_browser.post(CONSENT, decision="allow")
    berta = await service.services.accounts.administration.new_user(
        login="b@studio.example", nick="B", password=PASSWORD
    )
    account_browser = AccountBrowser(service)
    await service.services.storage.accounts.create_user(berta, a_record())
    await account_browser.sign_in_and_open_account("b@studio.example")
    await account_browser.post_with_csrf("/account/applications/revoke", client_id="third")
    assert await service.services.storage.consents.consent(anna.user_id, "third") is not None
    await account_browser.client.aclose()


@pytest.mark.usefixtures("anna")
async def test_a_walk_with_consent_ends_with_tokens(third_party_client: RelyingPartyClient) -> None:
    assert "access_token" in await third_party_client.tokens(await third_party_client.sign_in(LOGIN))


def policy_of(browser_client: HttpBrowser) -> str:
    assert browser_client.page is not None
    return str(browser_client.page.headers["content-security-policy"])


@pytest.mark.usefixtures("anna")
async def test_op_14_what_was_allowed_is_in_the_copy_of_a_persons_data(
    service: RunningService, third_party_client: RelyingPartyClient
) -> None:
    account_browser = AccountBrowser(service)
    await account_browser.sign_in_and_open_account()
    await open_consent_page(account_browser, third_party_client, scope="openid email")
    await account_browser.post(CONSENT, decision="allow", days="7")
    await account_browser.get("/account")
    body = json.loads((await account_browser.submit("/account/export")).content)
    (allowed,) = body["allowed_clients"]
    assert (allowed["client_id"], allowed["scopes"]) == ("third", ["openid", "email"])
    assert allowed["ends"] == iso8601(service.clock.now() + 7 * DAY)
    (sign_in,) = body["client_sign_ins"]
    assert (sign_in["client_id"], sign_in["scopes"], sign_in["revoked"]) == ("third", ["openid", "email"], "")
    await account_browser.client.aclose()


async def test_op_14_nothing_of_a_sign_in_to_a_client_outlives_the_account(
    service: RunningService, anna: User, third_party_client: RelyingPartyClient
) -> None:
    account_browser = AccountBrowser(service)
    await account_browser.sign_in_and_open_account()
    await open_consent_page(account_browser, third_party_client)
    await account_browser.post(CONSENT, decision="allow")
    await open_consent_page(account_browser, third_party_client, prompt="consent")  # and one that is unfinished
    assert tables_that_mention(await read_all_tables(service.services.storage), anna.user_id) >= {
        *("consents", "grants", "interactions"),
    }
    await account_browser.get("/account/delete")
    await account_browser.submit("/account/delete", login=LOGIN)
    after = await read_all_tables(service.services.storage)
    assert tables_that_mention(after, anna.user_id) == {"user_ids", "audit_events"}
    await account_browser.client.aclose()
