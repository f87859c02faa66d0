"""Bits flip in stored data: the damaged record is refused and named, everything else is served (faults R-25)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw
import httpx2

from gatehouse.app.services import Services
from gatehouse.audit.model import AuditOrigin
from gatehouse.storage.sqlite.runner import sqlite_path
from tests.faults.run_record import on_databases
from tests.support.browser import PASSWORD
from tests.support.builders import ORIGIN, a_client
from tests.support.command_line import InstallationPaths
from tests.support.database_contents import flip_bit, open_services_on
from tests.support.oauth import REDIRECT
from tests.support.processes import Node
from tests.support.service import FAST_SETTINGS

ANNA: Final = "anna@studio.example"
KEYS: Final = "/proxy/oauth/keys"
PAGE: Final = 4_096


async def fill_tables(services: Services) -> None:
    await services.accounts.administration.create(
        login=ANNA, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    for client_id in ("hit", "spared"):
        await services.oauth.clients.commands.create(a_client(client_id), ORIGIN)
    await services.audit.sealer.seal_all()


@dataclass(frozen=True, slots=True)
class Damage:
    kid: str
    place: int  # its position in the chain


async def damage(url: str, data: Path) -> Damage:
    """Flip a bit in a private key, a client's secret and an audit record while nothing runs."""
    async with open_services_on(url, data) as services:
        await fill_tables(services)
        kid = next(key.kid for key in (await services.storage.keys.load_keys()).keys if key.alg == "ES256")
        [record] = await services.storage.audit.newest_records(1, "", "user.created")
    await flip_bit(url, "signing_keys", "sealed_private", f"kid = '{kid}'", at=90)
    await flip_bit(url, "client_secrets", "secret", "client_id = 'hit'", at=90)
    await flip_bit(url, "audit_events", "mac", f"record_id = '{record.record_id}'", at=3)
    assert record.place is not None
    return Damage(kid, record.place)


@on_databases("sqlite")
async def test_r_25_a_key_a_secret_and_a_record_that_lost_a_bit_are_named_and_all_others_serve(
    url: str, tmp_path: Path
) -> None:
    hit = await damage(url, tmp_path)
    gatehouse = InstallationPaths(data=tmp_path, url=url).command_line()
    with Node(data=tmp_path, database_url=url, environment=FAST_SETTINGS | {"GATEHOUSE__LOG__LEVEL": "info"}) as node:
        alarm = node.process.wait_for_line("signing key refused", node.process.stderr)
        assert hit.kid in alarm.string
        published = httpx2.get(f"{node.address}{KEYS}").json()["keys"]
        assert hit.kid not in {key["kid"] for key in published}
        assert {key["alg"] for key in published} == {"RS256", "EdDSA"}
        body = {"login": ANNA, "password": PASSWORD, "factor": "device"}
        assert httpx2.post(f"{node.address}/proxy/api/login", json=body, timeout=30).json()["status"] == "OK"
        assert [redeem(node, client) for client in ("hit", "spared")] == [(401, "invalid_client")] * 2
        assert httpx2.get(f"{node.address}/readyz").status_code == 200
    verdict = gatehouse.run("audit", "verify")
    assert verdict.code == 1
    assert f"record {hit.place} " in verdict.err
    result = gatehouse.run("doctor")
    assert result.code == 1
    assert f"{hit.kid} cannot be used" in result.out


def redeem(node: Node, client_id: str) -> tuple[int, str]:
    """Redeem with a wrong secret: the stored one must be decrypted first."""
    fields = {"grant_type": "authorization_code", "code": "x", "redirect_uri": REDIRECT, "client_id": client_id}
    response = httpx2.post(
        f"{node.address}/proxy/oauth/token", data=fields, headers={"Authorization": "Bearer " + "0" * 40}
    )
    return response.status_code, response.json()["error"]


async def test_r_25_pages_of_the_database_that_are_garbage_are_told_as_unavailable_and_found_by_the_doctor(
    installed_sqlite_url: str, tmp_path: Path
) -> None:
    async with open_services_on(installed_sqlite_url, tmp_path) as services:
        await fill_tables(services)
    ruin_pages_of("users", sqlite_path(installed_sqlite_url))
    with Node(data=tmp_path, database_url=installed_sqlite_url, environment=FAST_SETTINGS) as node:
        body = {"login": ANNA, "password": PASSWORD, "factor": "device"}
        response = httpx2.post(f"{node.address}/proxy/api/login", json=body, timeout=30)
        assert response.status_code == 503
        assert httpx2.get(f"{node.address}{KEYS}").status_code == 200
    result = InstallationPaths(data=tmp_path, url=installed_sqlite_url).command_line().run("doctor")
    assert result.code == 1
    assert "SQLite reports damage" in result.out


def ruin_pages_of(table: str, path: str) -> None:
    """Overwrite all pages of the table and its indexes."""
    with apsw.Connection(path) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE tbl_name = ? AND rootpage > 0"
        roots = [page for (page,) in connection.execute(query, (table,))]
    with Path(path).open("r+b") as file:
        for page in roots:
            file.seek((page - 1) * PAGE)
            file.write(b"\xa5" * PAGE)
