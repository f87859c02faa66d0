"""Tags and purchases that providers set have a source, and end with it (R14, checklist ID-14)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from gatehouse.accounts.model import User
from gatehouse.app.housekeeping import apply_settings
from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.stored_settings import StoredSetting
from tests.support.browser import AccountBrowser, HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.guests import Device, register_upgrade
from tests.support.platforms import PUBLISHER_KEY, STEAM_APP, SteamWebApi
from tests.support.service import RunningService, running_service
from tests.support.studio import Person, Studio, a_studio, audit_records, create_administrator
from tests.support.vendors import STEAM_ID, Vendor, run_vendor
from tests.wire.accounts.test_guest_upgrades import provider_link
from tests.wire.accounts.test_providers import KIM, a_vendor, come_back, connect, find_user, leave, sign_in_with
from tests.wire.provision.test_every_account import apply, export

pytestmark = pytest.mark.both_databases

SEE_OTHER: Final = 303
ART: Final = {"groups": ["art"]}
ARTISTS: Final = "groups=art:artist"
OTHER_STEAM_ID: Final = "76561197960287931"
VAC: Final = "vacbanned=true:vac_banned"


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    environment = {"GATEHOUSE__GUESTS__ENABLED": "true", "GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
    async with running_service(installed_url, tmp_path, environment=environment) as running:
        yield running


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


@pytest.fixture
async def admin(studio: Studio) -> Person:
    return await create_administrator(studio)


@pytest.fixture
async def vendor(service: RunningService) -> AsyncIterator[Vendor]:
    async with a_vendor(service, tags=[ARTISTS]) as running:
        yield running


async def labels_of(service: RunningService, user: User) -> set[str]:
    """Return what conditions read: tags and purchases of every source, without those of the service."""
    stored = await service.services.storage.accounts.user(user.user_id)
    return set((stored.all_tags - stored.system_tags) | stored.all_purchases)


async def connect_person(browser: AccountBrowser, vendor: Vendor, **claims: object) -> None:
    response = await come_back(browser, vendor.sign_in(await connect(browser), **claims))
    assert response.headers["location"] == "/account#identities", response.text


async def disconnect(browser: AccountBrowser, holding: str = "", **fields: str) -> None:
    notice = await browser.submit_and_read_notice("/account/identities/remove", holding, **fields)
    assert notice == "Sign-in disconnected"


async def set_by_hand(studio: Studio, admin: Person, user: User, *tags: str) -> None:
    await studio.expect_ok("user/tags", {"data": {"user_id": user.user_id, "tags": list(tags)}}, admin.headers)


async def save_settings(service: RunningService, **settings: object) -> None:
    wanted = {f"providers.vendor.{name}": value for name, value in settings.items()}
    await service.services.settings_editor.save(wanted, ORIGIN)
    await apply_settings(service.services)


# -- sources ----------------------------------------------------------------------------------------------------


async def test_id_14_disconnecting_ends_what_the_provider_set_and_nothing_else(
    studio: Studio, admin: Person, account_browser: AccountBrowser, anna: User, vendor: Vendor
) -> None:
    service = studio.service
    await save_settings(service, tags=[ARTISTS, "groups=art:studio", "groups=code:coder"])
    await set_by_hand(studio, admin, anna, "artist", "vip")
    await connect_person(account_browser, vendor, **ART)
    assert await labels_of(service, anna) == {"artist", "studio", "vip"}
    await disconnect(account_browser)
    assert await labels_of(service, anna) == {"artist", "vip"}


async def test_id_14_tag_of_two_identities_ends_with_the_last(
    service: RunningService, account_browser: AccountBrowser, other: HttpBrowser, anna: User, vendor: Vendor
) -> None:
    for subject in ("person-1", "person-2"):
        await connect_person(account_browser, vendor, sub=subject, preferred_username=subject, **ART)
    await sign_in_with(other, vendor, sub="person-1", preferred_username="person-1")  # no artist any more
    assert await labels_of(service, anna) == {"artist"}
    await disconnect(account_browser, "person-2")
    assert await labels_of(service, anna) == set()


async def test_id_14_people_and_providers_do_not_change_the_tags_of_each_other(
    studio: Studio, admin: Person, account_browser: AccountBrowser, anna: User, vendor: Vendor
) -> None:
    service = studio.service
    await connect_person(account_browser, vendor, **ART)
    await set_by_hand(studio, admin, anna, "vip")
    assert await labels_of(service, anna) == {"artist", "vip"}
    ask = {"action": "get", "data": {"user_id": anna.user_id}}
    entry = (await studio.expect_ok("user", ask, admin.headers))["data"]
    assert (entry["tags"], entry["provided_tags"]) == (["vip"], ["artist"])
    saved = {"action": "save", "data": {**entry, "nick": "Anna B."}}
    del saved["data"]["picture"]
    assert (await studio.expect_ok("user", saved, admin.headers))["data"]["tags"] == ["vip"]
    await sign_in_with(account_browser, vendor)
    assert await labels_of(service, anna) == {"vip"}
    await set_by_hand(studio, admin, anna)
    assert await labels_of(service, anna) == set()


async def test_id_14_upgraded_guest_keeps_the_source(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    device = Device()
    guest = await device.log_in(service)
    game = await register_upgrade(service, device)
    await service.clock.advance(1)
    page = await browser_client.get(f"/?gsid={game.gsid}")
    while page.status_code == SEE_OTHER:
        page = await browser_client.follow()
    address = await leave(browser_client, provider_link(page.text))
    await come_back(browser_client, vendor.sign_in(address, **KIM, **ART))
    await browser_client.follow()
    await browser_client.post("/sign-in/confirm", decision="confirm", code=game.answer["code"])
    user = await find_user(service, vendor)
    assert user is not None
    assert (user.user_id, await labels_of(service, user)) == (guest["user_id"], {"artist"})
    await sign_in_with(browser_client, vendor, **KIM)
    assert await labels_of(service, user) == set()


async def test_id_14_personal_data_names_the_source(
    studio: Studio, admin: Person, account_browser: AccountBrowser, anna: User, vendor: Vendor
) -> None:
    await set_by_hand(studio, admin, anna, "vip")
    await connect_person(account_browser, vendor, **ART)
    ask = {"action": "export", "data": {"user_id": anna.user_id}}
    account = (await studio.expect_ok("user", ask, admin.headers))["data"]["export"]["account"]
    assert {"artist", "vip"} <= set(account["tags"])
    source = {"provider": "vendor", "issuer": vendor.issuer, "subject": "person-1"}
    assert account["provided"] == [{"name": "artist", "is_purchase": False, "kept": False, **source}]


async def test_id_14_files_have_what_people_set_and_leave_the_rest(
    studio: Studio, admin: Person, account_browser: AccountBrowser, anna: User, vendor: Vendor
) -> None:
    service = studio.service
    await set_by_hand(studio, admin, anna, "vip")
    await connect_person(account_browser, vendor, **ART)
    document = await export(service)
    (exported,) = [one for one in document["users"] if one["user_id"] == anna.user_id]
    assert exported["tags"] == ["vip"]
    assert (await apply(service, document)).changes == ()
    await apply(service, {"users": [{"user_id": anna.user_id, "tags": ["beta"]}]})
    assert await labels_of(service, anna) == {"artist", "beta"}
    await disconnect(account_browser)
    assert await labels_of(service, anna) == {"beta"}


# -- channels and kept tags -------------------------------------------------------------------------------------


@pytest.fixture
async def steam(service: RunningService, studio: Studio) -> AsyncIterator["Steam"]:
    async with run_vendor("steam", service.clock) as vendor:
        api = SteamWebApi(server=vendor.server)
        vendor.server.respond = lambda request: (
            api.respond(request) if "/ISteam" in request.line else vendor.respond(request)
        )
        await service.services.settings_editor.save(
            {
                **vendor.settings,
                "providers.vendor.publisher_key": PUBLISHER_KEY,
                "providers.vendor.tickets": [f"{studio.shop.application_id}:{STEAM_APP}"],
                "providers.vendor.tags": [f"{VAC}:keep", "publisherbanned=false:fair"],
            },
            ORIGIN,
        )
        yield Steam(service, studio, vendor, api)


class Steam:
    """Steam, which signs people in by browser and by ticket."""

    def __init__(self, service: RunningService, studio: Studio, vendor: Vendor, api: SteamWebApi) -> None:
        self._service = service
        self._studio = studio
        self.vendor = vendor
        self.api = api

    async def send_ticket(self, steam_id: str = STEAM_ID, *, banned: bool = False, owns: bool = True) -> None:
        self.api.vac_banned, self.api.ownership = banned, {"ownsapp": owns, "permanent": True}
        ticket = {
            "platform": "vendor",
            "ticket": self.api.ticket(steam_id=steam_id),
            "app_id": self._studio.shop.application_id,
            "factor": "the device",
        }
        response = await self._service.client.post("/proxy/api/platformLogin", json=ticket)
        assert response.json()["status"] == "OK", response.text

    async def find_player(self, steam_id: str = STEAM_ID) -> User:
        user = await self._service.services.storage.profile.user_by_identity(f"{self.vendor.base}/openid", steam_id)
        assert user is not None
        return user


async def test_id_14_browser_sign_in_at_steam_takes_nothing_away(
    service: RunningService, browser_client: HttpBrowser, steam: Steam
) -> None:
    await steam.send_ticket(banned=True)
    player = await steam.find_player()
    assert await labels_of(service, player) == {"vac_banned", "fair", "steam:480"}
    assert (await sign_in_with(browser_client, steam.vendor)).headers["location"] == "/account"
    assert await labels_of(service, player) == {"vac_banned", "fair", "steam:480"}
    await steam.send_ticket(owns=False)
    assert await labels_of(service, player) == {"fair"}


async def test_id_14_kept_tag_stays_until_the_provider_withdraws_it(
    service: RunningService, account_browser: AccountBrowser, anna: User, steam: Steam
) -> None:
    await connect_person(account_browser, steam.vendor)
    await steam.send_ticket(banned=True)
    await disconnect(account_browser)
    assert await labels_of(service, anna) == {"vac_banned"}
    await connect_person(account_browser, steam.vendor)
    assert await labels_of(service, anna) == {"vac_banned"}
    await connect_person(account_browser, steam.vendor, steam_id=OTHER_STEAM_ID)
    await steam.send_ticket(OTHER_STEAM_ID)  # someone else is not banned
    assert "vac_banned" in await labels_of(service, anna)
    await steam.send_ticket()
    assert await labels_of(service, anna) == {"fair", "steam:480"}


async def test_id_14_kept_tag_ends_when_the_provider_withdraws_it_for_another_account(
    studio: Studio, account_browser: AccountBrowser, anna: User, steam: Steam
) -> None:
    service = studio.service
    await connect_person(account_browser, steam.vendor)
    await steam.send_ticket(banned=True)
    await disconnect(account_browser)
    await steam.send_ticket(banned=True)
    player = await steam.find_player()
    assert player.user_id != anna.user_id
    assert await labels_of(service, anna) == {"vac_banned"}
    before = len(await audit_records(studio, AuditEvent.USER_TAGS_SAVED))
    await steam.send_ticket()
    assert await labels_of(service, anna) == set()
    records = (await audit_records(studio, AuditEvent.USER_TAGS_SAVED))[before:]
    assert {one.subject for one in records} == {anna.user_id, player.user_id}


async def test_id_14_kept_tag_follows_the_identity_to_another_account(
    service: RunningService, account_browser: AccountBrowser, other: HttpBrowser, anna: User, steam: Steam
) -> None:
    await connect_person(account_browser, steam.vendor)
    await steam.send_ticket(banned=True)
    await disconnect(account_browser)
    await sign_in_with(other, steam.vendor)  # which cannot carry the claim
    player = await steam.find_player()
    assert player.user_id != anna.user_id
    assert await labels_of(service, player) == {"vac_banned"}
    await steam.send_ticket()
    assert (await labels_of(service, player), await labels_of(service, anna)) == ({"fair", "steam:480"}, set())


async def test_id_14_claim_that_is_kept_elsewhere_changes_nothing(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    """Microsoft names the groups of a member of many by reference only (OpenID Connect Core §5.6.2)."""
    await sign_in_with(browser_client, vendor, **KIM, **ART)
    user = await find_user(service, vendor)
    assert user is not None
    await sign_in_with(browser_client, vendor, **KIM, _claim_names={"groups": "src1"})
    assert await labels_of(service, user) == {"artist"}
    await sign_in_with(browser_client, vendor, **KIM, _claim_names={"roles": "src1"})
    assert await labels_of(service, user) == set()


# -- rules ------------------------------------------------------------------------------------------------------


async def test_id_14_labels_end_with_their_rule(studio: Studio, admin: Person, steam: Steam) -> None:
    service = studio.service
    await steam.send_ticket(banned=True)
    player = await steam.find_player()
    await set_by_hand(studio, admin, player, "vip")
    await save_settings(service, enabled=False)
    assert await labels_of(service, player) == {"vac_banned", "fair", "steam:480", "vip"}
    await save_settings(service, tags=[f"{VAC}:keep"])
    assert await labels_of(service, player) == {"vac_banned", "steam:480", "vip"}
    await save_settings(service, tickets=[])
    assert await labels_of(service, player) == {"vac_banned", "vip"}
    [record] = (await audit_records(studio, AuditEvent.USER_TAGS_SAVED))[-1:]
    assert (record.subject, record.details) == (player.user_id, {"provider": "vendor"})
    await save_settings(service, tags=[])
    assert await labels_of(service, player) == {"vip"}


async def test_id_14_rule_decides_now_whether_a_tag_is_kept(
    service: RunningService, account_browser: AccountBrowser, anna: User, steam: Steam
) -> None:
    await save_settings(service, tags=[VAC])
    await connect_person(account_browser, steam.vendor)
    await steam.send_ticket(banned=True)
    await save_settings(service, tags=[f"{VAC}:keep"])
    await disconnect(account_browser)
    assert await labels_of(service, anna) == {"vac_banned"}
    await save_settings(service, tags=[VAC])
    assert await labels_of(service, anna) == set()


async def test_id_14_settings_of_another_version_end_nothing(
    service: RunningService, browser_client: HttpBrowser, vendor: Vendor
) -> None:
    """A node that cannot read a setting leaves it out, for the time of an upgrade."""
    await sign_in_with(browser_client, vendor, **KIM, **ART)
    user = await find_user(service, vendor)
    assert user is not None
    await service.services.storage.settings.change(
        {"providers.vendor.tags": StoredSetting([ARTISTS, "a rule of the future"])},
        service.clock.now(),
        check=lambda *_: None,
        audit=lambda *_: (),
    )
    await apply_settings(service.services)
    assert service.services.settings.providers["vendor"].tags == ()
    assert await labels_of(service, user) == {"artist"}
