"""The user JWT that the API documentation gets for a signed-in person."""

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import AccountBrowser, hidden_fields
from tests.support.database_contents import read_all_tables
from tests.support.service import RunningService

SESSION = "/docs/session"
INFO = "/api/permissions/user/info"
LIFETIME = 600


async def csrf_of(browser: AccountBrowser) -> str:
    page = await browser.get("/account")
    return hidden_fields(page.text)["csrf"]


async def test_a_signed_in_person_gets_a_token_for_ten_minutes(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    given = await account_browser.client.post(SESSION, data={"csrf": await csrf_of(account_browser)})
    assert (given.status_code, given.headers["cache-control"]) == (200, "no-store")
    token = given.json()
    assert token["seconds"] == LIFETIME
    bearer = {"Authorization": f"Bearer {token['jwt']}"}
    person = {**bearer, "Factor": token["factor"]}
    assert (await service.client.post(INFO, json={}, headers=person)).status_code == 200
    assert (await service.client.post(INFO, json={}, headers=bearer)).status_code in (401, 403)
    rows = (await read_all_tables(service.services.storage))["audit_events"]
    assert [row.event for row in rows].count("user.token_made") == 1
    await service.clock.advance(LIFETIME + 1)
    assert (await service.client.post(INFO, json={}, headers=person)).status_code == 401


async def test_signing_out_everywhere_ends_the_token(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    given = await account_browser.client.post(SESSION, data={"csrf": await csrf_of(account_browser)})
    person = {"Authorization": f"Bearer {given.json()['jwt']}", "Factor": given.json()["factor"]}
    assert (await service.client.post(INFO, json={}, headers=person)).status_code == 200
    await service.services.accounts.sessions.sign_out_everywhere(anna.user_id, AuditOrigin(actor="test"))
    assert (await service.client.post(INFO, json={}, headers=person)).status_code == 401


async def test_only_a_form_of_this_browser_gets_a_token(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    csrf = await csrf_of(account_browser)
    client = account_browser.client
    for fields, headers in (
        ({"csrf": "guess"}, {}),
        ({"csrf": csrf}, {"Sec-Fetch-Site": "cross-site"}),
        ({"csrf": csrf}, {"Origin": "https://evil.example"}),
    ):
        refused = await client.post(SESSION, data=fields, headers=headers)
        assert (refused.status_code, "jwt" in refused.text) == (403, False)
    anyone = await service.client.post(SESSION, data={"csrf": csrf})
    assert (anyone.status_code, anyone.headers["location"]) == (303, "/sign-in")


async def test_an_old_sign_in_is_confirmed_before_a_token_is_issued(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    csrf = await csrf_of(account_browser)
    assert f'href="{SESSION}"' not in (await account_browser.get("/docs")).text
    await service.clock.advance(service.services.settings.sessions.fresh_minutes * 60 + 1)
    old = await account_browser.client.post(SESSION, data={"csrf": csrf})
    assert (old.status_code, old.headers["location"]) == (303, "/confirm?next=%2Fdocs%2Fsession")
    assert f'href="{SESSION}"' in (await account_browser.get("/docs")).text
    await account_browser.get(SESSION)
    back = await account_browser.confirm(password="correct horse battery staple")
    assert (back.status_code, back.headers["location"]) == (303, "/docs")


async def test_the_session_cookie_is_no_credential_of_the_api(account_browser: AccountBrowser) -> None:
    headers = {"Sec-Fetch-Site": "same-origin"}
    refused = await account_browser.client.post(INFO, json={}, headers=headers)
    assert refused.status_code == 401


async def test_the_page_has_the_strict_policy_and_no_inline_script(service: RunningService) -> None:
    page = await service.client.get("/docs")
    other = await service.client.get("/sign-in")
    assert page.headers["content-security-policy"] == other.headers["content-security-policy"]
    assert page.text.count("<script") == page.text.count("<script src=") == 2
    assert "style=" not in page.text
    german = (await service.client.get("/docs", headers={"Accept-Language": "de"})).text
    assert ("Ausprobieren" in german, "Ausprobieren" in page.text) == (True, False)
