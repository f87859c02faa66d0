"""Damaged stored secrets: refused with the endpoint's own error, logged as an alarm, no 500 (faults R-25)."""

from pathlib import Path
from typing import Final

import msgspec
import pyotp

from gatehouse.audit.model import Refusal
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.database_contents import execute_statement, flip_bit
from tests.support.game import ANNA, INFO, approve_in_storage, refusal_reason, register_game
from tests.support.logs import LogStream, capture_logs
from tests.support.service import RunningService, running_service
from tests.support.stub_server import StubServer, run_stub_server
from tests.support.studio import Studio, a_studio, create_administrator, own_record, signed_request
from tests.wire.webhooks.conftest import ALLOWED, WebhookSetup

DAMAGED: Final = "the stored request is damaged"
LOGIN: Final = "/proxy/api/login"
AT: Final = 90  # the first byte of the secret itself, after its key


async def test_r_25_a_damaged_secret_is_refused_with_an_alarm_and_no_one_else_notices(
    installed_url: str, tmp_path: Path
) -> None:
    async with (
        run_stub_server(StubServer()) as receiver,
        running_service(installed_url, tmp_path, environment=ALLOWED) as service,
    ):
        studio = await a_studio(service)
        webhook_setup = WebhookSetup(studio=studio, receiver=receiver, admin=await create_administrator(studio))
        with capture_logs() as logs:
            await check_codes_refused(service, installed_url)
            await check_signature_refused(studio, installed_url)
            gsid = await no_game_is_signed_in(service, installed_url)
            await nothing_leaves_unsigned(webhook_setup, installed_url)
    alarm_lines = alarms(logs)
    kinds = [alarm.partition(":")[0] for alarm in alarm_lines]
    assert kinds == ["login-options", "totp", "access-key", "game-session", "webhook"]  # once, however often tried
    assert gsid not in "".join(alarm_lines)  # checklist GS-32


def alarms(logs: LogStream) -> list[str]:
    lines = [msgspec.json.decode(line) for line in logs.lines()]
    return [
        line["reason"] for line in lines if (line["event"], line["level"]) == ("stored secret refused", "critical")
    ]


async def check_codes_refused(service: RunningService, url: str) -> None:
    """First the state of an unfinished login, then the secret of the app."""
    anna = await service.services.accounts.administration.create(
        login=ANNA, nick="Anna", password=PASSWORD, origin=ORIGIN
    )
    them = service.services
    enrolment = await them.factors.totp.begin_enrollment(anna)
    app = pyotp.TOTP(enrolment.secret)
    codes = await them.factors.totp.confirm_enrollment(anna, app.at(service.clock.now()), origin=ORIGIN)
    await service.clock.advance(60)
    half = await log_in(service)
    assert half["status"] == "2STEP"
    await execute_statement(url, """UPDATE interactions SET ask = replace(ask, '"options":"A', '"options":"B')""")
    answer = {"request_id": half["request_id"], "otp": app.at(service.clock.now())}
    assert (await service.client.post(LOGIN, json=answer)).json() == {"status": "2STEPERROR"}
    await flip_bit(url, "totp_factors", "sealed_secret", f"user_id = '{anna.user_id}'", at=AT)
    await service.clock.advance(60)
    for _ in range(2):
        assert await log_in(service, otp=app.at(service.clock.now())) == {"status": "2STEPERROR"}
    assert (await log_in(service, otp=codes[0]))["status"] == "OK"


async def log_in(service: RunningService, **fields: str) -> dict[str, str]:
    response = await service.client.post(LOGIN, json={"login": ANNA, "password": PASSWORD, **fields})
    assert response.status_code == 200, response.text
    bodies: dict[str, str] = response.json()
    return bodies


async def check_signature_refused(studio: Studio, url: str) -> None:
    """With the damaged key: the application's second key works."""
    sound = await studio.access_key()
    [data] = (await studio.expect_ok("accessKey", own_record(studio.shop), studio.owner.headers))["data"]
    hit = await studio.access_key()
    await flip_bit(url, "access_keys", "sealed", f"key_id <> '{data['id']}'", at=AT)
    for key, status in ((hit, 401), (hit, 401), (sound, 200)):
        now = studio.service.clock.now()
        raw, headers = signed_request(
            own_record(studio.shop, ip="127.0.0.1", ts=now, jwt=studio.owner.jwt), key, studio.shop
        )
        response = await studio.service.client.post("/api/permissions/meta/data", content=raw, headers=headers)
        assert response.status_code == status, response.text
        assert response.json()["status"] == ("OK" if status == 200 else "ERROR")


async def no_game_is_signed_in(service: RunningService, url: str) -> str:
    game = await register_game(service)
    await flip_bit(url, "game_sessions", "options", f"gsid = '{game.gsid}'", at=AT)
    assert await refusal_reason(service, await service.client.post(INFO, json={"gsid": game.gsid})) == DAMAGED
    browser_client = HttpBrowser(service)
    assert (await browser_client.get(f"/?gsid={game.gsid}")).status_code == 404
    await browser_client.client.aclose()
    anna = await service.services.storage.accounts.user_by_login(ANNA)
    assert anna is not None
    await approve_in_storage(game, anna)
    body = (await game.poll()).json()
    assert body["status"] == "ERROR"
    record = await service.services.storage.audit.find_record(body["error"])
    assert isinstance(record, Refusal)
    assert record.reason == DAMAGED
    return game.gsid


async def nothing_leaves_unsigned(webhook_setup: WebhookSetup, url: str) -> None:
    hook = await webhook_setup.create_webhook("account")
    await flip_bit(url, "webhooks", "sealed_secret", f"webhook_id = '{hook['webhook_id']}'", at=AT)
    await webhook_setup.create_user("bertha@studio.example")
    await webhook_setup.deliver_once()
    assert webhook_setup.receiver.received == []
    [delivery] = await webhook_setup.delivery_log(hook)
    assert "cannot be decrypted" in str(delivery)
