"""The host that passkeys belong to, after a move, and the origins that browsers let use them (R11)."""

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.model import PasskeyRefused
from gatehouse.cli import doctor_network
from gatehouse.cli.findings import CheckedInstallation, Finding, Level
from gatehouse.outbound.client import OutboundClient
from gatehouse.settings.merge import SettingsRefused
from gatehouse.storage.database import open_storage
from gatehouse.storage.installation import PASSKEY_HOST
from tests.conformance.test_backup import contents, restore
from tests.support.authenticator import Authenticator
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser
from tests.support.builders import ORIGIN, a_passkey, a_record
from tests.support.service import RunningService, running_service
from tests.support.stub_server import StubConnector, StubResolver, http_response
from tests.support.studio import a_studio, create_administrator
from tests.wire.accounts.test_factors_page import add_passkey, options_in

RP_ID = "GATEHOUSE__PASSKEYS__RP_ID"
RELATED = "GATEHOUSE__PASSKEYS__RELATED_ORIGINS"
WELL_KNOWN = "/.well-known/webauthn"
FORMER, OTHER = "id.old.example", "https://sso.studio.example"


def saving(settings: dict[str, object]) -> dict[str, object]:
    return {"action": "save", "data": {"settings": settings}}


def served(url: str, data: Path, **environment: str) -> AbstractAsyncContextManager[RunningService]:
    return running_service(url, data, environment=environment)


async def give_passkey(service: RunningService, host: str) -> User:
    user = await service.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN
    )
    passkey = a_passkey(user_id=user.user_id)
    await service.services.storage.passkeys.add_passkey(passkey, [], a_record(), (), host=host)
    return user


@pytest.mark.both_databases
async def test_pf_05_passkeys_keep_their_host_after_a_move_and_no_other_is_taken(
    installed_url: str, tmp_path: Path
) -> None:
    async with served(installed_url, tmp_path, **{RP_ID: FORMER}) as service:
        user = await give_passkey(service, FORMER)
        another = a_passkey(user_id=user.user_id, credential_id=b"another")
        with pytest.raises(PasskeyRefused, match="another host"):  # a node with other settings
            await service.services.storage.passkeys.add_passkey(another, [], a_record(), (), host="localhost")
    async with served(installed_url, tmp_path) as service:
        sign_in = await service.client.get("/sign-in")
        assert json.loads(options_in(sign_in))["rpId"] == FORMER
        document = await service.client.get(WELL_KNOWN)
        assert (document.status_code, document.headers["content-type"]) == (200, "application/json")
        assert document.json() == {"origins": [service.base_url]}
    with pytest.raises(SettingsRefused, match=f"passkeys.rp_id: must be {FORMER}, not new.example"):
        async with served(installed_url, tmp_path, **{RP_ID: "new.example"}):
            pass
    async with served(installed_url, tmp_path) as service:
        passkeys = service.services.factors.passkeys
        (passkey,) = await passkeys.of_user(user.user_id)
        await passkeys.remove(user, passkey.passkey_id, origin=ORIGIN)
    async with served(installed_url, tmp_path, **{RP_ID: "new.example"}) as service:
        assert json.loads(options_in(await service.client.get("/sign-in")))["rpId"] == "new.example"


@pytest.mark.both_databases
async def test_pf_05_passkeys_keep_their_host_when_a_backup_is_restored_elsewhere(
    installed_url: str, tmp_path: Path
) -> None:
    """Also when the installation that is replaced had passkeys of its own host."""
    async with served(installed_url, tmp_path, **{RP_ID: FORMER}) as service:
        user = await give_passkey(service, FORMER)
        backup = await contents(service.services.storage)
        passkeys = service.services.factors.passkeys
        (passkey,) = await passkeys.of_user(user.user_id)
        await passkeys.remove(user, passkey.passkey_id, origin=ORIGIN)
        other = a_passkey(user_id=user.user_id, credential_id=b"another")
        await service.services.storage.passkeys.add_passkey(other, [], a_record(), (), host="localhost")
    async with open_storage(installed_url, migrate=False) as storage:
        await restore(storage, backup, replace=True)
    async with served(installed_url, tmp_path) as service:
        assert json.loads(options_in(await service.client.get("/sign-in")))["rpId"] == FORMER
        assert (await service.client.get(WELL_KNOWN)).json() == {"origins": [service.base_url]}
        assert [one.passkey_id for one in await service.services.factors.passkeys.of_user(user.user_id)] == [
            passkey.passkey_id
        ]


