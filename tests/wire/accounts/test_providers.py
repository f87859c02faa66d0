"""Sign-in with a provider: vendors on loopback, each with its oddities (checklist ID-01 to ID-10)."""

import asyncio
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from joserfc.jwk import RSAKey
from msgspec.structs import replace

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import IMPORTED_ACCOUNT, JOINED_KEY, SELF_REGISTERED, SignInMethod, User
from gatehouse.app.housekeeping import delete_expired
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.images.model import LOGO, BadImage
from gatehouse.kernel.times import DAY
from gatehouse.oauth.model import Consent
from gatehouse.permissions.model.facts import ScopeHoldings
from gatehouse.permissions.model.rules import ROOT
from gatehouse.storage.accounts.lost_addresses import USE_EVENTS
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser, totp_code
from tests.support.builders import PASSKEY_HOST, a_passkey, a_record, a_user, an_identity
from tests.support.console import apply_document
from tests.support.mailbox import link_in_new_message
from tests.support.oauth import an_oidc_client
from tests.support.permission_builders import a_role
from tests.support.service import RunningService, running_service
from tests.support.studio import (
    PROJECT,
    Studio,
    a_studio,
    create_administrator,
    put_roles,
    set_user_holdings,
    set_user_roles,
)
from tests.support.vendors import STEAM_ID, TENANT, Answer, Vendor, run_vendor
from tests.wire.accounts.test_imported_passwords import import_lines

