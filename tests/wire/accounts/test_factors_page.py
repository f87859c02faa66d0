"""Second factors on the account page, and the fresh proof that changing them needs."""

import re
from functools import partial
from html import unescape

import httpx2
import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import JOINED_KEY, SELF_REGISTERED, User
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.storage.accounts.second_factors import put_recovery_codes
from gatehouse.storage.accounts.users import update_user
from tests.support.authenticator import Authenticator
from tests.support.browser import LOGIN, PASSWORD, RECOVERY_CODE, AccountBrowser, HttpBrowser, totp_code
from tests.support.mailbox import new_messages
from tests.support.oauth import an_oidc_client, claims_of
from tests.support.second_factors import wrong_code
from tests.support.service import RunningService

OPTIONS = re.compile(r'data-options="([^"]+)"')
STALE = 601  # seconds after which a proof is no longer fresh


async def read_user(service: RunningService, user: User) -> User:
    return await service.services.storage.accounts.user(user.user_id)


async def change(service: RunningService, user: User, **fields: object) -> None:
    changed = replace(await read_user(service, user), **fields)  # type: ignore[arg-type]
    await service.services.storage.runner.write(partial(update_user, changed))


def options_in(page: httpx2.Response) -> str:
    match = OPTIONS.search(page.text)
    assert match is not None, page.text
    return unescape(match.group(1))


async def add_passkey(
    service: RunningService, account_browser: AccountBrowser, name: str = "Laptop"
) -> Authenticator:
    authenticator = Authenticator(service.base_url)
    options = options_in(await account_browser.get("/account/passkey"))
    await account_browser.submit("/account/passkey", name=name, credential=authenticator.create(options))
    return authenticator


# -- authenticator app --------------------------------------------------------------------------------


