"""The ordinary login operation (R1)."""

import json
from base64 import urlsafe_b64decode
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pyotp
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.digests import sha256
from gatehouse.storage.accounts.users import update_user
from gatehouse.tokens.claims import factor_digest, location_digest
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import a_record, a_user
from tests.support.geoip import write_geoip
from tests.support.mailbox import new_messages
from tests.support.service import RunningService, running_service

LOGIN = "anna@studio.example"
PATH = "/proxy/api/login"
NAMES = "status auth country lang level nick ghnick reg_time tags token token_exp user_id"
ALWAYS = set(NAMES.split())


async def log_in(service: RunningService, **fields: Any) -> dict[str, Any]:
    response = await service.client.post(PATH, json={"login": LOGIN, "password": PASSWORD, **fields})
    assert response.status_code == 200, response.text
    bodies: dict[str, Any] = response.json()
    return bodies


def claims_of(jwt: str) -> dict[str, Any]:
    payload = jwt.split(".")[1]
    claims: dict[str, Any] = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


async def with_totp(service: RunningService, user: User) -> pyotp.TOTP:
    them = service.services
    enrolment = await them.factors.totp.begin_enrollment(user)
    app = pyotp.TOTP(enrolment.secret)
    await them.factors.totp.confirm_enrollment(user, app.at(service.clock.now()), origin=AuditOrigin(actor="test"))
    await service.clock.advance(60)
    return app


async def test_the_login_data_has_every_field_it_always_has_and_no_other(service: RunningService, anna: User) -> None:
    data = await log_in(service)
    assert set(data) == ALWAYS
    assert data["status"] == "OK"
    assert data["auth"] == "login"
    assert data["user_id"] == anna.user_id
    assert data["reg_time"] == str(anna.reg_time)
    assert data["token_exp"] == 3_600
    assert data["nick"] == data["ghnick"] == "Anna"


@pytest.mark.usefixtures("anna")
async def test_json_form_and_multipart_are_the_same_to_it_and_no_cookie_is_set(service: RunningService) -> None:
    fields = {"login": LOGIN, "password": PASSWORD}
    responses = [
        await service.client.post(PATH, json=fields),
        await service.client.post(PATH, data=fields),
        await service.client.post(PATH, files={name: (None, value) for name, value in fields.items()}),
    ]
    assert [response.json()["status"] for response in responses] == ["OK"] * 3
    assert not any(response.headers.get_list("set-cookie") for response in responses)
    assert {response.headers["cache-control"] for response in responses} == {"no-store"}


async def test_wrong_unknown_and_blocked_are_loginerror_alike(service: RunningService, anna: User) -> None:
    wrong = await log_in(service, password="wrong")
    unknown = await log_in(service, login="no_one@studio.example")
    await service.services.accounts.administration.block(anna.user_id, AuditOrigin(actor="test"))
    assert wrong == unknown == await log_in(service) == {"status": "LOGINERROR"}


@pytest.mark.usefixtures("anna")
async def test_too_many_failures_are_blocked_with_the_seconds_to_wait(service: RunningService) -> None:
    for _ in range(10):
        await log_in(service, password="wrong")
    blocked = await log_in(service)
    assert blocked["status"] == "BLOCKED"
    await service.clock.advance(blocked["retry_after"])
    assert (await log_in(service))["status"] == "OK"


@pytest.mark.usefixtures("anna")
async def test_a_page_of_another_site_cannot_log_its_visitor_in(service: RunningService) -> None:
    body = {"login": LOGIN, "password": PASSWORD}
    response = await service.client.post(PATH, json=body, headers={"Sec-Fetch-Site": "cross-site"})
    assert response.status_code == 403


async def test_a_factor_brings_a_jwt_bound_to_it_and_without_one_there_is_none(
    service: RunningService, anna: User
) -> None:
    data = await log_in(service, factor="device-1")
    claims = claims_of(data["jwt"])
    assert data["factor"] == "device-1"
    assert claims["fac"] == factor_digest("device-1", claims["slt"])
    assert claims["iss"] == service.base_url
    assert claims["uid"] == claims["sub"] == anna.user_id
    assert claims["exp"] - claims["iat"] == 90 * 86_400
    assert "typ" not in claims
    assert "jwt" not in await log_in(service)
    assert "jwt" not in await log_in(service, factor="device-1", nojwt="1")


