"""The first administrator is created with the one-time link (S-28, checklist LG-27)."""

import re

import httpx2

from gatehouse.audit.model import AuditOrigin
from tests.support.browser import AccountBrowser, totp_code
from tests.support.service import RunningService

ANNA = {
    "login": "anna@studio.example",
    "nick": "Anna",
    "password": "correct horse battery",
}


async def new_link(service: RunningService) -> str:
    return await service.services.accounts.setup.new_link(AuditOrigin(actor="test"))


async def submit(service: RunningService, token: str, **fields: str) -> httpx2.Response:
    return await service.client.post("/setup", data={**ANNA, "token": token, **fields})


async def administrators(service: RunningService) -> list[str]:
    user = await service.services.storage.accounts.user_by_login(ANNA["login"])
    if user is None:
        return []
    return list(await service.services.storage.permissions.root_roles(1, user.user_id, service.clock.now()))


async def test_opening_the_link_and_filling_the_form_makes_the_administrator(service: RunningService) -> None:
    token = await new_link(service)
    response = await service.client.get("/setup", params={"token": token})
    assert response.status_code == 200
    assert f'value="{token}"' in response.text
    done = await submit(service, token)
    assert done.status_code == 200
    assert "Welcome, Anna" in done.text
    assert await administrators(service) == ["administrator"]


async def test_setup_signs_in_and_leads_through_two_factor_sign_in_to_the_console(service: RunningService) -> None:
    account_browser = AccountBrowser(service)
    await account_browser.get(f"/setup?token={await new_link(service)}")
    done = await account_browser.post("/setup", **ANNA)
    assert '<a href="/account/totp?next=/console"' in done.text
    assert (await account_browser.get("/console")).status_code == 200
    page = await account_browser.get("/account/totp?next=/console/people/new")
    wrong = await account_browser.submit("/account/totp", otp="000000")
    assert wrong.status_code == 403
    code = totp_code(account_browser.secret_in(page), service)
    codes = await account_browser.submit("/account/totp", otp=code)
    assert '<a href="/console/people/new" role="button">' in codes.text
    assert "/account#factors" not in codes.text
    # A page elsewhere is never the next one.
    elsewhere = await account_browser.get("/account/passkey?next=https://evil.example/")
    assert 'name="next"' not in elsewhere.text
    assert 'href="https://evil.example' not in elsewhere.text
    await account_browser.client.aclose()


async def test_the_link_is_dead_once_used_and_setup_never_reopens(service: RunningService) -> None:
    token = await new_link(service)
    await submit(service, token)
    again = await submit(service, token, login="eve@studio.example")
    assert again.status_code == 403
    assert (await service.client.get("/setup", params={"token": token})).status_code == 403
    assert await service.services.accounts.setup.is_closed()


async def test_an_unknown_an_old_and_an_expired_link_look_alike(service: RunningService) -> None:
    expired = await new_link(service)
    await service.clock.advance(1_800)
    old = await new_link(service)
    await new_link(service)
    pages = set()
    for token in ("guess", old, expired):
        response = await service.client.get("/setup", params={"token": token})
        assert response.status_code == 403
        pages.add(re.sub(r"<code>\w+</code>", "", response.text).replace(token, ""))  # except our own input
    assert len(pages) == 1


async def test_invalid_setup_form_shows_the_error_and_keeps_the_link_valid(service: RunningService) -> None:
    token = await new_link(service)
    for fields, words in (
        ({"password": "short"}, "at least 10 characters"),
        ({"login": "not an address"}, "Enter an email address."),
        ({"nick": "\u202eanna"}, "1 to 64 visible characters"),
    ):
        response = await submit(service, token, **fields)
        assert response.status_code == 400
        assert words in response.text
    assert await administrators(service) == []
    assert (await submit(service, token)).status_code == 200


async def test_setup_form_echoes_escaped_input_and_never_the_password(service: RunningService) -> None:
    token = await new_link(service)
    response = await submit(service, token, nick='"><script>alert(1)</script>')
    assert "<script>" not in response.text
    assert "&lt;script&gt;" in response.text
    assert ANNA["password"] not in response.text


async def test_a_form_from_another_site_is_refused(service: RunningService) -> None:
    token = await new_link(service)
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        response = await service.client.post("/setup", data={**ANNA, "token": token}, headers=headers)
        assert response.status_code == 403
    own = {"Origin": service.base_url, "Sec-Fetch-Site": "same-origin"}
    assert (await service.client.post("/setup", data={**ANNA, "token": token}, headers=own)).status_code == 200


async def test_guessing_at_the_link_is_throttled_by_source(service: RunningService) -> None:
    token = await new_link(service)
    for _ in range(10):
        assert (await service.client.get("/setup", params={"token": "guess"})).status_code == 403
    closed = await service.client.get("/setup", params={"token": token})
    assert closed.status_code == 429
    assert int(closed.headers["retry-after"]) > 0
    await service.clock.advance(int(closed.headers["retry-after"]))
    assert (await service.client.get("/setup", params={"token": token})).status_code == 200


async def test_the_making_is_in_the_audit_log_without_the_password(service: RunningService) -> None:
    token = await new_link(service)
    await submit(service, token)
    records = await service.services.storage.audit.unsealed_records(100)
    record_by_event = {record.event: record for record in records}
    assert {"setup.link_made", "user.created", "setup.closed"} <= set(record_by_event)
    assert (record_by_event["user.created"].personal or {})["address"] == "127.0.0.1"
    assert ANNA["password"] not in repr(records)
    assert token not in repr(records)


async def test_lg_27_a_fresh_installation_has_no_account_and_no_open_setup_page(service: RunningService) -> None:
    without_link = await service.client.get("/setup")
    assert without_link.status_code == 403
    assert "required field" not in without_link.text
    assert list(await service.services.storage.accounts.all_users()) == []