async def test_pf_05_passkeys_from_before_belong_to_the_host_that_was_served(
    installed_url: str, tmp_path: Path
) -> None:
    async with served(installed_url, tmp_path) as service:
        await give_passkey(service, "localhost")
        await service.services.storage.installation.set_value(PASSKEY_HOST, "")
    with pytest.raises(SettingsRefused, match="there are passkeys, and they belong to localhost"):
        async with served(installed_url, tmp_path, **{RP_ID: FORMER}):
            pass


@pytest.mark.both_databases
async def test_pf_05_doctor_asks_the_former_host_whether_browsers_may_use_its_passkeys(
    installed_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def json_document(document: object) -> bytes:
        return http_response(json.dumps(document).encode(), Content_Type="application/json")

    async def findings(service: RunningService, answer: bytes = b"", address: str = "93.184.216.34") -> list[Finding]:
        connector = StubConnector(answer)
        client = OutboundClient(
            allowed=(), resolver=StubResolver(id_old_example=[[address]]), connector=connector, limits=None
        )
        monkeypatch.setattr(doctor_network, "outbound_client", lambda _settings: client)
        found = [one async for one in doctor_network.about_passkeys(installation_of(service))]
        assert all(name == FORMER for _, _, name, _ in connector.connected)
        assert all(sent.startswith(b"GET /.well-known/webauthn ") for sent in connector.sent[:1])
        return found

    async with served(installed_url, tmp_path, **{RP_ID: "localhost"}) as service:
        assert await findings(service) == []
        await give_passkey(service, FORMER)
    async with served(installed_url, tmp_path) as service:
        (fine,) = await findings(service, json_document({"origins": [OTHER, service.base_url]}))
        assert (fine.level, service.base_url in fine.text) == (Level.OK, True), fine.text
        for answer, problem in (
            (json_document({"origins": [OTHER]}), f"does not list {service.base_url}"),
            (json_document({"origins": "x"}), "no document of related origins"),
            (http_response(b"[", Content_Type="application/json"), "no document of related origins"),
            (http_response(status="302 Found", Location=f"{service.base_url}{WELL_KNOWN}"), "answers HTTP 302"),
            (http_response(status="404 Not Found"), "answers HTTP 404"),
        ):
            (found,) = await findings(service, answer)
            assert (found.level, problem in found.text) == (Level.WARN, True), found.text
        (inside,) = await findings(service, address="10.0.0.7")
        assert "cannot be fetched from here" in inside.text


def installation_of(service: RunningService) -> CheckedInstallation:
    services = service.services
    return CheckedInstallation(
        loaded=services.core.live_settings.current,
        storage=services.storage,
        masters=services.core.masters,
        clock=service.clock,
    )


async def test_pf_05_related_origins_are_told_to_browsers_and_ask_for_nothing_here(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser
) -> None:
    assert (await service.client.get(WELL_KNOWN)).status_code == 404
    studio = await a_studio(service)
    admin = await create_administrator(studio)
    await studio.expect_ok("settings", saving({"passkeys.related_origins": [OTHER]}), admin.headers)
    assert (await service.client.get(WELL_KNOWN)).json() == {"origins": [OTHER]}
    for refused in (
        [f"{OTHER}/"],
        ["http://sso.studio.example"],
        ["*.studio.example"],
        [OTHER] * 21,
        ["https://x"] * 21,
    ):
        await studio.expect_error(400, "settings", saving({"passkeys.related_origins": refused}), admin.headers)
    await studio.expect_error(400, "settings", saving({"passkeys.rp_id": FORMER}), admin.headers)

    elsewhere = Authenticator(OTHER)
    credential = elsewhere.create(options_in(await account_browser.get("/account/passkey")))
    answer = await account_browser.submit("/account/passkey", name="Laptop", credential=credential)
    assert answer.status_code == 403
    here = await add_passkey(service, account_browser)
    here.origin = OTHER
    options = options_in(await browser_client.get("/sign-in"))
    assert (await browser_client.post("/sign-in/passkey", credential=here.get(options))).status_code == 403


async def test_pf_06_only_an_unknown_passkey_is_reported_to_the_browser_as_unknown(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser
) -> None:
    authenticator = await add_passkey(service, account_browser)
    page = await browser_client.get("/sign-in")
    forged = await browser_client.post(
        "/sign-in/passkey", credential=authenticator.get(options_in(page), origin="https://evil.example")
    )
    assert forged.status_code == 403
    assert "data-passkey-signals" not in forged.text
    stranger = Authenticator(service.base_url)
    stranger.user_handle = b"4711"
    unknown = await browser_client.post("/sign-in/passkey", credential=stranger.get(options_in(forged)))
    assert unknown.status_code == 403
    assert "signalUnknownCredential" in unknown.text
    replayed = await browser_client.post("/sign-in/passkey", credential=stranger.get(options_in(page)))
    assert "data-passkey-signals" not in replayed.text  # its challenge is answered already