@pytest.mark.usefixtures("anna")
async def test_setup_of_a_factor_survives_sign_in_and_fresh_proof_with_the_page_that_asked_for_it(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    address = "/account/totp?next=%2Fconsole%2Fpeople%3Fq%3Dnora"
    await browser_client.get(address)
    await browser_client.follow()
    signed_in = await browser_client.post("/sign-in", login=LOGIN, password=PASSWORD)
    assert (signed_in.status_code, signed_in.headers["location"]) == (303, address)
    await service.clock.advance(STALE)
    await browser_client.get(address)
    await browser_client.follow()
    proved = await browser_client.post("/confirm", password=PASSWORD)
    assert (proved.status_code, proved.headers["location"]) == (303, address)
    assert 'name="next" value="/console/people?q=nora"' in (await browser_client.follow()).text


async def test_an_authenticator_app_is_set_up_and_asked_for_at_the_next_sign_in(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser, anna: User
) -> None:
    secret, codes = await account_browser.set_up_totp(service)
    assert len(set(codes)) == 10
    assert (await read_user(service, anna)).system_tags == {"2step", "2step_totp"}
    page = (await account_browser.get("/account")).text
    assert "on since" in page
    assert "10 codes left" in page
    (message,) = await new_messages(service)
    assert (message.to, message.subject) == (LOGIN, "A second factor was added")
    await service.clock.advance(30)
    assert "/sign-in/factor" in (await browser_client.sign_in(LOGIN)).headers["location"]
    await browser_client.follow()
    assert (await browser_client.post("/sign-in/factor", otp=totp_code(secret, service))).status_code == 303
    assert (await browser_client.get("/account")).status_code == 200


async def test_the_secret_stays_the_same_until_its_code_is_right(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    first = account_browser.secret_in(await account_browser.get("/account/totp"))
    response = await account_browser.submit("/account/totp", otp=wrong_code(totp_code(first, service)))
    assert response.status_code == 403
    assert account_browser.problem_in(response) == "Wrong code. Check it and try again."
    assert account_browser.secret_in(response) == first
    assert (
        len(
            RECOVERY_CODE.findall((await account_browser.submit("/account/totp", otp=totp_code(first, service))).text)
        )
        == 10
    )


async def test_a_set_up_that_waited_too_long_starts_anew(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    secret = account_browser.secret_in(await account_browser.get("/account/totp"))
    page = account_browser.page
    await service.clock.advance(1_800)
    await prove_again(account_browser, password=PASSWORD)
    await account_browser.get("/account/totp")
    assert account_browser.page is not None
    assert account_browser.secret_in(account_browser.page) != secret
    assert page is not None
    assert (await account_browser.submit("/account/totp", otp=totp_code(secret, service))).status_code == 403
    assert not (await read_user(service, anna)).has_second_factor


async def test_totp_removal_also_removes_the_recovery_codes(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await account_browser.set_up_totp(service)
    await new_messages(service)
    assert await account_browser.submit_and_read_notice("/account/totp/remove") == "Authenticator app removed"
    assert not (await read_user(service, anna)).has_second_factor
    assert (await service.services.storage.second_factors.factor_overview(anna.user_id)).recovery_left == 0
    (message,) = await new_messages(service)
    assert message.to == LOGIN
    again = await account_browser.post_with_csrf("/account/totp/remove")
    assert again.status_code == 409
    assert "changed in the meantime" in account_browser.problem_in(again)


async def test_a_second_app_does_not_replace_the_first_by_a_form_kept_open(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await account_browser.set_up_totp(service)
    sealed = (await read_user(service, anna)).sealed_totp
    assert (await account_browser.get("/account/totp")).headers["location"] == "/account#factors"
    assert (await account_browser.post_with_csrf("/account/totp", otp="000000")).headers[
        "location"
    ] == "/account#factors"
    assert (await read_user(service, anna)).sealed_totp == sealed


async def test_an_address_that_was_only_typed_is_confirmed_before_any_factor_is_added(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await change(service, anna, meta={JOINED_KEY: SELF_REGISTERED})
    for path in ("/account/totp", "/account/passkey"):
        response = await account_browser.get(path)
        assert response.status_code == 409
        assert account_browser.problem_in(response) == "Confirm your email address first."


# -- passkeys -----------------------------------------------------------------------------------------


async def test_a_passkey_is_added_named_used_and_removed(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser, anna: User
) -> None:
    authenticator = await add_passkey(service, account_browser)
    assert account_browser.page is not None
    assert len(RECOVERY_CODE.findall(account_browser.page.text)) == 10
    assert "never used" in (await account_browser.get("/account")).text
    await browser_client.get("/sign-in")
    assert browser_client.page is not None
    credential = authenticator.get(options_in(browser_client.page))
    await browser_client.post("/sign-in/passkey", credential=credential)
    page = (await browser_client.follow()).text
    assert "used <time" in page
    notice = await account_browser.submit_and_read_notice("/account/passkey/rename", name="Blue key")
    assert notice == "Passkey renamed"
    assert "Blue key" in (await account_browser.get("/account")).text
    assert await account_browser.submit_and_read_notice("/account/passkey/remove") == "Passkey removed"
    assert (await read_user(service, anna)).passkeys == 0


async def test_id_token_after_a_passkey_alone_says_that_it_cannot_be_phished(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser, anna: User
) -> None:
    """Also for an account without a password, which only has the passkey."""
    authenticator = await add_passkey(service, account_browser)
    await change(service, anna, password_hash=None)
    shelf = await an_oidc_client(service, first_party=True)
    await browser_client.get(shelf.authorize_path(scope="openid", acr_values="urn:gatehouse:phr"))
    page = await browser_client.follow()
    response = await browser_client.post("/sign-in/passkey", credential=authenticator.get(options_in(page)))
    tokens = await shelf.tokens(shelf.code_from(response.headers["location"]))
    claims = claims_of(tokens["id_token"])
    assert (claims["sub"], claims["acr"]) == (anna.user_id, "urn:gatehouse:phr")
    assert claims["amr"] == ["pop", "user", "mfa"]


async def test_a_second_passkey_brings_no_new_recovery_codes(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    await add_passkey(service, account_browser)
    await add_passkey(service, account_browser, "Phone")
    page = await account_browser.follow()
    assert account_browser.notice_in(page) == "Passkey added"
    assert "10 codes left" in page.text


@pytest.mark.parametrize("lie", [{"origin": "https://evil.example"}, {"user_verified": False}, {"challenge": "AAAA"}])
async def test_forged_passkey_registration_is_refused(
    service: RunningService, account_browser: AccountBrowser, anna: User, lie: dict[str, object]
) -> None:
    options = options_in(await account_browser.get("/account/passkey"))
    credential = Authenticator(service.base_url).create(options, **lie)
    response = await account_browser.submit("/account/passkey", name="Laptop", credential=credential)
    assert response.status_code == 403
    assert "was not accepted" in account_browser.problem_in(response)
    assert 'value="Laptop"' in response.text
    assert (await read_user(service, anna)).passkeys == 0


async def test_a_challenge_is_answered_once_and_by_the_browser_it_was_given_to(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    options = options_in(await account_browser.get("/account/passkey"))
    credential = Authenticator(service.base_url).create(options)
    elsewhere = AccountBrowser(service)
    await elsewhere.sign_in_and_open_account()
    await elsewhere.get("/account/passkey")
    refusal = await elsewhere.submit("/account/passkey", name="Laptop", credential=credential)
    assert refusal.status_code == 403
    await elsewhere.client.aclose()
    assert (await account_browser.submit("/account/passkey", name="Laptop", credential=credential)).status_code == 200
    await account_browser.get("/account/passkey")
    assert (await account_browser.submit("/account/passkey", name="Again", credential=credential)).status_code == 403
    assert (await read_user(service, anna)).passkeys == 1


@pytest.mark.parametrize("name", ["", "x" * 65, "key\u202e"])
async def test_a_name_that_cannot_be_is_refused(
    service: RunningService, account_browser: AccountBrowser, name: str
) -> None:
    options = options_in(await account_browser.get("/account/passkey"))
    credential = Authenticator(service.base_url).create(options)
    response = await account_browser.submit("/account/passkey", name=name, credential=credential)
    assert response.status_code == 400
    assert "1 to 64 visible characters" in account_browser.problem_in(response)
    await add_passkey(service, account_browser)
    await account_browser.get("/account")
    response = await account_browser.submit("/account/passkey/rename", name=name)
    assert response.status_code == 400
    assert "1 to 64 visible characters" in account_browser.problem_in(response)


async def test_no_one_renames_or_removes_someone_elses_passkey(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await add_passkey(service, account_browser)
    (key,) = await service.services.storage.passkeys.passkeys_of_user(anna.user_id)
    await service.services.accounts.administration.create(
        login="bob@studio.example", nick="Bob", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    bob = AccountBrowser(service)
    await bob.sign_in_and_open_account("bob@studio.example")
    for path, fields in (("/account/passkey/rename", {"name": "Mine"}), ("/account/passkey/remove", {})):
        for passkey_id in (key.passkey_id, "", "!"):
            assert (await bob.post_with_csrf(path, passkey_id=passkey_id, **fields)).status_code == 409
    assert await service.services.storage.passkeys.passkeys_of_user(anna.user_id) == [key]
    await bob.client.aclose()


async def test_last_sign_in_method_is_not_removed(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await add_passkey(service, account_browser)
    await change(service, anna, password_hash=None)
    await account_browser.get("/account")
    response = await account_browser.submit("/account/passkey/remove")
    assert response.status_code == 409
    assert "only sign-in method" in account_browser.problem_in(response)
    assert (await read_user(service, anna)).passkeys == 1


async def test_pf_01_last_passkey_is_removed_only_where_email_signs_in(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await service.services.settings_editor.save({"accounts.email_sign_in": True}, AuditOrigin(actor="test"))
    await add_passkey(service, account_browser)
    await change(service, anna, password_hash=None, email_verified=False)
    await account_browser.get("/account")
    assert (await account_browser.submit("/account/passkey/remove")).status_code == 409
    await change(service, anna, password_hash=None, email_verified=True, email_code=True)
    await account_browser.get("/account")
    assert (await account_browser.submit("/account/passkey/remove")).status_code == 409  # two codes by email
    await change(service, anna, password_hash=None, email_verified=True, email_code=False)
    await account_browser.get("/account")
    assert (await account_browser.submit("/account/passkey/remove")).status_code == 303


@pytest.mark.both_databases
async def test_pf_02_password_is_removed_beside_a_passkey_and_another_way_to_recover(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser, anna: User
) -> None:
    assert "/account/password/remove" not in (await account_browser.get("/account")).text
    assert (await account_browser.post_with_csrf("/account/password/remove")).status_code == 409
    await add_passkey(service, account_browser)
    await change(service, anna, email_verified=False)
    assert (await account_browser.post_with_csrf("/account/password/remove")).status_code == 409
    await change(service, anna, email_verified=True)
    await new_messages(service)
    notice = await account_browser.submit_and_read_notice("/account/password/remove")
    assert notice == "Password removed"
    assert (await read_user(service, anna)).password_hash is None
    assert [message.subject for message in await new_messages(service)] == ["Your password was removed"]
    assert (await browser_client.sign_in(LOGIN)).status_code == 403
    refused = await service.client.post("/proxy/api/login", json={"login": LOGIN, "password": PASSWORD})
    assert refused.json()["status"] == "LOGINERROR"
    await account_browser.get("/account")
    assert (await account_browser.submit("/account/passkey/remove")).status_code == 409  # the last method now


async def test_pf_02_removing_the_password_needs_a_recent_sign_in(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await add_passkey(service, account_browser)
    await change(service, anna, email_verified=True)
    await account_browser.get("/account")
    await service.clock.advance(601)
    response = await account_browser.submit("/account/password/remove")
    assert response.headers["location"].startswith("/confirm")
    assert (await read_user(service, anna)).password_hash is not None


async def test_pf_03_code_by_email_is_no_second_factor_of_a_person_who_signs_in_by_email(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await change(service, anna, password_hash=None, email_verified=True)
    await account_browser.get("/account")
    response = await account_browser.submit("/account/email-code")
    assert response.status_code == 409
    assert "not a second factor" in account_browser.problem_in(response)


# -- codes --------------------------------------------------------------------------------------------


async def test_codes_by_mail_are_switched_on_and_off_for_a_confirmed_address_only(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    response = await account_browser.submit("/account/email-code")
    assert response.status_code == 409
    assert account_browser.problem_in(response) == "Confirm your email address first."
    await change(service, anna, email_verified=True)
    await account_browser.get("/account")
    assert len(RECOVERY_CODE.findall((await account_browser.submit("/account/email-code")).text)) == 10
    assert (await read_user(service, anna)).email_code
    assert (await account_browser.post_with_csrf("/account/email-code", on="1")).status_code == 409
    assert await account_browser.submit_and_read_notice("/account/email-code") == "Email codes turned off"
    assert not (await read_user(service, anna)).email_code
    assert (await account_browser.post_with_csrf("/account/email-code", on="yes")).status_code == 400


async def test_new_recovery_codes_end_the_old_ones_and_are_shown_once(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser
) -> None:
    refusal = await account_browser.submit("/account/recovery-codes")
    assert refusal.status_code == 409
    assert "Set up a second factor" in account_browser.problem_in(refusal)
    _, old = await account_browser.set_up_totp(service)
    page = (await account_browser.get("/account")).text
    warning = page.partition("Create new codes</summary>")[2].partition("</details>")[0]
    assert "The 10 remaining codes stop working" in warning  # shown before the action, without JavaScript
    assert 'action="/account/recovery-codes"' in warning
    new = RECOVERY_CODE.findall((await account_browser.submit("/account/recovery-codes")).text)
    assert len(new) == 10
    assert not set(new) & set(old)
    assert not RECOVERY_CODE.findall((await account_browser.get("/account")).text)
    await browser_client.sign_in(LOGIN)
    await browser_client.follow()
    assert (await browser_client.post("/sign-in/factor", method="recovery", otp=old[0])).status_code == 403
    assert (await browser_client.post("/sign-in/factor", method="recovery", otp=new[0])).status_code == 303


# -- a fresh proof ------------------------------------------------------------------------------------


async def prove_again(account_browser: AccountBrowser, **proof: str) -> httpx2.Response:
    await account_browser.get("/confirm?next=/account/totp")
    return await account_browser.submit("/confirm", **proof)


FRESH_PAGES = ["/account/totp", "/account/passkey", "/account/delete"]
FRESH_ACTS: list[tuple[str, dict[str, str], str]] = [
    ("/account/email", {"login": "new@studio.example"}, "/account#email"),
    ("/account/totp", {"otp": "000000"}, "/account/totp"),
    ("/account/totp/remove", {}, "/account#factors"),
    ("/account/passkey", {"name": "x", "credential": "{}"}, "/account/passkey"),
    ("/account/passkey/remove", {"passkey_id": "x"}, "/account#factors"),
    ("/account/email-code", {"on": "1"}, "/account#factors"),
    ("/account/recovery-codes", {}, "/account#factors"),
    ("/account/sessions/end", {"session_id": "x"}, "/account#sessions"),
    ("/account/sessions/end-others", {}, "/account#sessions"),
    ("/account/delete", {"login": LOGIN}, "/account/delete"),
]


@pytest.mark.parametrize("act", FRESH_ACTS, ids=lambda act: str(act[0]))
async def test_sign_in_method_change_needs_a_recent_confirmation_and_returns(
    service: RunningService, account_browser: AccountBrowser, anna: User, act: tuple[str, dict[str, str], str]
) -> None:
    path, fields, back = act
    before = await read_user(service, anna)
    await service.clock.advance(STALE)
    response = await account_browser.post_with_csrf(path, **fields)
    assert (response.status_code, response.headers["location"].partition("=")[0]) == (303, "/confirm?next")
    assert (await read_user(service, anna)) == before
    proved = await account_browser.confirm(password=PASSWORD)
    assert (proved.status_code, proved.headers["location"]) == (303, back)


async def test_pages_behind_a_fresh_proof_show_nothing_before_it(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    await service.clock.advance(STALE)
    for path in FRESH_PAGES:
        response = await account_browser.get(path)
        assert response.status_code == 303
        assert (await account_browser.follow()).url.path == "/confirm"
    await prove_again(account_browser, password=PASSWORD)
    for path in FRESH_PAGES:
        assert (await account_browser.get(path)).status_code == 200


async def test_a_proof_that_is_still_fresh_is_not_asked_for(account_browser: AccountBrowser) -> None:
    response = await account_browser.get("/confirm?next=/account/delete")
    assert (response.status_code, response.headers["location"]) == (303, "/account/delete")


async def test_confirmation_with_a_second_factor_needs_password_and_code(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    secret, codes = await account_browser.set_up_totp(service)
    await service.clock.advance(STALE)
    wrong_password = await prove_again(account_browser, password="not it", otp=totp_code(secret, service))
    assert (wrong_password.status_code, account_browser.problem_in(wrong_password)) == (
        403,
        "Your current password is wrong.",
    )
    for otp in ("", wrong_code(totp_code(secret, service)), codes[0][::-1]):
        response = await prove_again(account_browser, password=PASSWORD, otp=otp)
        assert (response.status_code, account_browser.problem_in(response)) == (
            403,
            "Wrong code. Check it and try again.",
        )
    assert (await account_browser.get("/account/totp/")).status_code == 404
    assert (await account_browser.get("/account/delete")).status_code == 303
    assert (await prove_again(account_browser, password=PASSWORD, otp=totp_code(secret, service))).status_code == 303
    assert (await account_browser.get("/account/delete")).status_code == 200
    await service.clock.advance(STALE)
    assert (await prove_again(account_browser, password=PASSWORD, otp=codes[0])).status_code == 303


async def test_a_passkey_alone_is_proof_enough(service: RunningService, account_browser: AccountBrowser) -> None:
    authenticator = await add_passkey(service, account_browser)
    await service.clock.advance(STALE)
    options = options_in(await account_browser.get("/confirm?next=/account/passkey"))
    lie = authenticator.get(options, user_verified=False)
    refusal = await account_browser.submit("/confirm", credential=lie)
    assert (refusal.status_code, "was not accepted" in account_browser.problem_in(refusal)) == (403, True)
    proved = await account_browser.submit("/confirm", credential=authenticator.get(options_in(refusal)))
    assert (proved.status_code, proved.headers["location"]) == (303, "/account/passkey")


async def test_confirmation_asks_only_for_the_passkey_when_no_code_is_available(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await add_passkey(service, account_browser)
    await service.clock.advance(STALE)
    assert 'name="password"' in (await account_browser.get("/confirm")).text
    await service.services.storage.runner.write(partial(put_recovery_codes, anna.user_id, ()))
    page = await account_browser.get("/confirm")
    assert 'name="password"' not in page.text
    assert options_in(page)
    assert (await account_browser.post_with_csrf("/confirm", password=PASSWORD)).status_code == 403


async def test_a_code_by_mail_can_be_sent_for_it(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await change(service, anna, email_verified=True)
    await account_browser.get("/account")
    await account_browser.submit("/account/email-code")
    await service.clock.advance(STALE)
    await new_messages(service)
    await account_browser.get("/confirm?next=/account/email-code")
    sent = await account_browser.submit("/confirm", method="email")
    assert sent.headers["location"] == "/confirm?next=%2Faccount%2Femail-code"
    page = await account_browser.follow()
    assert account_browser.notice_in(page) == "New code sent"
    (message,) = await new_messages(service)
    match = re.search(r"\b[0-9]{6}\b", message.text)
    assert match is not None
    proved = await account_browser.submit("/confirm", password=PASSWORD, otp=match.group())
    assert (proved.status_code, proved.headers["location"]) == (303, "/account#factors")


async def test_letters_with_codes_are_limited(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await change(service, anna, email_verified=True)
    await account_browser.get("/account")
    await account_browser.submit("/account/email-code")
    await service.clock.advance(STALE)
    await new_messages(service)
    for _ in range(7):
        await account_browser.get("/confirm")
        last = await account_browser.submit("/confirm", method="email")
    assert last.status_code == 429
    assert len(await new_messages(service)) == 5


async def test_guesses_are_counted_with_those_at_the_sign_in(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    await service.clock.advance(STALE)
    for _ in range(10):
        assert (await prove_again(account_browser, password="a guess")).status_code == 403
    closed = await prove_again(account_browser, password=PASSWORD)
    assert closed.status_code == 429
    assert int(closed.headers["retry-after"]) > 0
    assert (await account_browser.sign_in(LOGIN)).status_code == 429


async def test_an_account_with_nothing_to_prove_is_led_to_a_link_by_mail(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await change(service, anna, password_hash=None)
    await service.clock.advance(STALE)
    response = await account_browser.get("/confirm?next=/account/totp")
    assert (response.status_code, response.headers["location"]) == (303, "/forgot")
    assert (await account_browser.post_with_csrf("/confirm", password=PASSWORD)).status_code == 403


async def test_a_session_ended_from_elsewhere_is_not_revived_by_a_proof(
    service: RunningService, account_browser: AccountBrowser, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.clock.advance(STALE)
    await account_browser.get("/confirm?next=/account/totp")
    matches = service.services.accounts.passwords.matches

    async def match_slowly(password: str, password_hash: str) -> bool:
        sessions = await service.services.storage.sessions.sessions_of_user(anna.user_id, service.clock.now())
        entry = service.services.core.recorder.record(
            AuditEvent.SIGNED_OUT, AuditOrigin(actor="test"), subject=anna.user_id
        )
        assert await service.services.storage.sessions.end_session(anna.user_id, sessions[0].session_id, entry)
        return await matches(password, password_hash)

    monkeypatch.setattr(service.services.accounts.passwords, "matches", match_slowly)
    response = await account_browser.submit("/confirm", password=PASSWORD)
    assert (response.status_code, response.headers["location"]) == (303, "/sign-in")
    assert not await account_browser.is_signed_in()
