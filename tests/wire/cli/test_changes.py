"""`create`, `change` and `remove` of projects, groups, applications and roles."""

import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.processes import GATEHOUSE_COMMAND, inherited_environment

PEOPLE = """
users:
  - {user_id: "1001", login: anna@studio.example, nick: Anna, totp_secret: JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP}
  - {user_id: "1002", login: bert@studio.example, nick: Bert}
"""


@pytest.fixture
def studio(gatehouse: CommandLine, tmp_path: Path) -> CommandLine:
    """An installation with Anna, who has a second factor, and Bert."""
    file = tmp_path / "people.yaml"
    file.write_text(PEOPLE)
    gatehouse("apply", file)
    gatehouse("project", "create", "Mind Games", "--owner", "anna@studio.example")
    return gatehouse


def events(gatehouse: CommandLine, subject: str) -> list[str]:
    return [one["event"] for one in gatehouse.json("audit", "show", "--subject", subject)]


def test_project_is_created_for_an_owner_with_a_second_factor(studio: CommandLine) -> None:
    refused = studio.expect_failure("project", "create", "Bert Games", "--owner", "1002")
    assert "1002 has no TOTP and no passkey" in refused
    project = studio.json("project", "show", "mind_games")
    assert (project["title"], project["author"]) == ("Mind Games", "1001")
    application = studio.json("application", "show", "Mind Games")
    assert application["application_id"] == project["application_id"]
    assert "project.published" in events(studio, "project mind_games")


def test_project_is_changed_field_by_field_and_an_empty_value_clears(studio: CommandLine) -> None:
    change = ("project", "change", "mind_games")
    changed = studio.json(*change, "--description", "Puzzles", "--alias", "mg", "--alias", "minds", "--tag", "puzzle")
    assert (changed["description"], changed["aliases"], changed["tags"]) == ("Puzzles", ["mg", "minds"], ["puzzle"])
    changed = studio.json("project", "change", "mg", "--allowed-domain", "studio.example", "--alias", "")
    assert changed == studio.json("project", "show", "mind_games")
    assert (changed["description"], changed["aliases"], changed["tags"]) == ("Puzzles", [], ["puzzle"])
    assert changed["settings"] == {"allowed_domains": ["studio.example"], "services": {}}
    assert {"project.changed", "project.tagged"} <= set(events(studio, "project mind_games"))
    assert "nothing to change" in studio.expect_failure(*change, code=2)
    assert "data.tags[0]" in studio.expect_failure(*change, "--title", "Other", "--tag", "no tag")
    assert studio.json("project", "show", "mind_games")["title"] == "Mind Games"


def test_removal_asks_and_spares_application_1(studio: CommandLine) -> None:
    declined = studio.run("project", "remove", "mind_games", stdin="n\n")
    assert (declined.code, "Remove Mind Games?" in declined.err) == (1, True)
    assert not studio.json("project", "show", "mind_games")["removed"]
    studio("project", "remove", "mind_games", stdin="y\n")
    assert studio.json("project", "show", "mind_games")["removed"]
    assert "The project was removed." in studio.expect_failure("project", "change", "mind_games", "--title", "Other")
    studio("application", "create", "Shop")
    studio("application", "remove", "Shop", "--yes")
    assert [one["removed"] for one in studio.json("application", "list", "Shop")] == [True]
    assert "cannot be removed" in studio.expect_failure("application", "remove", "1", "--yes")
    assert "built-in roles" in studio.expect_failure("role", "remove", "1", "administrator", "--yes")


def test_application_takes_documents_from_files(studio: CommandLine, tmp_path: Path) -> None:
    settings, bad = tmp_path / "settings.json", tmp_path / "bad.json"
    settings.write_text('{"restricted_domains": ["studio.example"]}')
    bad.write_text("[]")
    made = studio.json("application", "create", "Shop", "--project", "mind_games", "--settings", settings)
    assert (made["project_id"], made["settings"]) == ("mind_games", {"restricted_domains": ["studio.example"]})
    assert made == studio.json("application", "show", "Shop")
    changed = studio.json("application", "change", "Shop", "--name", "Store", "--settings", "", "--project", "")
    assert (changed["name"], changed.get("project_id"), changed["settings"]) == ("Store", None, {})
    for file, said in ((bad, "Expected `object"), (tmp_path / "none.json", "cannot read"), (tmp_path, "cannot read")):
        assert said in studio.expect_failure("application", "change", "Store", "--service-meta", file, code=2)
    assert "application.created" in events(studio, f"application {made['application_id']}")


def test_group_gets_members_and_tags_by_a_change(studio: CommandLine, tmp_path: Path) -> None:
    conditions = tmp_path / "conditions.json"
    conditions.write_text('[{"title": "Staff", "condition": {"domain": "studio.example"}}]')
    made = studio.json("group", "create", "mind_games", "Staff", "--description", "Who works here")
    assert (made["description"], made["users"], made["tags"]) == ("Who works here", [], ["project"])
    change = ("group", "change", made["id"])
    changed = studio.json(*change, "--user", "1001", "--user", "1002", "--conditions", conditions, "--title", "Crew")
    assert changed == studio.json("group", "show", made["id"])
    assert (changed["title"], changed["users"], len(changed["conditions"])) == ("Crew", ["1001", "1002"], 1)
    changed = studio.json(*change, "--user", "", "--tag", "")
    assert (changed["users"], changed["tags"], len(changed["conditions"])) == ([], [], 1)
    assert "no user 4711" in studio.expect_failure(*change, "--user", "4711")
    studio("group", "remove", made["id"], "--yes")
    assert "Group not found." in studio.expect_failure("group", "show", made["id"])


def test_role_is_created_once_and_changed_by_its_name(studio: CommandLine, tmp_path: Path) -> None:
    condition = tmp_path / "condition.json"
    condition.write_text('{"tag": "beta"}')
    create = ("role", "create", "Mind Games", "Cashier", "--user-limit", "3", "--protected")
    made = studio.json(*create, "--condition", condition, "--condition-mode", "require")
    assert (made["user_limit"], made["protected"], made["condition"]) == (3, True, {"tag": "beta"})
    assert "there is a role cashier" in studio.expect_failure("role", "create", "Mind Games", "cashier")
    changed = studio.json("role", "change", "Mind Games", "cashier", "--no-protected", "--condition", "")
    assert (changed["user_limit"], changed["protected"], changed["condition"]) == (3, False, None)
    assert changed == studio.json("role", "show", "Mind Games", "Cashier")
    assert "no role missing" in studio.expect_failure("role", "change", "Mind Games", "missing", "--params", "a")
    studio("role", "remove", "Mind Games", "Cashier", "--yes")
    assert "no role" in studio.expect_failure("role", "show", "Mind Games", "Cashier")


def test_group_of_commands_is_whole_when_it_is_loaded_alone() -> None:
    command = [*GATEHOUSE_COMMAND, "project", "--help"]
    found = subprocess.run(command, env=inherited_environment({}), capture_output=True, check=True)
    assert {"change", "create", "erase", "list", "remove", "show"} <= set(found.stdout.decode().split())
