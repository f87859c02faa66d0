"""Permissions in a file: applied, exported and used as an operator does (R7)."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatehouse.app.services.provisioning import build_provisioning
from gatehouse.provision.file_secrets import SecretResolver
from gatehouse.provision.plan import SECTIONS
from gatehouse.provision.sections.section import Options, read_entries
from tests.support.builders import ORIGIN
from tests.support.command_line import InstallationPaths
from tests.support.find_programs import ROOT
from tests.support.guides import programs_for, session_steps, texts_of, type_command
from tests.support.service import RunningService

CI_KEY = "c1" * 32
SECRETS = {
    "ANNA_PASSWORD": "correct-horse-battery",
    "WEB_SECRET": "Zq8vK2mX4tR9wLp6sYb3nHc7dJf5gTaU",
    "CI_KEY": CI_KEY,
}
R7 = ROOT / "tests" / "conformance" / "interface_r7.yaml"
NOTHING = "No changes.\n"


@pytest.fixture
def place(migrated_url: str, tmp_path: Path) -> InstallationPaths:
    return InstallationPaths(data=tmp_path / "data", url=migrated_url, environment=SECRETS)


def test_the_file_of_the_interface_is_planned_applied_and_moved(
    place: InstallationPaths, tmp_path: Path, sqlite_template: Path
) -> None:
    gatehouse = place.command_line()
    plan = gatehouse.run("apply", R7, "--dry-run")
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
    assert applied.splitlines()[-1].startswith("New secret for service account ci of mind_games: ey")
    assert gatehouse("apply", R7) == NOTHING
    exported = tmp_path / "export.yaml"
    gatehouse("export", "--output", exported)
    assert gatehouse("apply", exported, "--dry-run", "--prune") == NOTHING
    assert not [secret for secret in SECRETS.values() if secret in plan.out + applied + exported.read_text()]

    copy = tmp_path / "copy.db"
    copy.write_bytes(sqlite_template.read_bytes())
    elsewhere = InstallationPaths(data=place.data, url=f"sqlite:///{copy}").command_line()
    elsewhere("apply", exported)
    assert elsewhere("export") == exported.read_text()


def test_changes_are_named_by_field_and_errors_by_place(place: InstallationPaths, tmp_path: Path) -> None:
    gatehouse, file = place.command_line(), tmp_path / "change.yaml"
    gatehouse("apply", R7)
    change = {
        "application_id": 50001,
        "description": "Sells",
        "roles": {"moderator": {"params": "a"}, "guest": {}},
        "users": {"1001": {"roles": ["guest"]}},
    }
    file.write_text(yaml.safe_dump({"applications": [change]}))
    assert gatehouse("apply", file).splitlines() == [
        "~ application 50001: description, roles.guest, roles.moderator",
        "~ record of user 1001 in application 50001: roles",
        "0 added, 2 changed, 0 removed.",
    ]
    change["roles"] = {"moderator": {"meta": {"private_data": {"user": {"kick": {"value": "yes"}}}}}}
    file.write_text(yaml.safe_dump({"applications": [change], "groups": [{"project_id": "no", "title": "X"}]}))
    assert gatehouse.expect_failure("apply", file).splitlines() == [
        "The file cannot be applied.",
        "  applications[0].roles.moderator.meta.private_data.user.kick.value: must be true or false",
        "  groups[0].project_id: no project no",
    ]


def people(*numbers: int) -> list[dict[str, object]]:
    return [{"user_id": str(number), "login": f"{number}@x.example", "nick": f"No {number}"} for number in numbers]


def test_a_role_with_more_holders_than_its_lowered_limit_is_moved_and_takes_no_more(
    place: InstallationPaths, tmp_path: Path, sqlite_template: Path
) -> None:
    gatehouse, file, exported = place.command_line(), tmp_path / "change.yaml", tmp_path / "export.yaml"
    shop: dict[str, object] = {"application_id": 50001, "name": "Shop", "roles": {"mod": {"user_limit": 2}}}
    holding = {str(number): {"roles": ["mod"]} for number in (1001, 1002)}
    file.write_text(yaml.safe_dump({"users": people(1001, 1002), "applications": [{**shop, "users": holding}]}))
    gatehouse("apply", file)
    file.write_text(yaml.safe_dump({"applications": [{**shop, "roles": {"mod": {"user_limit": 1}}}]}))
    gatehouse("apply", file)
    gatehouse("export", "--output", exported)

    copy = tmp_path / "copy.db"
    copy.write_bytes(sqlite_template.read_bytes())
    elsewhere = InstallationPaths(data=place.data, url=f"sqlite:///{copy}").command_line()
    elsewhere("apply", exported)
    assert elsewhere("export") == exported.read_text()
    one_more = {"application_id": 50001, "users": {"1003": {"roles": ["mod"]}}}
    file.write_text(yaml.safe_dump({"users": people(1003), "applications": [one_more]}))
    for installation in (gatehouse, elsewhere):
        for words in (("apply", file, "--dry-run"), ("apply", file)):  # a plan predicts refusals
            assert installation.expect_failure(*words).splitlines() == [
                "The file cannot be applied.",
                "  application 50001: user_limit of the role mod is 1, no room for user 1003",
            ]


LEFT_OVER = """\
users: [{user_id: "1001", login: one@x.example, nick: One}]
projects:
  - {title: Home, owners: ["1001"]}
  - title: Far
    owners: ["1001"]
    settings: {services: {"50001": {groups: [{group_id: Testers, roles: [mod]}]}}}