@pytest.mark.usefixtures("anna")
async def test_fixed_addresses_and_a_key_of_the_client_go_into_the_jwt(service: RunningService) -> None:
    key = rsa.generate_private_key(65_537, 2_048).public_key()
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    data = await log_in(
        service, factor="f", fixed_ip="1", fixed_ips=["10.0.0.0/8", "192.168.1.7"], jwt_public_key=pem
    )
    claims = claims_of(data["jwt"])
    assert claims["fip"] == ["10.0.0.0/8", "192.168.1.7/32", "127.0.0.1/32"]
    assert claims["pub_key"] == pem
    for wrong in ("8.8.8.8", "10.0.0.1/8", "0.0.0.0/0", "10.0.0.0/08", "127.0.0.1", "::1", "x"):
        response = await service.client.post(PATH, json={"login": LOGIN, "password": PASSWORD, "fixed_ips": [wrong]})
        assert response.status_code == 400, wrong
    form = {"login": LOGIN, "password": PASSWORD, "factor": "f", "fixed_ips[]": ["10.1.0.0/16", "10.2.0.0/16"]}
    body = (await service.client.post(PATH, data=form)).json()
    assert claims_of(body["jwt"])["fip"] == ["10.1.0.0/16", "10.2.0.0/16"]


@pytest.mark.usefixtures("anna")
async def test_meta_and_short_token_come_only_when_asked_for(service: RunningService) -> None:
    data = await log_in(service, meta="1", short_token="1")
    assert set(data) == ALWAYS | {"meta", "stoken"}
    assert data["meta"]["geo"] == {"country": "", "ip": "127.0.0.1"}
    assert data["stoken"] != data["token"]


@pytest.mark.parametrize(
    ("file_says", "account_says", "expected_country"),
    [("SE", "", "SE"), ("SE", "NO", "NO"), ("", "NO", "NO"), ("", "", "")],
)
async def test_the_country_is_the_accounts_else_that_of_the_address_else_empty(
    installed_url: str, tmp_path: Path, file_says: str, account_says: str, expected_country: str
) -> None:
    file = write_geoip(tmp_path / "country.mmdb", {"127.0.0.0/8": {"country": {"iso_code": file_says}}})
    environment = {"GATEHOUSE__ACCOUNTS__GEOIP_FILE": str(file)} if file_says else {}
    async with running_service(installed_url, tmp_path, environment=environment) as service:
        password_hash = await service.services.accounts.passwords.hash(PASSWORD)
        owner = a_user(login=LOGIN, password_hash=password_hash, country=account_says)
        await service.services.storage.accounts.create_user(owner, a_record())
        data = await log_in(service, factor="device-1", meta="1")
    claims = claims_of(data["jwt"])
    assert (data["country"], claims["cntry"]) == (expected_country, expected_country)
    assert data["meta"]["geo"] == {"country": expected_country, "ip": "127.0.0.1"}
    assert data["meta"]["reg"]["country"] == account_says
    assert claims["loc"] == location_digest(expected_country, claims["slt"])


@pytest.mark.usefixtures("anna")
async def test_the_email_is_told_only_to_anyone_who_knows_the_applications_secret(service: RunningService) -> None:
    await service.services.storage.permissions.add_email_secret(1, sha256("shared"), service.clock.now(), a_record())
    assert (await log_in(service, app_id=1, with_email="shared"))["login"] == LOGIN
    assert "login" not in await log_in(service, app_id=1, with_email="wrong")
    assert "login" not in await log_in(service, with_email="shared")


@pytest.mark.usefixtures("anna")
async def test_an_application_that_does_not_exist_lets_no_one_in(service: RunningService) -> None:
    assert (await log_in(service, app_id=1))["status"] == "OK"
    assert await log_in(service, app_id=50_001) == {"status": "DENIED"}
    assert await log_in(service, gapp_id=50_001) == {"status": "DENIED"}


