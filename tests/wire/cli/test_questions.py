"""`gatehouse check`, `explain`, `members` and `simulate`."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from gatehouse.permissions.model.scope import ROOT
from tests.support.command_line import CommandLine, Place
from tests.support.questioned import P, giving, hold, put_roles
from tests.support.service import running_service
from tests.support.studio import OWNER, PROJECT, VISITOR, a_studio

KICK = "private_data.user.kick"


@pytest.fixture
async def shop(place: Place) -> str:
    """The id of an application whose rule user.kick the visitor holds at the root, the owner in the project."""
    async with running_service(place.url, place.data) as service:
        studio = await a_studio(service)
        await put_roles(studio, giving("moderator"), giving("other"))
        await hold(studio, VISITOR, {ROOT: ["moderator"]})
        await hold(studio, OWNER, {P: ["moderator"]})
        return str(studio.shop.application_id)


def test_check_tells_by_its_exit_code(gatehouse: CommandLine, shop: str) -> None:
    allowed = gatehouse.try_("check", shop, VISITOR, "user.kick")
    assert (allowed.code, allowed.out) == (0, "allowed\n")
    denied = gatehouse.try_("check", shop, VISITOR, "user.kick", "--project", PROJECT)
    assert (denied.code, denied.out) == (1, "denied\n")
    by_login = gatehouse.try_("check", shop, f"{OWNER}@studio.example", "user.kick", "--project", PROJECT, "--json")
    assert (by_login.code, by_login.json()) == (0, {"allowed": True, "user_id": OWNER, "expired": 0})
    resource = ("--project", PROJECT, "--resource", f"applications/{shop}")
    assert gatehouse.try_("check", shop, OWNER, "user.kick", *resource).code == 0


def test_an_application_is_given_by_its_id(gatehouse: CommandLine) -> None:
    told = gatehouse.refused("check", "Shop", VISITOR, "user.kick", code=2)
    assert "'Shop' is not a valid application ID." in told


def test_a_name_that_no_project_can_have_is_a_project_where_nothing_is_held(
    gatehouse: CommandLine, shop: str
) -> None:
    for name in ("no-such-project", ""):
        denied = gatehouse.try_("check", shop, VISITOR, "user.kick", "--project", name)
        assert (denied.code, denied.out) == (1, "denied\n")
        assert "There is no project " in gatehouse("explain", shop, VISITOR, "user.kick", "--project", name)


def test_explain_names_what_is_missing(gatehouse: CommandLine, shop: str) -> None:
    told = gatehouse("explain", shop, OWNER, "user.kick")
    assert told.startswith(f"Denied: {KICK} at the root.\n")
    assert "The role moderator would grant it, but it is not assigned at the root." in told
    assert f"It is granted in project {PROJECT}, which does not apply here." in told
    found = gatehouse.json("explain", shop, VISITOR, "user.kick")
    assert (found["allowed"], found["user_id"], found["path"][0]["role"]) == (True, VISITOR, "moderator")
    assert "data.ip" in gatehouse.refused("explain", shop, OWNER, "user.kick", "--ip", "here")


def test_members_are_listed_in_three_ways(gatehouse: CommandLine, shop: str) -> None:
    found = gatehouse.json("members", shop, "--rule", "user.kick")
    assert [one["user_id"] for one in found] == [VISITOR]
    assert "assigned role moderator" in gatehouse("members", shop, "--role", "moderator", "--project", PROJECT)
    [row] = csv.DictReader(io.StringIO(gatehouse("members", shop, "--rule", "user.kick", "--csv")))
    assert (row["user_id"], row["role"]) == (VISITOR, "moderator")
    assert "--rule or --role" in gatehouse.refused("members", shop, code=2)


def test_simulate_says_what_a_file_would_change(gatehouse: CommandLine, shop: str, tmp_path: Path) -> None:
    file = tmp_path / "change.yaml"
    file.write_text("kind: role\naction: delete\ndata: {name: moderator}\n")
    told = gatehouse("simulate", shop, file)
    assert f"{VISITOR}\n  - role moderator\n  - {KICK}\n" in told
    assert told.endswith("2 affected\n")
    found: Any = gatehouse.json("simulate", shop, file)
    assert [one["user_id"] for one in found] == [OWNER, VISITOR]
    assert gatehouse.try_("check", shop, VISITOR, "user.kick").code == 0
    file.write_text("kind: weather\n")
    assert "weather" in gatehouse.refused("simulate", shop, file)


def test_what_is_not_there_is_refused_in_words(gatehouse: CommandLine, shop: str) -> None:
    assert "Application not found" in gatehouse.refused("check", "77", VISITOR, "user.kick", code=2)
    assert "no user 1999999999" in gatehouse.refused("check", shop, "1999999999", "user.kick", code=2)
    assert "is not a valid rule name" in gatehouse.refused("check", shop, VISITOR, "a b", code=2)
    assert "Project not found" in gatehouse.refused("members", shop, "--rule", "x", "--project", "nowhere")
    assert "Role not found" in gatehouse.refused("members", shop, "--role", "ghost")