ORIGIN = AuditOrigin(actor="test")
CALLBACK = "/sign-in/with/vendor/callback"
EMAIL = "kim@studio.example"
KIM = {"email": EMAIL, "email_verified": True, "name": "Kim Lee", "preferred_username": "kim"}


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    allow = {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
    async with running_service(installed_url, tmp_path, environment=allow) as running:
        yield running


@asynccontextmanager
async def a_vendor(service: RunningService, kind: str = "oidc", **settings: object) -> AsyncIterator[Vendor]:
    async with run_vendor(kind, service.clock) as vendor:
        wanted = {**vendor.settings, **{f"providers.vendor.{name}": value for name, value in settings.items()}}
        await service.services.settings_editor.save(wanted, ORIGIN)
        yield vendor


@pytest.fixture
async def vendor(service: RunningService) -> AsyncIterator[Vendor]:
    async with a_vendor(service) as running:
        yield running


async def leave(browser: HttpBrowser, path: str = "/sign-in/with/vendor") -> str:
    """Start the sign-in and return where the service sends the browser."""
    response = await browser.get(path)
    assert response.status_code == 303, response.text
    return response.headers["location"]


async def come_back(browser: HttpBrowser, answer: Answer) -> httpx2.Response:
    return await browser.get(f"{CALLBACK}?{urlencode(answer)}")


async def sign_in_with(browser: HttpBrowser, vendor: Vendor, **claims: object) -> httpx2.Response:
    return await come_back(browser, vendor.sign_in(await leave(browser), **claims))


async def find_user(service: RunningService, vendor: Vendor, subject: str = "person-1") -> User | None:
    return await service.services.storage.profile.user_by_identity(vendor.issuer, subject)


async def test_first_sign_in_creates_the_account_and_the_second_finds_it(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, vendor: Vendor
) -> None:
    assert "Continue with vendor" in (await browser_client.get("/sign-in")).text
    response = await sign_in_with(browser_client, vendor, **KIM)
    assert (response.status_code, response.headers["location"]) == (303, "/account")
    user = await find_user(service, vendor)
    assert user is not None
    assert (user.login, user.email_verified, user.nick, user.name) == (EMAIL, True, "kim", "Kim Lee")
    assert "linked_vendor" in user.tag_text
    assert user.password_hash is None
    page = await browser_client.get("/account")
    assert EMAIL in page.text
    assert (await sign_in_with(other, vendor, **KIM)).status_code == 303
    again = await find_user(service, vendor)
    assert again is not None
    assert again.user_id == user.user_id
    (session, *_) = await service.services.accounts.sessions.of_user(user.user_id)
    assert session.auth == "provider"


async def test_ap_08_on_loopback_with_dev_only_providers_are_called(installed_url: str, tmp_path: Path) -> None:
    async with running_service(installed_url, tmp_path) as service, a_vendor(service) as vendor:
        assert service.services.core.dev
        browser = HttpBrowser(service)
        assert (await sign_in_with(browser, vendor, **KIM)).status_code == 303
        assert await find_user(service, vendor) is not None
        await browser.client.aclose()
        calls = vendor.server.connections
        with pytest.raises(BadImage):
            await service.services.images.loader.load(f"{vendor.base}/kim.png", LOGO, uploader="kim")
        studio = await a_studio(service)
        admin = await create_administrator(studio)
        webhook = {"action": "save", "data": {"url": f"{vendor.base}/events", "events": ["account"]}}
        await studio.expect_error(400, "webhook", webhook, admin.headers)
        assert vendor.server.connections == calls


async def test_flow_of_a_client_goes_on_after_the_provider(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    """The handle of the flow is kept with the request, not in what the provider sees."""
    flows = service.services.sign_in_flows
    await browser_client.get("/sign-in")
    handle = await flows.start("account", {"to": "/account/totp"}, browser=browser_client.cookies["gh_browser"])
    address = await leave(browser_client, f"/sign-in/with/vendor?{urlencode({'interaction': handle})}")
    assert handle not in address
    response = await come_back(browser_client, vendor.sign_in(address, **KIM))
    assert response.headers["location"] == "/account/totp"


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorCase:
    kind: str
    claims: Mapping[str, object]
    subject: str = "person-1"
    login: str | None = None  # the account gets verified addresses only
    nick: str = "kim"


MICROSOFT = {**KIM, "oid": "object-1"}
DISCORD = {"id": "80351110224678912", "username": "kim", "email": EMAIL}
GITHUB = {"id": 583231, "login": "kim", "email": "chosen@freely.example"}
GITHUB_ADDRESSES = [
    {"email": "old@studio.example", "primary": False, "verified": True},
    {"email": EMAIL, "primary": True, "verified": True},
]
CASES = [
    VendorCase(kind="google", claims=KIM, login=EMAIL),
    VendorCase(kind="twitch", claims=KIM, login=EMAIL),
    VendorCase(kind="epic", claims={"preferred_username": "kim"}),
    VendorCase(kind="microsoft", claims=MICROSOFT, subject="object-1"),  # tenants choose addresses freely
    VendorCase(kind="microsoft", claims={**MICROSOFT, "xms_edov": True}, subject="object-1", login=EMAIL),
    VendorCase(kind="discord", claims={**DISCORD, "verified": False}, subject=DISCORD["id"]),
    VendorCase(kind="discord", claims={**DISCORD, "verified": True}, subject=DISCORD["id"], login=EMAIL),
    VendorCase(kind="github", claims={**GITHUB, "emails": GITHUB_ADDRESSES}, subject="583231", login=EMAIL),
    VendorCase(kind="github", claims={**GITHUB, "emails": GITHUB_ADDRESSES[:1]}, subject="583231"),
    VendorCase(kind="steam", claims={}, subject=STEAM_ID, nick="Steam 7930"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.login}")
async def test_each_vendor_signs_a_person_in_and_only_verified_addresses_count(
    service: RunningService, browser_client: HttpBrowser, case: VendorCase
) -> None:
    async with a_vendor(service, case.kind) as vendor:
        response = await sign_in_with(browser_client, vendor, **case.claims)
        assert (response.status_code, response.headers.get("location")) == (303, "/account"), response.text
        issuers = {"microsoft": vendor.issuer.replace("{tenantid}", TENANT), "steam": f"{vendor.base}/openid"}
        issuer = issuers.get(case.kind, vendor.issuer)
        user = await service.services.storage.profile.user_by_identity(issuer, case.subject)
    assert user is not None
    assert (user.login, user.nick) == (case.login, case.nick)


async def test_apple_posts_its_answer_and_tells_the_name_once(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    async with a_vendor(service, "apple") as vendor:
        answer = vendor.sign_in(await leave(browser_client), email=EMAIL, email_verified="true")
        answer["user"] = '{"name": {"firstName": "Kim", "lastName": "Lee"}, "email": "other@evil.example"}'
        async with httpx2.AsyncClient(base_url=browser_client.client.base_url) as crossing:  # cookies stay at home
            posted = await crossing.post(
                CALLBACK, data=answer, headers={"Origin": "https://appleid.apple.com", "Sec-Fetch-Site": "cross-site"}
            )
        assert posted.status_code == 303
        response = await browser_client.get(posted.headers["location"])
        assert response.headers["location"] == "/account"
        user = await find_user(service, vendor)
        assert user is not None
        assert (user.login, user.name) == (EMAIL, "Kim Lee")


async def test_userinfo_is_asked_when_the_id_token_has_no_address(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    vendor.claims_in_userinfo = True
    assert (await sign_in_with(browser_client, vendor, **KIM)).status_code == 303
    user = await find_user(service, vendor)
    assert user is not None
    assert user.login == EMAIL


async def test_id_01_answer_is_used_once_and_only_by_the_browser_that_asked(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, vendor: Vendor
) -> None:
    answer = vendor.sign_in(await leave(browser_client), **KIM)
    await other.get("/sign-in")
    assert (await come_back(other, answer)).status_code == 400
    assert await find_user(service, vendor) is None
    assert (await come_back(browser_client, answer)).status_code == 400  # the attempt used it up
    answer = vendor.sign_in(await leave(browser_client), **KIM)
    assert (await come_back(browser_client, answer)).status_code == 303
    assert (await come_back(browser_client, answer)).status_code == 400
    late = vendor.sign_in(await leave(browser_client), **KIM)
    await service.clock.advance(601)
    assert (await come_back(browser_client, late)).status_code == 400


async def test_id_02_answer_through_another_provider_is_refused(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    """Mix-up: the attacker's provider gets the code of an honest one."""
    async with run_vendor("oidc", service.clock) as evil:
        wanted = {name.replace("vendor", "evil"): value for name, value in evil.settings.items()}
        await service.services.settings_editor.save(wanted, ORIGIN)
        answer = vendor.sign_in(await leave(browser_client), **KIM)
        response = await browser_client.get(f"/sign-in/with/evil/callback?{urlencode(answer)}")
        assert response.status_code == 400
        assert not any("/token" in request.line for request in evil.server.received)
    vendor.names_issuer = True
    await service.clock.advance(3_601)  # the discovery document is read again
    answer = vendor.sign_in(await leave(browser_client), **KIM)
    assert (await come_back(browser_client, {**answer, "iss": "https://evil.example"})).status_code == 502
    answer = vendor.sign_in(await leave(browser_client), **KIM)
    assert (await come_back(browser_client, {name: answer[name] for name in ("state", "code")})).status_code == 502
    assert await find_user(service, vendor) is None


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ("iss", "https://evil.example"),
        ("aud", "another-client"),
        ("aud", ["gatehouse-at-vendor", "another-client"]),
        ("azp", "another-client"),
        ("nonce", "another"),
        ("exp", 1_799_999_000),
        ("iat", 1_799_999_000),
        ("iat", 1_800_001_000),
        ("sub", ""),
        ("sub", 7),
        ("sub", "person\0-1"),
    ],
)
async def test_id_03_id_token_that_does_not_fit_signs_no_one_in(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor, claim: str, value: object
) -> None:
    vendor.edit_claims = lambda claims: claims.update({claim: value})
    response = await sign_in_with(browser_client, vendor, **KIM)
    assert response.status_code == 502
    assert "did not answer as expected" in response.text
    assert 'name="password"' in response.text  # the other ways are offered
    assert not await browser_has_session(browser_client)
    assert await find_user(service, vendor) is None


async def browser_has_session(browser: HttpBrowser) -> bool:
    return (await browser.client.get("/account")).status_code == 200


async def test_id_04_token_with_a_foreign_key_is_refused_and_new_keys_are_found(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    honest = vendor.key
    vendor.signing_key = RSAKey.generate_key(2048)
    assert (await sign_in_with(browser_client, vendor, **KIM)).status_code == 502
    vendor.key = vendor.signing_key = RSAKey.generate_key(2048, {"kid": "v2"})
    vendor.key_id = "v2"
    await service.clock.advance(31)  # the set is read again for a key that it lacks, but not at every token
    assert (await sign_in_with(browser_client, vendor, **KIM)).status_code == 303
    assert honest is not vendor.key


async def test_vendor_that_is_down_or_answers_nonsense_leaves_the_other_ways(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    vendor.is_down = True
    response = await browser_client.get("/sign-in/with/vendor")
    assert response.status_code == 502
    assert 'name="password"' in response.text
    vendor.is_down = False
    await service.clock.advance(10)
    answer = vendor.sign_in(await leave(browser_client), **KIM)
    vendor.is_down = True
    assert (await come_back(browser_client, answer)).status_code == 502


async def test_canceled_sign_in_says_so(browser_client: HttpBrowser, vendor: Vendor) -> None:
    state = vendor.sign_in(await leave(browser_client))["state"]
    response = await come_back(browser_client, {"state": state, "error": "access_denied"})
    assert response.status_code == 403
    assert "was canceled" in response.text


@pytest.mark.both_databases
async def test_id_05_verified_address_of_an_account_is_not_joined_and_an_unverified_one_is_freed(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    created = await service.services.accounts.administration.create(
        login=EMAIL, nick="Owner", password=PASSWORD, origin=ORIGIN, more={"email_verified": True}
    )
    response = await sign_in_with(browser_client, vendor, **KIM)
    assert response.status_code == 409
    assert "Sign in to it first" in response.text
    assert "reset its password by email" in response.text
    assert await find_user(service, vendor) is None
    await service.services.accounts.erasure.erase(created, ORIGIN)
    former = await a_squatter(service)
    assert (await sign_in_with(browser_client, vendor, **KIM)).status_code == 303
    user = await find_user(service, vendor)
    assert user is not None
    assert (user.login, user.user_id != former.user_id) == (EMAIL, True)


async def a_squatter(service: RunningService, event: AuditEvent = AuditEvent.USER_REGISTERED, **fields: Any) -> User:
    """Store a self-registered account whose address was never verified, with this record."""
    user = a_user(
        user_id="4711", login=EMAIL, password_hash="$x", email_verified=False, meta={JOINED_KEY: SELF_REGISTERED}
    )
    await service.services.storage.accounts.create_user(replace(user, **fields), a_record(event, subject="4711"))
    return await service.services.storage.accounts.user("4711")


@pytest.mark.both_databases
async def test_la_01_account_that_loses_its_only_way_in_ends_and_is_erased_after_30_days(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    await a_squatter(service)
    assert (await sign_in_with(browser_client, vendor, **KIM)).status_code == 303
    former = await service.services.storage.accounts.user("4711")
    assert (former.login, former.blocked) == (None, True)
    (record,) = await service.services.storage.audit.newest_records(1, "4711", "user.address_lost")
    assert record.details == {"provider": "vendor"}
    await service.clock.advance(30 * DAY - 60)
    await delete_expired(service.services)
    assert (await service.services.storage.accounts.user("4711")).blocked
    await service.clock.advance(60)
    await delete_expired(service.services)
    with pytest.raises(UserNotFound):
        await service.services.storage.accounts.user("4711")


@pytest.mark.both_databases
async def test_la_01_account_that_a_file_opens_again_is_not_erased(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    await a_squatter(service)
    await sign_in_with(browser_client, vendor, **KIM)
    entry = '{user_id: "4711", username: squatter, blocked: %s}'
    await apply_document(service, f"users: [{entry % 'false'}]")
    await service.clock.advance(40 * DAY)
    await apply_document(service, f"users: [{entry % 'true'}]")
    await delete_expired(service.services)
    assert (await service.services.storage.accounts.user("4711")).blocked


async def test_la_01_account_with_a_user_name_and_password_goes_on_without_the_address(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    await a_squatter(service, username="squatter")
    assert (await sign_in_with(browser_client, vendor, **KIM)).status_code == 303
    former = await service.services.storage.accounts.user("4711")
    assert (former.login, former.blocked) == (None, False)


async def test_la_01_user_name_is_no_way_in_while_no_one_signs_in_with_one(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    await a_squatter(service, username="squatter")
    await service.services.settings_editor.save({"accounts.username_sign_in": False}, ORIGIN)
    assert (await sign_in_with(browser_client, vendor, **KIM)).status_code == 303
    former = await service.services.storage.accounts.user("4711")
    assert (former.login, former.blocked) == (None, True)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "held", ["purchase", "passkey", "login", "imported", "made by an administrator", "no record"]
)
async def test_la_02_account_that_holds_something_keeps_its_unverified_address(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor, held: str
) -> None:
    meta = {"imported": {JOINED_KEY: IMPORTED_ACCOUNT}, "made by an administrator": {}}
    user = await a_squatter(
        service,
        # Of one from a file, or as old as records get, no one knows whether it signed in to a game.
        AuditEvent.USER_CREATED if held == "no record" else AuditEvent.USER_REGISTERED,
        purchases=frozenset({"steam:480"} if held == "purchase" else ()),
        meta=meta.get(held, {JOINED_KEY: SELF_REGISTERED}),
    )
    storage = service.services.storage
    if held == "passkey":
        await storage.passkeys.add_passkey(a_passkey(user_id=user.user_id), [], a_record(), (), host=PASSKEY_HOST)
    if held == "login":
        await storage.accounts.add_record(
            service.services.core.recorder.record(AuditEvent.LOGGED_IN, ORIGIN, subject=user.user_id)
        )
    assert (await sign_in_with(browser_client, vendor, **KIM)).status_code == 409
    kept = await storage.accounts.user("4711")
    assert (kept.login, kept.blocked) == (EMAIL, False)


async def give(studio: Studio, user: User, kind: str) -> None:
    """Give the account something to hold."""
    storage, to = studio.service.services.storage, user.user_id
    match kind:
        case "role":
            await put_roles(studio, a_role("player"))
            await set_user_roles(studio, to, {ROOT: ["player"]})
        case "entry":
            await set_user_holdings(studio, to, {ROOT: ScopeHoldings(private_data={"chat": {"value": False}})})
        case "group":
            group = {"action": "save", "data": {"project_id": PROJECT, "title": "Testers"}}
            made = (await studio.expect_ok("group", group, studio.owner.headers))["data"]
            members = {"group_id": made["id"], "data": {"users": [to]}}
            await studio.expect_ok("group/access", members, studio.owner.headers)
        case "ban":
            about = {"user_id": to, "application_id": studio.shop.application_id, "data": {}}
            await studio.expect_ok("user/ban", {"action": "save", **about}, studio.owner.headers)
        case "identity":
            await storage.profile.link_identity(an_identity(to), a_record(), (), rev=0)
        case "consent":
            await an_oidc_client(studio.service, "shelf")
            consent = Consent(user_id=to, client_id="shelf", scopes=("openid",), given_at=0)
            await storage.consents.add_consent(consent, a_record())
        case event:
            used = next(one for one in USE_EVENTS if one.value == event)
            record = studio.service.services.core.recorder.record(used, ORIGIN, subject=to)
            await storage.accounts.add_record(record)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "kind", ["role", "entry", "group", "ban", "identity", "consent", *(event.value for event in USE_EVENTS)]
)
async def test_la_02_account_that_holds_anything_in_an_application_keeps_its_unverified_address(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor, kind: str
) -> None:
    user = await a_squatter(service)
    await give(await a_studio(service), user, kind)
    assert (await sign_in_with(browser_client, vendor, **KIM)).status_code == 409
    assert (await service.services.storage.accounts.user("4711")).login == EMAIL


async def test_unverified_administrator_keeps_the_address(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    await service.services.accounts.administration.create(
        login=EMAIL, nick="Kim", password=PASSWORD, origin=ORIGIN, administrator=True
    )
    assert (await sign_in_with(browser_client, vendor, **KIM)).status_code == 409
    assert (await browser_client.sign_in(EMAIL)).status_code == 303


@pytest.mark.both_databases
async def test_fp_01_identity_that_a_file_brought_opens_nothing_after_the_owner_proved_the_address(
    service: RunningService, vendor: Vendor, browser_client: HttpBrowser, other: HttpBrowser
) -> None:
    """A stranger registered the address in the old system, and connected an account of a provider there."""
    row = f"{LOGIN};vendor;person-1;4711;false"
    await import_lines(service, row, header="login;provider;subject;user_id;email_verified")
    await browser_client.get("/forgot")
    await browser_client.post("/forgot", login=LOGIN)
    page = await browser_client.get(await link_in_new_message(service))
    assert "Sign-in with vendor: <bdi>person-1</bdi>" in page.text, "the login of the row could be the stranger's"
    await sign_in_with(other, vendor, email="stranger@vendor.example")
    assert (await other.get("/account")).status_code == 200
    await browser_client.post("/reset", password=PASSWORD)
    assert (await other.get("/account")).status_code == 303
    await sign_in_with(other, vendor, email="stranger@vendor.example")
    found = await find_user(service, vendor)
    assert found is not None
    assert found.user_id != "4711"


async def test_id_06_unverified_address_is_ignored_and_takes_nothing_over(
    service: RunningService, browser_client: HttpBrowser, anna: User, vendor: Vendor
) -> None:
    response = await sign_in_with(browser_client, vendor, **{**KIM, "email": anna.login, "email_verified": False})
    assert response.status_code == 303
    user = await find_user(service, vendor)
    assert user is not None
    assert (user.login, user.user_id != anna.user_id) == (None, True)
    assert (await service.services.storage.accounts.user(anna.user_id)).login == anna.login


async def test_provider_that_may_not_create_accounts_signs_in_linked_people_only(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    async with a_vendor(service, create_accounts=False) as vendor:
        response = await sign_in_with(browser_client, vendor, **KIM)
        assert response.status_code == 403
        assert "No account is connected" in response.text
        assert await find_user(service, vendor) is None


async def test_only_verified_addresses_of_the_allowed_domains_sign_in(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    async with a_vendor(service, allowed_domains=["studio.example"]) as vendor:
        for claims in ({**KIM, "email": "kim@evil.example"}, {**KIM, "email_verified": False}):
            assert (await sign_in_with(browser_client, vendor, **claims)).status_code == 403
        assert (await sign_in_with(browser_client, vendor, **KIM)).status_code == 303


@pytest.mark.both_databases
async def test_listed_claims_set_and_remove_tags(service: RunningService, browser_client: HttpBrowser) -> None:
    async with a_vendor(service, tags=["groups=art:artist", "hd=studio.example:staff"]) as vendor:
        await sign_in_with(browser_client, vendor, **KIM, groups=["art", "code"], hd="studio.example")
        user = await find_user(service, vendor)
        assert user is not None
        assert user.provided_tags == {"artist", "staff"}
        await sign_in_with(browser_client, vendor, **KIM, groups=["code"], hd="studio.example")
        user = await find_user(service, vendor)
        assert user is not None
        assert user.provided_tags == {"staff"}


async def test_id_07_second_factor_is_still_asked(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    await sign_in_with(browser_client, vendor, **KIM)
    browser = AccountBrowser(service)
    await sign_in_with(browser, vendor, **KIM)
    secret, _ = await browser.set_up_totp(service)
    response = await sign_in_with(browser_client, vendor, **KIM)
    assert response.headers["location"].startswith("/sign-in/factor")
    await browser_client.follow()
    await service.clock.advance(30)
    done = await browser_client.post("/sign-in/factor", otp=totp_code(secret, service))
    assert done.headers["location"] == "/account"
    newest = await service.services.accounts.sessions.find(browser_client.cookies["gh_session"])
    assert newest is not None
    assert (newest.session.auth, newest.session.second_factor) == (SignInMethod.TWO_STEP, "")  # amr names no password
    await browser.client.aclose()


@pytest.mark.both_databases
async def test_id_14_identity_that_is_disconnected_at_the_second_factor_opens_no_session(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor, account_browser: AccountBrowser
) -> None:
    await come_back(account_browser, vendor.sign_in(await connect(account_browser)))
    secret, _ = await account_browser.set_up_totp(service)
    response = await sign_in_with(browser_client, vendor)
    assert response.headers["location"].startswith("/sign-in/factor")
    await browser_client.follow()
    await account_browser.submit_and_read_notice("/account/identities/remove", end_sessions="1")
    await service.clock.advance(30)
    refused = await browser_client.post("/sign-in/factor", otp=totp_code(secret, service))
    assert refused.status_code == 403
    assert "gh_session" not in browser_client.cookies


async def test_application_decides_which_providers_it_offers(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    async with a_vendor(service, applications=["77"]):
        assert "Continue with" not in (await browser_client.get("/sign-in")).text
        assert (await browser_client.get("/sign-in/with/vendor")).status_code == 404


# Connecting on the account page.


async def connect(browser: AccountBrowser) -> str:
    """Press the button and return where the page leads."""
    await browser.get("/account")
    page = await browser.submit("/account/identities/connect")
    assert page.status_code == 200, page.text
    return page.headers["refresh"].removeprefix("0; url=")


async def test_owner_connects_and_disconnects_a_provider(
    service: RunningService, account_browser: AccountBrowser, other: HttpBrowser, anna: User, vendor: Vendor
) -> None:
    response = await come_back(account_browser, vendor.sign_in(await connect(account_browser), **KIM))
    assert response.headers["location"] == "/account#identities", response.text
    assert account_browser.notice_in(await account_browser.get("/account")) == "Sign-in connected"
    assert (await sign_in_with(other, vendor, **KIM)).headers["location"] == "/account"
    user = await find_user(service, vendor)
    assert user is not None
    assert (user.user_id, user.login) == (anna.user_id, anna.login)
    notice = await account_browser.submit_and_read_notice("/account/identities/remove")
    assert notice == "Sign-in disconnected"
    user = await service.services.storage.accounts.user(anna.user_id)
    assert "linked_vendor" not in user.tag_text
    assert await find_user(service, vendor) is None


async def test_id_08_identity_of_another_account_is_not_connected(
    service: RunningService, account_browser: AccountBrowser, other: HttpBrowser, vendor: Vendor
) -> None:
    await sign_in_with(other, vendor, **KIM)
    owner = await find_user(service, vendor)
    response = await come_back(account_browser, vendor.sign_in(await connect(account_browser), **KIM))
    assert response.status_code == 409
    assert "connected to another account" in response.text
    assert await find_user(service, vendor) == owner


async def test_id_09_answer_to_a_link_request_connects_no_other_account(
    service: RunningService, account_browser: AccountBrowser, vendor: Vendor
) -> None:
    """Linking CSRF: the browser is signed in as someone else, or signed out everywhere, when the answer comes."""
    await service.services.accounts.administration.create(
        login="ben@studio.example", nick="Ben", password=PASSWORD, origin=ORIGIN
    )
    answer = vendor.sign_in(await connect(account_browser), **KIM)
    await account_browser.sign_in("ben@studio.example")
    assert (await come_back(account_browser, answer)).status_code == 400
    assert await find_user(service, vendor) is None


@pytest.mark.both_databases
async def test_id_09_sign_out_everywhere_while_the_provider_answers_connects_nothing(
    service: RunningService, account_browser: AccountBrowser, anna: User, vendor: Vendor
) -> None:
    """Else a stolen session that is connecting a provider would leave a way in."""
    answer = vendor.sign_in(await connect(account_browser), **KIM)

    def sign_out_everywhere() -> asyncio.Future[Any]:
        return asyncio.ensure_future(service.services.accounts.sessions.sign_out_everywhere(anna.user_id, ORIGIN))

    vendor.server.pause = sign_out_everywhere
    assert (await come_back(account_browser, answer)).status_code == 400
    assert await find_user(service, vendor) is None


async def test_id_10_last_sign_in_method_cannot_be_removed(service: RunningService, vendor: Vendor) -> None:
    browser = AccountBrowser(service)
    await sign_in_with(browser, vendor, **KIM)
    await browser.get("/account")
    response = await browser.submit("/account/identities/remove")
    assert response.status_code == 409
    assert "only sign-in method" in response.text
    assert await find_user(service, vendor) is not None
    await browser.client.aclose()


async def test_issuer_with_a_slash_more_names_the_same_identities(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    async with run_vendor("oidc", service.clock) as vendor:
        wanted = {**vendor.settings, "providers.vendor.issuer": f"{vendor.issuer}/"}
        await service.services.settings_editor.save(wanted, ORIGIN)
        assert (await sign_in_with(browser_client, vendor, **KIM)).status_code == 303
        assert await find_user(service, vendor) is not None


async def test_encrypted_key_of_apple_is_refused(service: RunningService, browser_client: HttpBrowser) -> None:
    async with run_vendor("apple", service.clock) as vendor:
        locked = vendor.apple_key.private_bytes(
            Encoding.DER, PrivateFormat.PKCS8, BestAvailableEncryption(b"password")
        )
        wanted = {**vendor.settings, "providers.vendor.private_key": b64encode(locked).decode()}
        await service.services.settings_editor.save(wanted, ORIGIN)
        answer = vendor.sign_in(await leave(browser_client), email=EMAIL)
        assert (await come_back(browser_client, answer)).status_code == 502
        assert await find_user(service, vendor) is None


async def test_connecting_needs_a_fresh_sign_in(
    service: RunningService, account_browser: AccountBrowser, vendor: Vendor
) -> None:
    await service.clock.advance(601)
    await account_browser.get("/account")
    response = await account_browser.submit("/account/identities/connect")
    assert response.headers["location"].startswith("/confirm")
    assert vendor.server.received == []


# Real upstreams: another Gatehouse.


async def test_another_gatehouse_is_a_provider(
    service: RunningService, browser_client: HttpBrowser, tmp_path: Path
) -> None:
    """The upstream's own pages sign the person in; its id_token is verified with its published keys."""
    directory = tmp_path / "upstream"
    directory.mkdir()
    async with running_service(f"sqlite:///{directory}/up.db", directory, clock=service.clock) as upstream:
        here = await an_oidc_client(
            upstream, "downstream", redirect_uris=(f"{service.base_url}{CALLBACK}",), first_party=True
        )
        settings = {
            "issuer": upstream.base_url,
            "client_id": "downstream",
            "client_secret": here.secret,
            "create_accounts": True,
        }
        wanted = {f"providers.vendor.{name}": value for name, value in settings.items()}
        await service.services.settings_editor.save(wanted, ORIGIN)
        kim = await upstream.services.accounts.administration.create(
            login=EMAIL, nick="Kim", password=PASSWORD, origin=ORIGIN, more={"email_verified": True}
        )
        there = HttpBrowser(upstream)
        address = await leave(browser_client)
        page = await there.get(httpx2.URL(address).raw_path.decode())
        await there.follow()
        page = await there.post("/sign-in", login=EMAIL, password=PASSWORD)
        answer = dict(httpx2.URL(page.headers["location"]).params)
        await there.client.aclose()
        response = await come_back(browser_client, answer)
        assert response.headers.get("location") == "/account", response.text
    user = await service.services.storage.profile.user_by_identity(upstream.base_url, kim.user_id)
    assert user is not None
    assert (user.login, user.email_verified) == (EMAIL, True)


async def test_person_with_only_a_provider_confirms_with_it(service: RunningService, vendor: Vendor) -> None:
    browser = AccountBrowser(service)
    await sign_in_with(browser, vendor, **KIM)
    await service.clock.advance(601)
    assert (await browser.get("/account/delete")).headers["location"].startswith("/confirm")
    await browser.follow()
    page = await browser.follow()
    link = re.search(r'href="(/sign-in/with/vendor\?interaction=[^"]+)"', page.text)
    assert link is not None, page.text
    response = await come_back(browser, vendor.sign_in(await leave(browser, unescape(link[1])), **KIM))
    assert response.headers["location"] == "/account/delete"
    await browser.follow()
    assert (await browser.submit("/account/delete", login=EMAIL)).status_code == 200
    assert await find_user(service, vendor) is None
    await browser.client.aclose()


async def test_id_11_account_of_an_unproved_address_connects_no_provider(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    """Otherwise a stranger who registered the address still gets in after its owner has reset the password."""
    await browser_client.get("/register")
    await browser_client.post("/register", login=EMAIL, nick="Mallory", password=PASSWORD)
    browser = AccountBrowser(service)
    await browser.sign_in_and_open_account(EMAIL)
    response = await come_back(browser, vendor.sign_in(await connect(browser), **KIM))
    assert response.status_code == 409
    assert "Confirm your email address first" in response.text
    assert await find_user(service, vendor) is None
    await browser.client.aclose()


async def test_id_12_provider_that_may_answer_silently_proves_nothing_fresh(
    service: RunningService, account_browser: AccountBrowser, vendor: Vendor
) -> None:
    await come_back(account_browser, vendor.sign_in(await connect(account_browser), **KIM))
    address = await leave(account_browser)
    assert "prompt=login" in address
    response = await come_back(account_browser, vendor.sign_in(address, **KIM))
    assert response.headers["location"] == "/account"
    assert (await account_browser.get("/account/delete")).headers["location"].startswith("/confirm")  # by password
    old = vendor.sign_in(await leave(account_browser), **KIM, auth_time=service.clock.now() - 3_600)
    assert (await come_back(account_browser, old)).status_code == 502


async def test_id_13_another_site_starts_no_sign_in(browser_client: HttpBrowser, vendor: Vendor) -> None:
    for site in ("cross-site", "same-site"):
        response = await browser_client.client.get("/sign-in/with/vendor", headers={"Sec-Fetch-Site": site})
        assert (response.status_code, response.headers["location"]) == (303, "/sign-in")
    assert vendor.server.received == []


async def test_administrator_tests_a_provider_and_no_account_is_made(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser
) -> None:
    await apply_document(service)
    test = "/console/settings/providers/vendor/test"
    async with a_vendor(service, enabled=False) as vendor:
        await browser_client.sign_in("ada@studio.example")
        assert (await browser_client.get("/sign-in/with/vendor")).status_code == 404  # it is turned off
        page = await come_back(browser_client, vendor.sign_in(await leave(browser_client, test), **KIM))
        assert page.status_code == 200
        assert all(text in page.text for text in ("Kim Lee", "preferred_username", EMAIL, "No account was created"))
        assert await find_user(service, vendor) is None
        assert await service.services.storage.accounts.user_by_login(EMAIL) is None
        (record,) = await service.services.storage.audit.newest_records(9, "", "installation.provider_tested")
        assert (record.details["provider"], "Kim" in str(record.details)) == ("vendor", False)
        # The answer belongs to the browser and to the session that asked.
        address = await leave(browser_client, test)
        assert "Kim Lee" not in (await come_back(other, vendor.sign_in(address, **KIM))).text
        address = await leave(browser_client, test)
        await browser_client.get("/account")
        await browser_client.post("/sign-out")
        await browser_client.sign_in("ada@studio.example")
        assert "Kim Lee" not in (await come_back(browser_client, vendor.sign_in(address, **KIM))).text
        await other.sign_in("olga@studio.example")
        assert (await other.get(test)).status_code == 403