async def test_a_second_factor_is_asked_for_and_answered_in_a_second_call(
    service: RunningService, anna: User
) -> None:
    app = await with_totp(service, anna)
    first_response = await log_in(service, factor="device-1", meta="1")
    assert first_response["status"] == "2STEP"
    assert set(first_response["methods"]) == {"totp", "recovery"}
    wrong = await service.client.post(PATH, json={"request_id": first_response["request_id"], "otp": "000000"})
    assert wrong.json() == {"status": "2STEPERROR"}
    answer = {"request_id": first_response["request_id"], "otp": app.at(service.clock.now())}
    data = (await service.client.post(PATH, json=answer)).json()
    assert data["status"] == "OK"
    assert data["auth"] == "2step"
    assert data["tags"] == "2step,2step_totp"
    assert "meta" in data
    claims = claims_of(data["jwt"])
    assert claims["fac"] == factor_digest("device-1", claims["slt"])
    assert (await service.client.post(PATH, json=answer)).json() == {"status": "2STEPERROR"}


async def test_a_first_call_is_worth_nothing_after_a_sign_out_everywhere(service: RunningService, anna: User) -> None:
    app = await with_totp(service, anna)
    first_response = await log_in(service)
    await service.services.accounts.sessions.sign_out_everywhere(anna.user_id, AuditOrigin(actor="test"))
    answer = {"request_id": first_response["request_id"], "otp": app.at(service.clock.now())}
    assert (await service.client.post(PATH, json=answer)).json() == {"status": "2STEPERROR"}
    assert (await log_in(service, otp=answer["otp"]))["status"] == "OK"  # and the code was not spent


async def test_letters_with_codes_are_counted_with_those_of_the_pages(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await service.services.storage.runner.write(partial(update_user, replace(anna, email_verified=True)))
    them = service.services
    await them.factors.email_codes.enable(
        await service.services.storage.accounts.user(anna.user_id), origin=AuditOrigin(actor="test")
    )
    first_response = await log_in(service)
    more = {"request_id": first_response["request_id"], "method": "email"}
    await new_messages(service)
    for _ in range(5):
        assert (await service.client.post(PATH, json=more)).json()["status"] == "2STEP"
    refusal = await service.client.post(PATH, json=more)
    assert refusal.json() == {"status": "BLOCKED", "retry_after": 60}
    assert refusal.headers["retry-after"] == "60"
    assert len(await new_messages(service)) == 5
    await browser_client.sign_in(LOGIN)
    await browser_client.follow()
    assert (await browser_client.post("/sign-in/factor/method", method="email")).status_code == 429
    await service.clock.advance(60)
    assert (await service.client.post(PATH, json=more)).json()["status"] == "2STEP"


async def test_login_password_and_code_can_come_in_one_call(service: RunningService, anna: User) -> None:
    app = await with_totp(service, anna)
    code = app.at(service.clock.now())
    assert (await log_in(service, otp=code))["status"] == "OK"
    assert await log_in(service, otp=code) == {"status": "2STEPERROR"}


async def test_the_factor_of_the_client_is_not_readable_in_the_database(service: RunningService, anna: User) -> None:
    await with_totp(service, anna)
    first_response = await log_in(service, factor="a-very-special-device-factor")
    flow = await service.services.storage.sign_in_flows.find_flow(
        sha256(first_response["request_id"]), service.clock.now()
    )
    assert flow is not None
    assert "a-very-special-device-factor" not in repr(flow)


@pytest.mark.parametrize(
    "fields",
    [
        {"app_id": -1},
        {"app_id": "1x"},
        {"app_id": True},
        {"app_id": 2**63},
        {"nojwt": "yes"},
        {"factor": "x" * 2_000},
        {"jwt_public_key": "garbage"},
        {"fixed_ips": "10.0.0.1"},
        {"login": ["a"]},
    ],
)
@pytest.mark.usefixtures("anna")
async def test_bad_input_is_named_and_refused(service: RunningService, fields: dict[str, Any]) -> None:
    response: httpx2.Response = await service.client.post(PATH, json={"login": LOGIN, "password": PASSWORD, **fields})
    assert response.status_code == 400
    assert response.json()["status"] == "ERROR"
