"""`gatehouse project`."""

from pathlib import Path

from tests.support.command_line import CommandLine

STUDIO = """
projects:
  - {title: Mind Games, owners: ["1001"], administrators: [], aliases: [mg]}
applications:
  - {application_id: 50001, name: Shop, project_id: mind_games, roles: {moderator: {meta: {}}}}
"""
PEOPLE = """
users:
  - {user_id: "1001", login: anna@studio.example, nick: Anna}
"""


def test_erase_lists_what_goes_asks_and_removes_only_what_is_removed(gatehouse: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "studio.yaml"
    file.write_text(PEOPLE + STUDIO)
    gatehouse("apply", file)
    erase = ("project", "erase", "mind_games")
    assert "remove it first" in gatehouse.expect_failure(*erase, "--yes")
    file.write_text("projects: []\n")
    gatehouse("apply", file, "--prune")

    result = gatehouse.json(*erase, "--dry-run")
    assert (result["applications"], result["roles"], result["people"], result["erased"]) == (1, 1, 1, False)
    declined = gatehouse.run(*erase, stdin="n\n")
    assert (declined.code, "applications" in declined.out, "Permanently delete Mind Games?" in declined.err) == (
        1,
        True,
        True,
    )
    assert "Project mind_games permanently deleted" in gatehouse("project", "erase", "mg", stdin="y\n")

    assert "Project not found." in gatehouse.expect_failure(*erase, "--yes")
    [entry] = gatehouse.json("audit", "show", "--event", "project.erased")
    assert (entry["subject"], entry["details"]["applications"]) == ("project mind_games", 1)
    file.write_text(STUDIO)
    assert gatehouse.run("apply", file).code == 1