groups: [{project_id: far, title: Testers}]
applications:
  - application_id: 50001
    name: Shop
    project_id: home
    service_meta: {name: Shop}
    roles: {mod: {meta: {private_data: {a: {value: true}}}}}
    users: {"1001": {private_data: {z: {y: {value: true}}, b: {value: true}, projectAccess: {far: {roles: [mod]}}}}}
"""


def test_export_leaves_out_and_reports_entries_that_no_longer_apply(
    place: InstallationPaths, tmp_path: Path, sqlite_template: Path
) -> None:
    gatehouse, file, exported = place.command_line(), tmp_path / "change.yaml", tmp_path / "export.yaml"
    file.write_text(LEFT_OVER)
    gatehouse("apply", file)
    later = {"application_id": 50001, "service_meta": None, "schema": {"private_data": {"z": {"value": False}}}}
    file.write_text(yaml.safe_dump({"applications": [later]}))
    gatehouse("apply", file)
    assert sorted(gatehouse.run("export", "--output", exported).err.splitlines()) == [
        f"left out because it could not be applied: {line}"
        for line in (
            "application 50001: users.1001.far: the application does not belong to far and is not published",
            "application 50001: users.1001.private_data.z.y: conflicts with a rule of the application's schema",
            "project far: settings.services.50001: not an application that can be connected to this project",
        )
    ]
    copy = tmp_path / "copy.db"
    copy.write_bytes(sqlite_template.read_bytes())
    elsewhere = InstallationPaths(data=place.data, url=f"sqlite:///{copy}").command_line()
    elsewhere("apply", exported)
    assert elsewhere("export") == exported.read_text()


def test_sc_22_a_user_applied_without_a_last_entry_loses_it(place: InstallationPaths, tmp_path: Path) -> None:
    gatehouse, file = place.command_line(), tmp_path / "change.yaml"
    file.write_text(LEFT_OVER)
    gatehouse("apply", file)
    private_data: dict[str, Any] = yaml.safe_load(LEFT_OVER)["applications"][0]["users"]["1001"]["private_data"]
    for removed in ("projectAccess", "z", "b"):
        del private_data[removed]
        users = {"1001": {"private_data": private_data}}
        file.write_text(yaml.safe_dump({"applications": [{"application_id": 50001, "users": users}]}))
        assert "record of user 1001" in gatehouse("apply", file)
        assert gatehouse("apply", file) == NOTHING
        exported = yaml.safe_load(gatehouse("export"))["applications"]
        (shop,) = [application for application in exported if application["application_id"] == 50001]
        assert shop.get("users", {}).get("1001", {}).get("private_data", {}) == private_data


def test_the_files_of_the_guide_are_applied(place: InstallationPaths, tmp_path: Path) -> None:
    gatehouse = place.command_line()
    (make_secrets,) = programs_for(__file__, "apply", "sh")
    subprocess.run(["bash", "-euc", make_secrets], check=True, cwd=tmp_path)
    assert (tmp_path / "web-secret.txt").stat().st_mode & 0o777 == 0o600
    people, rights = programs_for(__file__, "apply", "yaml")
    applied, exported = programs_for(__file__, "apply", "console")
    file = tmp_path / "studio.yaml"
    file.write_text(people)
    for command, printed in session_steps(applied):
        assert type_command(gatehouse, command, {"studio.yaml": file}) == printed
    file.write_text(people + rights)
    gatehouse("apply", file)
    assert gatehouse("apply", file) == NOTHING
    file.unlink()
    for command, printed in session_steps(exported):
        assert type_command(gatehouse, command, {"studio.yaml": file}) == printed
    assert gatehouse("apply", file, "--dry-run", "--prune") == NOTHING


def test_the_file_of_the_interface_page_is_applied_as_it_stands(place: InstallationPaths, tmp_path: Path) -> None:
    secret = tmp_path / "harbour"
    secret.write_text(SECRETS["WEB_SECRET"])
    secret.chmod(0o600)
    example = next(text for text in texts_of("../interface", "yaml") if text.startswith("users:"))
    file = tmp_path / "harbour.yaml"
    file.write_text(example.replace("/run/secrets/harbour_web", str(secret)))
    keys = {"MIRA_PASSWORD": SECRETS["ANNA_PASSWORD"], "BUILD_KEY": CI_KEY}
    assert "7 added, 0 changed, 0 removed." in place.command_line()("apply", file, environment=keys)
    assert place.command_line()("apply", file, environment=keys) == NOTHING


def test_the_test_of_the_guide_passes_and_fails_as_told(place: InstallationPaths, tmp_path: Path) -> None:
    gatehouse, file = place.command_line(), tmp_path / "permissions.yaml"
    (example,) = programs_for(__file__, "test-permissions", "yaml")
    passes, fails = programs_for(__file__, "test-permissions", "console")
    [(command, printed)] = session_steps(passes)
    file.write_text(example)
    assert type_command(gatehouse, command, {"permissions.yaml": file}) == printed
    file.write_text(example.replace('title: Testers, users: ["1001"]', "title: Testers"))
    failed = gatehouse.run("test", file)
    assert failed.code == 1
    assert [(command, failed.out.replace(str(file), file.name))] == session_steps(fails)


async def apply_document(service: RunningService, document: Mapping[str, Any]) -> dict[str, str]:
    """Apply a document through the services; return the generated secrets by name."""
    terms = Options(secrets=SecretResolver(environment=SECRETS, read_file=str))
    plan = await build_provisioning(service.services).apply(read_entries(dict(document), SECTIONS), terms, ORIGIN)
    return {change.name: change.generated_secret for change in plan.changes if change.generated_secret}


async def test_applied_changes_take_effect_immediately(service: RunningService) -> None:
    document = yaml.safe_load(R7.read_text())
    document["service_accounts"][0]["ip_ranges"] = []
    created = await apply_document(service, document)
    bearer = {"Authorization": f"Bearer {created['ci of mind_games']}"}

    async def read_data() -> Any:
        question = {"action": "get", "application_id": 50001, "data": {"user_id": "1001", "type": "list_short"}}
        return (await service.client.post("/api/permissions/meta/data", json=question, headers=bearer)).json()

    assert (await read_data())["data"] == ["user.kick"]
    document["applications"][0]["users"]["1001"]["roles"] = []
    await apply_document(service, {"applications": document["applications"]})
    assert (await read_data())["data"] == []
    await apply_document(service, {"service_accounts": [{"project_id": "mg", "name": "ci", "revoked": True}]})
    assert (await read_data())["status"] == "ERROR"


async def test_an_access_key_of_a_file_opens_what_it_should(service: RunningService) -> None:
    await apply_document(service, yaml.safe_load(R7.read_text()))
    anna = await service.services.storage.accounts.user("1001")
    jwt = await service.services.accounts.user_tokens.issue(anna, auth="login", factor="any")
    body = {"action": "get", "data": {"type": "list_short"}, "jwt": jwt}
    responses = [
        await service.client.post(
            "/api/permissions/meta/data", json=body, headers={"Authorization": f"Bearer {value}"}
        )
        for value in (CI_KEY, "d2" * 32)
    ]
    assert [response.status_code for response in responses] == [200, 401]
    assert responses[0].json()["data"] == ["user.kick"]
