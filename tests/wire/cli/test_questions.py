"""`gatehouse check`, `explain`, `members` and `simulate`."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from gatehouse.permissions.model.rules import ROOT
from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.service import running_service
from tests.support.studio import OTHER_USER, OWNER, PROJECT, P, a_studio, put_roles, role_granting, set_user_roles

KICK = "private_data.user.kick"


@pytest.fixture
async def shop(installation: InstallationPaths) -> str:
    """The id of an application whose rule user.kick the other user has at the root and the owner in the project."""
    async with running_service(installation.url, installation.data) as service:
        studio = await a_studio(service)
        await put_roles(studio, role_granting("moderator"), role_granting("other"))
        await set_user_roles(studio, OTHER_USER, {ROOT: ["moderator"]})
        await set_user_roles(studio, OWNER, {P: ["moderator"]})
        return str(studio.shop.application_id)


def test_check_tells_by_its_exit_code(gatehouse: CommandLine, shop: str) -> None:
    allowed = gatehouse.run("check", shop, OTHER_USER, "user.kick")
    assert (allowed.code, allowed.out) == (0, "allowed\n")
    denied = gatehouse.run("check", shop, OTHER_USER, "user.kick", "--project", PROJECT)
    assert (denied.code, denied.out) == (1, "denied\n")
    by_login = gatehouse.run("check", shop, f"{OWNER}@studio.example", "user.kick", "--project", PROJECT, "--json")
    assert (by_login.code, by_login.json()) == (0, {"allowed": True, "user_id": OWNER, "expired": 0})
    resource = ("--project", PROJECT, "--resource", f"applications/{shop}")
    assert gatehouse.run("check", shop, OWNER, "user.kick", *resource).code == 0


def test_names_work_beside_ids_and_similar_ones_are_suggested(gatehouse: CommandLine, shop: str) -> None:
    exported = json.loads(gatehouse("export", "--format", "json", "--no-secrets"))
    name = next(one["name"] for one in exported["applications"] if str(one["application_id"]) == shop)
    assert gatehouse.run("check", name.upper(), OTHER_USER, "user.kick").out == "allowed\n"
    unknown = gatehouse.expect_failure("check", f"{name}x", OTHER_USER, "user.kick", code=2)
    assert f"no application {name}x. Did you mean {name}?" in unknown
    denied = gatehouse.run("check", shop, OTHER_USER, "user.kik")
    assert (denied.code, denied.out) == (1, "denied\n")
    assert "user.kik is not a permission of" in denied.err
    assert "Did you mean user.kick?" in denied.err
    misspelled = gatehouse.expect_failure("members", shop, "--role", "moderatr")
    assert "no role moderatr. Did you mean moderator?" in misspelled


def test_a_name_that_no_project_can_have_is_a_project_where_nothing_is_held(
    gatehouse: CommandLine, shop: str
) -> None:
    for name in ("no-such-project", ""):
        denied = gatehouse.run("check", shop, OTHER_USER, "user.kick", "--project", name)
        assert (denied.code, denied.out) == (1, "denied\n")
        assert "There is no project " in gatehouse("explain", shop, OTHER_USER, "user.kick", "--project", name)


def test_explain_names_what_is_missing(gatehouse: CommandLine, shop: str) -> None:
    explanation = gatehouse("explain", shop, OWNER, "user.kick")
    assert explanation.startswith(f"Denied: {KICK} at the root.\n")
    assert "The role moderator would grant it, but it is not assigned at the root." in explanation
    assert f"It is granted in project {PROJECT}, which does not apply here." in explanation
    output = gatehouse.json("explain", shop, OTHER_USER, "user.kick")
    assert (output["allowed"], output["user_id"], output["path"][0]["role"]) == (True, OTHER_USER, "moderator")
    assert "data.ip" in gatehouse.expect_failure("explain", shop, OWNER, "user.kick", "--ip", "here")


def test_members_are_listed_in_three_ways(gatehouse: CommandLine, shop: str) -> None:
    members = gatehouse.json("members", shop, "--rule", "user.kick")
    assert [user["user_id"] for user in members] == [OTHER_USER]
    assert "assigned role moderator" in gatehouse("members", shop, "--role", "moderator", "--project", PROJECT)
    [row] = csv.DictReader(io.StringIO(gatehouse("members", shop, "--rule", "user.kick", "--csv")))
    assert (row["user_id"], row["role"]) == (OTHER_USER, "moderator")
    assert "--rule or --role" in gatehouse.expect_failure("members", shop, code=2)


def test_simulate_says_what_a_file_would_change(gatehouse: CommandLine, shop: str, tmp_path: Path) -> None:
    file = tmp_path / "change.yaml"
    file.write_text("kind: role\naction: delete\ndata: {name: moderator}\n")
    output = gatehouse("simulate", shop, file)
    assert f"{OTHER_USER}\n  - role moderator\n  - {KICK}\n" in output
    assert output.endswith("2 affected\n")
    simulation: Any = gatehouse.json("simulate", shop, file)
    assert [user["user_id"] for user in simulation] == [OWNER, OTHER_USER]
    assert gatehouse.run("check", shop, OTHER_USER, "user.kick").code == 0
    file.write_text("kind: weather\n")
    assert "weather" in gatehouse.expect_failure("simulate", shop, file)


def test_unknown_objects_are_refused_with_an_error_message(gatehouse: CommandLine, shop: str) -> None:
    assert "no application 77" in gatehouse.expect_failure("check", "77", OTHER_USER, "user.kick", code=2)
    assert "no user 1999999999" in gatehouse.expect_failure("check", shop, "1999999999", "user.kick", code=2)
    assert "is not a valid rule name" in gatehouse.expect_failure("check", shop, OTHER_USER, "a b", code=2)
    assert "Project not found" in gatehouse.expect_failure("members", shop, "--rule", "x", "--project", "nowhere")
    assert "no role ghost" in gatehouse.expect_failure("members", shop, "--role", "ghost")
