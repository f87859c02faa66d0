"""Who may what, described in a file: applied, exported and used as an operator does (R7)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatehouse.cli.apply import provisioning_of
from gatehouse.provision.entries import read_entries
from gatehouse.provision.given import SecretSources
from gatehouse.provision.sections.section import Terms
from gatehouse.provision.sections.table import SECTIONS
from tests.support.builders import ORIGIN
from tests.support.command_line import CommandLine, Place
from tests.support.finding import ROOT
from tests.support.service import Service

CI_KEY = "c1" * 32
SECRETS = {
    "ANNA_PASSWORD": "correct-horse-battery",
    "WEB_SECRET": "Zq8vK2mX4tR9wLp6sYb3nHc7dJf5gTaU",
    "CI_KEY": CI_KEY,
}
R7 = ROOT / "tests" / "conformance" / "interface_r7.yaml"
NOTHING = "Nothing to change.\n"


@pytest.fixture
def place(migrated_url: str, tmp_path: Path) -> Place:
    return Place(data=tmp_path / "data", url=migrated_url, environment=SECRETS)


def test_the_file_of_the_interface_is_planned_applied_and_moved(
    place: Place, tmp_path: Path, sqlite_template: Path
) -> None:
    gatehouse = place.commands()
    plan = gatehouse.try_("apply", R7, "--dry-run")
    assert plan.code == 2
    assert plan.out.splitlines() == [
        "+ user anna@studio.example",
        "+ client web",
        "+ project mind_games",
        "+ service account ci of mind_games",
        "+ application 50001",
        "+ group Testers of mind_games",
        "+ record of user 1001 in application 50001",
        "7 would be added, 0 changed, 0 removed.",
    ]
    applied = gatehouse("apply", R7)
    assert applied.splitlines()[-1].startswith("service account ci of mind_games has the new secret ey")
    assert gatehouse("apply", R7) == NOTHING
    exported = tmp_path / "export.yaml"
    gatehouse("export", "--output", exported)
    assert gatehouse("apply", exported, "--dry-run", "--prune") == NOTHING
    assert not [secret for secret in SECRETS.values() if secret in plan.out + applied + exported.read_text()]

    copy = tmp_path / "copy.db"
    copy.write_bytes(sqlite_template.read_bytes())
    elsewhere = Place(data=place.data, url=f"sqlite:///{copy}").commands()
    elsewhere("apply", exported)
    assert elsewhere("export") == exported.read_text()


def test_changes_are_named_by_field_and_errors_by_place(place: Place, tmp_path: Path) -> None:
    gatehouse, file = place.commands(), tmp_path / "change.yaml"
    gatehouse("apply", R7)
    change = {
        "application_id": 50001,
        "description": "Sells",
        "roles": {"moderator": {"params": "a"}, "guest": {}},
        "users": {"1001": {"roles": []}},
    }
    file.write_text(yaml.safe_dump({"applications": [change]}))
    assert gatehouse("apply", file).splitlines() == [
        "~ application 50001: description, roles.guest, roles.moderator",
        "~ record of user 1001 in application 50001: roles",
        "0 added, 2 changed, 0 removed.",
    ]
    change["roles"] = {"moderator": {"meta": {"private_data": {"user": {"kick": {"value": "yes"}}}}}}
    file.write_text(yaml.safe_dump({"applications": [change], "groups": [{"project_id": "no", "title": "X"}]}))
    assert gatehouse.refused("apply", file).splitlines() == [
        "The file cannot be applied.",
        "  applications[0].roles.moderator.meta.private_data.user.kick.value: true or false",
        "  groups[0].project_id: there is no project no",
    ]


async def applied(service: Service, document: Mapping[str, Any]) -> dict[str, str]:
    """Through the very rooms that serve; the secrets that were made, by what has them."""
    terms = Terms(secrets=SecretSources(environment=SECRETS, read_file=str))
    plan = await provisioning_of(service.house).apply(read_entries(dict(document), SECTIONS), terms, ORIGIN)
    return {change.name: change.generated_secret for change in plan.changes if change.generated_secret}


async def test_what_is_applied_is_in_force_at_once(service: Service) -> None:
    document = yaml.safe_load(R7.read_text())
    document["service_accounts"][0]["ip_ranges"] = []
    made = await applied(service, document)
    bearer = {"Authorization": f"Bearer {made['ci of mind_games']}"}

    async def asked() -> Any:
        question = {"action": "get", "application_id": 50001, "data": {"user_id": "1001", "type": "list_short"}}
        return (await service.client.post("/api/permissions/meta/data", json=question, headers=bearer)).json()

    assert (await asked())["data"] == ["user.kick"]
    document["applications"][0]["users"]["1001"]["roles"] = []
    await applied(service, {"applications": document["applications"]})
    assert (await asked())["data"] == []
    await applied(service, {"service_accounts": [{"project_id": "mg", "name": "ci", "revoked": True}]})
    assert (await asked())["status"] == "ERROR"


async def test_an_access_key_of_a_file_opens_what_it_should(service: Service) -> None:
    await applied(service, yaml.safe_load(R7.read_text()))
    key = await service.house.storage.application_keys.access_keys(50001)
    assert [one.comment for one in key] == ["ci"]
    body = {"jwt": "no.such.jwt"}
    answers = [
        (
            await service.client.post(
                "/api/permissions/exchangeJwt", json=body, headers={"Authorization": f"Bearer {value}"}
            )
        ).status_code
        for value in (CI_KEY, "d2" * 32)
    ]
    assert answers == [401, 401]
