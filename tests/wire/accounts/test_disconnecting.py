"""What stays when a sign-in provider goes: a way in, and the sessions that were not made with it (R10, R14)."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.model import SameMailbox
from gatehouse.audit.events import AuditEvent
from gatehouse.storage.accounts.users import update_user
from tests.support.browser import AccountBrowser, HttpBrowser
from tests.support.builders import ORIGIN, a_record, an_identity
from tests.support.service import RunningService, running_service
from tests.support.vendors import Vendor
from tests.wire.accounts.test_factors_page import add_passkey
from tests.wire.accounts.test_providers import KIM, a_vendor, come_back, connect, find_user, sign_in_with

pytestmark = pytest.mark.both_databases

TOKENS: Final = "https://tokens.example"
CONFLICT: Final = 409
SEE_OTHER: Final = 303
ENDS_SESSIONS: Final = {"end_sessions": "1"}


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    environment = {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8", "GATEHOUSE__ACCOUNTS__EMAIL_SIGN_IN": "false"}
    async with running_service(installed_url, tmp_path, environment=environment) as running:
        yield running


@pytest.fixture
async def vendor(service: RunningService) -> AsyncIterator[Vendor]:
    async with a_vendor(service) as running:
        yield running


async def add_identity(service: RunningService, user: User, provider: str) -> None:
    """Connect an identity of a provider that has no sign-in here."""
    identity = an_identity(user.user_id, issuer=f"https://{provider}.example", provider=provider)
    await service.services.storage.profile.link_identity(identity, a_record(), (), rev=user.rev)


async def change(service: RunningService, user: User, **fields: object) -> None:
    stored = await service.services.storage.accounts.user(user.user_id)
    changed = replace(stored, **fields)  # type: ignore[arg-type]
    await service.services.storage.runner.write(partial(update_user, changed))


async def save(service: RunningService, **settings: object) -> None:
    await service.services.settings_editor.save(
        {f"providers.{name}": value for name, value in settings.items()}, ORIGIN
    )


# -- the last way in --------------------------------------------------------------------------------------------


async def test_id_10_identity_of_a_provider_without_sign_in_is_no_way_in(
    service: RunningService, vendor: Vendor
) -> None:
    browser = AccountBrowser(service)
    await sign_in_with(browser, vendor, **KIM)
    user = await find_user(service, vendor)
    assert user is not None
    await save(service, **{"tokens.kind": "jwt", "tokens.issuer": TOKENS, "tokens.keys_url": f"{TOKENS}/keys"})
    for provider in ("removed", "tokens"):
        await add_identity(service, user, provider)
    await browser.get("/account")
    assert (await browser.submit("/account/identities/remove", vendor.issuer)).status_code == CONFLICT
    await save(service, **{"tokens.tickets": ["1:game"]})
    await browser.get("/account")
    assert (await browser.submit("/account/identities/remove", vendor.issuer)).status_code == SEE_OTHER
    await browser.client.aclose()


async def test_id_10_last_passkey_stays_beside_a_provider_that_is_off(
    service: RunningService, account_browser: AccountBrowser, anna: User, vendor: Vendor
) -> None:
    await add_passkey(service, account_browser)
    await come_back(account_browser, vendor.sign_in(await connect(account_browser)))
    await change(service, anna, password_hash=None)
    await save(service, **{"vendor.enabled": False})
    await account_browser.get("/account")
    assert (await account_browser.submit("/account/passkey/remove")).status_code == CONFLICT
    await save(service, **{"vendor.enabled": True})
    await account_browser.get("/account")
    assert (await account_browser.submit("/account/passkey/remove")).status_code == SEE_OTHER


async def test_id_10_password_stays_beside_a_passkey_and_a_provider_that_is_off(
    service: RunningService, account_browser: AccountBrowser, vendor: Vendor
) -> None:
    await add_passkey(service, account_browser)
    await come_back(account_browser, vendor.sign_in(await connect(account_browser)))
    await save(service, **{"vendor.enabled": False})
    assert "/account/password/remove" not in (await account_browser.get("/account")).text
    assert (await account_browser.post_with_csrf("/account/password/remove")).status_code == CONFLICT
    await save(service, **{"vendor.enabled": True})
    assert await account_browser.submit_and_read_notice("/account/password/remove") == "Password removed"


async def test_id_10_code_by_email_is_no_second_factor_of_a_provider_that_is_off(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    await sign_in_with(browser_client, vendor, **KIM)
    user = await find_user(service, vendor)
    assert user is not None
    await save(service, **{"vendor.enabled": False})
    with pytest.raises(SameMailbox):
        await service.services.factors.email_codes.enable(user, origin=ORIGIN)


async def test_id_10_person_of_a_provider_that_is_off_confirms_with_a_mailed_link(
    service: RunningService, vendor: Vendor
) -> None:
    browser = AccountBrowser(service)
    await sign_in_with(browser, vendor, **KIM)
    await service.clock.advance(601)
    await save(service, **{"vendor.enabled": False})
    await browser.get("/account/delete")
    assert (await browser.follow()).headers["location"] == "/forgot"
    await browser.client.aclose()


# -- sessions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [True, False])
async def test_id_16_owner_decides_whether_sessions_of_a_sign_in_end_with_it(
    service: RunningService, account_browser: AccountBrowser, anna: User, vendor: Vendor, *, ends: bool
) -> None:
    by_provider, by_password = AccountBrowser(service), AccountBrowser(service)
    await come_back(account_browser, vendor.sign_in(await connect(account_browser)))
    await sign_in_with(by_provider, vendor)
    await by_password.sign_in_and_open_account(anna.login or "")
    fields = ENDS_SESSIONS if ends else {}
    assert await account_browser.submit_and_read_notice("/account/identities/remove", **fields)
    signed_in = [await one.is_signed_in() for one in (account_browser, by_provider, by_password)]
    assert signed_in == [True, not ends, True]
    [record] = await service.services.storage.audit.newest_records(
        1, anna.user_id, AuditEvent.IDENTITY_UNLINKED.value
    )
    assert record.details["ends_sessions"] is ends
    for browser in (by_provider, by_password):
        await browser.client.aclose()


async def test_id_16_session_that_disconnects_stays(service: RunningService, vendor: Vendor) -> None:
    here, there = AccountBrowser(service), AccountBrowser(service)
    for browser in (here, there):
        await sign_in_with(browser, vendor, **KIM)
    await come_back(here, vendor.sign_in(await connect(here), sub="person-2"))
    assert await here.submit_and_read_notice("/account/identities/remove", "person-1", **ENDS_SESSIONS)
    assert [await here.is_signed_in(), await there.is_signed_in()] == [True, False]
    for browser in (here, there):
        await browser.client.aclose()


# -- new accounts and labels ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "claims", [{"email": "kim@elsewhere.example", "email_verified": True}, {**KIM, "email_verified": False}, {}]
)
async def test_id_15_new_account_of_a_provider_needs_an_address_of_the_allowed_domains(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor, claims: dict[str, object]
) -> None:
    allowed = {"accounts.allowed_domains": ["studio.example"]}
    await service.services.settings_editor.save(allowed, ORIGIN)
    response = await sign_in_with(browser_client, vendor, **claims)
    assert (response.status_code, "not allowed to sign in here" in response.text) == (403, True)
    assert await find_user(service, vendor) is None
    await sign_in_with(browser_client, vendor, **KIM)
    assert await find_user(service, vendor) is not None
    assert (await sign_in_with(browser_client, vendor, **claims)).status_code == SEE_OTHER  # it exists now


async def test_id_06_unverified_address_is_no_label(
    service: RunningService, account_browser: AccountBrowser, anna: User, vendor: Vendor
) -> None:
    claims = {**KIM, "email": "boss@studio.example"}
    await come_back(
        account_browser, vendor.sign_in(await connect(account_browser), **{**claims, "email_verified": False})
    )
    details = await service.services.storage.profile.account_details(anna.user_id, service.clock.now())
    assert [one.label for one in details.identities] == ["kim"]
    assert "boss@studio.example" not in (await account_browser.get("/account")).text
    await sign_in_with(account_browser, vendor, **claims)
    details = await service.services.storage.profile.account_details(anna.user_id, service.clock.now())
    assert [one.label for one in details.identities] == ["boss@studio.example"]
