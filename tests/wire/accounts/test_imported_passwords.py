"""The first sign-in with a password of another system (R10)."""

import io

import pyotp

from gatehouse.accounts.importing.files import open_import_file
from gatehouse.accounts.importing.importer import ImportJob
from gatehouse.accounts.importing.model import ImportFormat, RefusedRow
from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.service import RunningService
from tests.unit.accounts.importing.test_hashes import VECTORS

TOTP = "JBSWY3DPEHPK3PXP"


async def import_lines(service: RunningService, *lines: str, header: str = "login;password_hash;totp_secret") -> None:
    content = "\n".join((header, *lines)).encode()
    opened = open_import_file(io.BytesIO(content), ImportFormat.CSV)
    job = ImportJob(source=ImportFormat.CSV, import_id=opened.import_id, origin=AuditOrigin(actor="test"))
    refused: list[RefusedRow] = []
    await service.services.importer.run(opened.rows, job, report=refused.append)
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


async def test_an_imported_second_factor_is_asked_for(service: RunningService) -> None:
    text, password = next(iter(VECTORS.items()))
    await import_lines(service, f"anna@studio.example;{text};{TOTP}")
    assert await log_in(service, "anna@studio.example", password) == "2STEP"
    code = pyotp.TOTP(TOTP).at(service.clock.now())
    response = await service.client.post(
        "/proxy/api/login", json={"login": "anna@studio.example", "password": password, "otp": code}
    )
    assert response.json()["status"] == "OK"
