"""The first sign-in with a password of another system (R10)."""

import io

import pyotp
import pytest

from gatehouse.accounts import passwords
from gatehouse.accounts.importing.files import open_import_file
from gatehouse.accounts.importing.hashes import blank_hash, verify_imported
from gatehouse.accounts.importing.importer import ImportJob
from gatehouse.accounts.importing.model import ImportFormat, RefusedRow
from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.times import DAY
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.service import RunningService
from tests.unit.accounts.importing.test_hashes import VECTORS

TOTP = "JBSWY3DPEHPK3PXP"


async def import_lines(service: RunningService, *lines: str, header: str = "login;password_hash;totp_secret") -> None:
    content = "\n".join((header, *lines)).encode()
    opened = open_import_file(io.BytesIO(content), ImportFormat.CSV)
    job = ImportJob(source=ImportFormat.CSV, import_id=opened.import_id, origin=AuditOrigin(actor="test"))
    refused: list[RefusedRow] = []
    await service.services.accounts.importer.run(opened.rows, job, report=refused.append)
    assert refused == []


async def log_in(service: RunningService, login: str, password: str) -> str:
    response = await service.client.post("/proxy/api/login", json={"login": login, "password": password})
    assert response.status_code == 200, response.text
    return str(response.json()["status"])


async def account(service: RunningService, login: str) -> User:
    found = await service.services.storage.accounts.user_by_login(login)
    assert found is not None
    return found


async def test_im_08_every_kind_of_hash_signs_in_and_is_replaced_by_argon2id(service: RunningService) -> None:
    people = {f"p{number}@studio.example": vector for number, vector in enumerate(VECTORS.items())}
    await import_lines(service, *(f'{login};"{text}";' for login, (text, _) in people.items()))
    for login, (text, password) in people.items():
        assert (await account(service, login)).password_hash == f"imported:{text}"
        assert await log_in(service, login, f"{password}x") == "LOGINERROR"
        assert (await account(service, login)).password_hash == f"imported:{text}"
        assert await log_in(service, login, password) == "OK"
        assert str((await account(service, login)).password_hash).startswith("$argon2id$")
        assert await log_in(service, login, password) == "OK"


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hashes of other systems that passwords are checked against."""
    seen: list[str] = []

    def record(stored: str, password: str) -> bool:
        seen.append(stored)
        return verify_imported(stored, password)

    monkeypatch.setattr(passwords, "verify_imported", record)
    return seen


@pytest.mark.both_databases
async def test_lg_05_a_login_without_an_account_costs_a_check_of_an_imported_hash(
    service: RunningService, checked: list[str]
) -> None:
    text, password = next(iter(VECTORS.items()))
    people = [f"p{number}@studio.example" for number in range(40)]
    await import_lines(service, *(f"{login};{text};" for login in people), "bare@studio.example;;")
    blank = blank_hash(f"imported:{text}")
    unknown = ["bare@studio.example", *(f"no_one{number}@studio.example" for number in range(4))]
    for login in unknown * 2:
        checked.clear()
        assert await log_in(service, login, password) == "LOGINERROR"
        assert checked == [blank]
    checked.clear()
    assert await log_in(service, people[0], "wrong") == "LOGINERROR"
    assert checked == [f"imported:{text}"]


async def test_lg_05_a_login_without_an_account_costs_our_own_hash_once_most_accounts_have_one(
    service: RunningService, checked: list[str]
) -> None:
    text, password = next(iter(VECTORS.items()))
    await import_lines(service, f"anna@studio.example;{text};")
    assert await log_in(service, "anna@studio.example", password) == "OK"
    checked.clear()
    await service.clock.advance(DAY)
    await service.services.accounts.decoy_hashes.run_once()
    assert await log_in(service, "no_one@studio.example", password) == "LOGINERROR"
    assert checked == []


async def test_lg_05_registering_the_address_of_an_imported_account_checks_no_imported_hash(
    service: RunningService, browser_client: HttpBrowser, checked: list[str]
) -> None:
    await import_lines(service, f"anna@studio.example;{next(iter(VECTORS))};")
    await browser_client.get("/register")
    registration = {"login": "anna@studio.example", "nick": "Anna", "password": PASSWORD}
    assert (await browser_client.post("/register", **registration)).status_code == 200
    assert checked == []


async def test_an_imported_second_factor_is_asked_for(service: RunningService) -> None:
    text, password = next(iter(VECTORS.items()))
    await import_lines(service, f"anna@studio.example;{text};{TOTP}")
    assert await log_in(service, "anna@studio.example", password) == "2STEP"
    code = pyotp.TOTP(TOTP).at(service.clock.now())
    response = await service.client.post(
        "/proxy/api/login", json={"login": "anna@studio.example", "password": password, "otp": code}
    )
    assert response.json()["status"] == "OK"
