"""`gatehouse import`, with the examples of its guide."""

import csv
import json
import re
import shlex
import stat
from pathlib import Path
from typing import Final

import pytest

from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.guides import guide_text, programs_for

EXAMPLE: Final = re.compile(r"^`(?P<name>[\w.]+)`\n\n```\w+\n(?P<content>.*?)^```", re.MULTILINE | re.DOTALL)


def guide_files(folder: Path) -> dict[str, Path]:
    """Write the files that the guide shows."""
    found = {match["name"]: match["content"] for match in EXAMPLE.finditer(guide_text("import"))}
    for name, content in found.items():
        (folder / name).write_text(content)
    return {name: folder / name for name in found}


def guide_commands(files: dict[str, Path]) -> list[list[str]]:
    lines = [line for block in programs_for(__file__, "import", "sh") for line in block.splitlines()]
    return [[str(files.get(word, word)) for word in shlex.split(line)[1:]] for line in lines]


def test_every_example_of_the_guide_works(gatehouse: CommandLine, tmp_path: Path) -> None:
    files = guide_files(tmp_path)
    commands = guide_commands(files)
    with_steam = {"GATEHOUSE__PROVIDERS__STEAM__KIND": "steam"}
    results = [gatehouse.run(*command, environment=with_steam) for command in commands]
    assert [result.code for result in results] == [1, 1, 0, 0, 0, 0, 1], [result.err for result in results]
    plan, done, *others, linked = results
    assert "3 rows: 2 would be imported, 0 imported before, 1 refused." in plan.out
    assert "To import: 1 PBKDF2, 1 bcrypt, 1 with TOTP." in plan.out
    assert "3 rows: 2 imported, 0 imported before, 1 refused." in done.out
    assert "row 4 no-address: login: not an email address" in done.err
    assert all("1 rows: 1 imported" in result.out for result in others)
    assert "2 rows: 2 imported, 0 imported before, 0 refused." in linked.out
    assert "2 without a password, 1 identities." in linked.out
    assert "row 3 hanna@studio.example: imported without identity at myspace: no such provider" in linked.err
    report = tmp_path / "players.csv.refused.csv"
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert list(csv.reader(report.read_text().splitlines())) == [
        ["row", "account", "reason"],
        ["4", "no-address", "login: not an email address"],
    ]
    users = [gatehouse.json("user", "show", f"{name}@studio.example") for name in ("anna", "cleo", "dora", "fritz")]
    assert [user["nick"] for user in users] == ["Anna", "Cleo", "dora", "Fritz"]
    assert users[2]["tags"] == ["editor", "shop:admin"]
    [shown] = re.findall(r"^```text\n(1 rows.*?)^```", guide_text("import"), re.MULTILINE | re.DOTALL)
    assert others[1].out.startswith(shown)
    assert users[0]["user_id"] == "1000000001"
    facts = [gatehouse.facts("user", "show", user["user_id"]) for user in users]
    assert [one["totp"] for one in facts] == ["no", "no", "yes", "no"]
    [record] = gatehouse.json("audit", "show", "--subject", "anna@studio.example")
    assert record["event"] == "user.imported"

    again = gatehouse.run(*commands[1])
    assert "3 rows: 0 imported, 2 imported before, 1 refused." in again.out
    other = gatehouse.run(*commands[1], "--import-id", "another", "--json")
    assert (other.json()["imported"], other.json()["refused"]) == (0, 3)


def test_the_map_lists_old_and_new_ids_also_of_an_earlier_run(gatehouse: CommandLine, tmp_path: Path) -> None:
    file, ids = tmp_path / "realm.json", tmp_path / "ids.csv"
    users = [
        {
            "id": f"old-{name}",
            "username": name,
            "email": f"{name}@studio.example",
            "emailVerified": True,
            "enabled": name != "ben",
        }
        for name in ("anna", "ben")
    ]
    file.write_text(json.dumps({"users": users}))
    command = ("import", "--from", "keycloak", file, "--id-map", ids)
    assert "cannot be used with --dry-run" in gatehouse.expect_failure(*command, "--dry-run", code=2)
    for _ in range(2):
        gatehouse(*command)
        rows = list(csv.DictReader(ids.read_text().splitlines()))
        assert [row["old_id"] for row in rows] == ["old-anna", "old-ben"]
        for row in rows:
            shown = gatehouse.json("user", "show", row["user_id"])
            assert (shown["login"], shown["blocked"]) == (row["account"], row["old_id"] == "old-ben")
    assert ids.stat().st_mode & 0o777 == 0o600


def test_import_of_keycloak_counts_and_names_what_it_leaves_out(gatehouse: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "realm.json"
    people = [
        {
            "username": f"player{number}",
            "email": f"player{number}@studio.example",
            "emailVerified": True,
            "createdTimestamp": 1_600_000_000_000,
            "attributes": {"locale": ["de"], "phone": []},
            "realmRoles": ["default-roles-studio", "editor", "2step"],
            "credentials": [{"type": "webauthn"}, {"type": "otp", "secretData": '{"value": "12345678901234567890"}'}],
            "disableableCredentialTypes": ["password"],
        }
        for number in range(2)
    ]
    groups = [{"name": "studio", "subGroups": [{"name": "\x1b[2Jartists"}]}]
    realm = {
        "realm": "studio",
        "registrationAllowed": False,
        "smtpServer": {"host": "mail.example"},
        "roles": {"realm": [{"name": "editor"}], "client": {"shop": [{"name": "admin"}], "account": []}},
        "groups": groups,
        "clients": [{"clientId": f"client-{number}"} for number in range(12)],
        "components": {"org.keycloak.keys.KeyProvider": [{"name": "rsa"}]},
        "identityProviders": [{"alias": "google"}],
        "users": people,
    }
    file.write_text(json.dumps(realm))
    plan = gatehouse("import", "--from", "keycloak", file, "--dry-run")
    assert plan.partition("Not imported")[2].splitlines()[1:] == [
        "  1 realm roles: editor",
        "  1 client roles: shop/admin",
        "  2 groups: /studio, /studio/\N{REPLACEMENT CHARACTER}[2Jartists",
        f"  12 clients: {', '.join(f'client-{number}' for number in range(10))}, and 2 more",
        "  1 components: org.keycloak.keys.KeyProvider/rsa",
        "  1 identity providers: google",
        "  1 realm settings: smtpServer",
        "  2 other fields of accounts: createdTimestamp (2)",
        "  2 attributes of accounts: locale (2)",
        "  6 realm roles of accounts: default-roles-studio (2), editor (2), 2step (2)",
        "  2 credentials of accounts: webauthn (2)",
        "To keep the roles of accounts as tags, add --roles-as-tags.",
        f"Import ID: {plan.split()[-1]}",
    ]
    command = ("import", "--from", "keycloak", file, "--roles-as-tags")
    dropped = {one["kind"]: one for one in gatehouse.json(*command)["dropped"]}
    assert dropped["clients"]["count"] == len(dropped["clients"]["names"]) == 12
    assert dropped["realm roles of accounts"]["names"] == {"default-roles-studio": 2, "2step": 2}
    assert "editor" in gatehouse.json("user", "show", "player1@studio.example")["tags"]
    assert "--roles-as-tags" not in gatehouse(*command)
    assert "works with --from keycloak only" in gatehouse.expect_failure(
        "import", "--from", "csv", file, "--roles-as-tags", code=2
    )


def test_im_07_a_report_is_not_run_by_a_spreadsheet_and_colors_no_terminal(
    gatehouse: CommandLine, tmp_path: Path
) -> None:
    file, report = tmp_path / "hostile.csv", tmp_path / "report.csv"
    file.write_text("login,nick\n=cmd|'/c calc'!A0,x\n\x1b[2J@x,x\n+1@b.example,\x07\n")
    result = gatehouse.run("import", "--from", "csv", file, "--report", report, "--emails", "unverified")
    assert result.code == 1
    assert "\x1b" not in result.err + result.out
    names = [row["account"] for row in csv.DictReader(report.read_text().splitlines())]
    assert names[0].startswith("'=")
    assert names[2].startswith("'+")


def test_a_command_that_cannot_work_says_why(gatehouse: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "players.csv"
    file.write_text("login,pasword\na@b.example,x\n")
    assert "unknown column 'pasword'" in gatehouse.expect_failure("import", "--from", "csv", file)
    assert "--hash-config is needed" in gatehouse.run("import", "--from", "firebase", file).err
    file.write_text("login,email_verified\na@b.example,\nbad,\n")
    missing = tmp_path / "nowhere" / "report.csv"
    failure = gatehouse.expect_failure("import", "--from", "csv", file, "--report", missing)
    assert "cannot write" in failure


@pytest.mark.parametrize("source", ["csv", "jsonl"])
def test_im_11_file_without_email_verified_is_refused_unless_the_command_says_it(
    gatehouse: CommandLine, tmp_path: Path, source: str
) -> None:
    file = tmp_path / "players"
    content = {"csv": "login,totp_secret\n{},{}\n", "jsonl": '{{"login": "{}", "totp_secret": "{}"}}\n'}[source]
    for state in ("unverified", "verified"):
        file.write_text(content.format(f"{state}@studio.example", "JBSWY3DPEHPK3PXP"))
        command = ("import", "--from", source, file)
        assert "add --emails verified or --emails unverified" in gatehouse.expect_failure(*command, code=2)
        output = gatehouse(*command, "--emails", state)
        assert ("1 of them have a second factor or identity" in output) == (state == "unverified")
        shown = gatehouse.json("user", "show", f"{state}@studio.example")
        assert shown["email_verified"] == (state == "verified")


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"\xff\xfe\x00", b"login"])
def test_im_01_a_hostile_file_ends_in_a_message(gatehouse: CommandLine, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "hostile"
    file.write_bytes(content)
    for source in ("csv", "jsonl", "keycloak", "auth0"):
        result = gatehouse.run("import", "--from", source, file)
        assert "Traceback" not in result.err


def test_a_terminal_sees_how_far_it_is(installation: InstallationPaths, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("login\nanna@studio.example\nbea@studio.example\n")
    output, shown = installation.run_in_terminal("import", "--from", "csv", file, "--emails", "verified")
    assert re.search(r"\rImporting: \[[#.]+\] \d of 2 ", shown)
    assert "2 rows: 2 imported" in output


def test_import_invites_and_invitations_are_listed_and_withdrawn(gatehouse: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("login,nick\nnew@studio.example,New\nnot-a-mail@x,X\n")
    done = gatehouse.run("import", "--from", "csv", str(file), "--emails", "unverified", "--invite")
    assert ("1 invitations queued." in done.out, "login: not an email address" in done.err) == (True, True)
    again = gatehouse.run("import", "--from", "csv", str(file), "--emails", "unverified", "--invite", "--json")
    assert json.loads(again.out)["invited"] == 1  # a new link
    refused = gatehouse.run("import", "--from", "csv", str(file), "--invite", "--dry-run")
    assert (refused.code, "--invite cannot be used with --dry-run" in refused.err) == (2, True)
    gatehouse.run("user", "invite", "new@studio.example", "--role", "1/administrator")
    (listed,) = gatehouse.json("user", "invitations", "new@studio.example")
    assert (listed["login"], listed["role"]) == ("new@studio.example", "administrator")
    assert listed["invitation_id"] in gatehouse.run("user", "invitations", "new@studio.example").out
    gatehouse.run("user", "withdraw-invitation", "new@studio.example", listed["invitation_id"])
    assert gatehouse.json("user", "invitations", "new@studio.example") == []
    projects = tmp_path / "projects.yaml"
    projects.write_text("projects: [{title: Mind Games}]\n")
    gatehouse.run("apply", str(projects))
    owner = ("--role", "1/project_administrator", "--project", "mind_games")
    gatehouse.run("user", "invite", "new@studio.example", *owner)
    (listed,) = gatehouse.json("user", "invitations", "--project", "mind_games")
    for wrong in ((), ("new@studio.example", "--project", "mind_games")):
        both = gatehouse.run("user", "withdraw-invitation", *wrong, listed["invitation_id"])
        assert (both.code, "name either USER or --project" in both.err) == (2, True)
    gatehouse.run("user", "withdraw-invitation", listed["invitation_id"], "--project", "mind_games")
    assert gatehouse.json("user", "invitations", "--project", "mind_games") == []


def test_import_brings_phone_numbers_and_a_verified_one_once(gatehouse: CommandLine, tmp_path: Path) -> None:
    lines = (
        "login,email_verified,phone,phone_verified",
        "anna@studio.example,true,+49 151 23456789,true",
        "ben@studio.example,true,+4915123456789,true",
        "cleo@studio.example,true,+4915123456789,false",
        "dora@studio.example,true,0151 23456789,true",
        "emil@studio.example,true,,true",
    )
    file = tmp_path / "players.csv"
    file.write_text("\n".join(lines))
    done = gatehouse.run("import", "--from", "csv", str(file))
    assert "5 rows: 2 imported, 0 imported before, 3 refused." in done.out
    assert "row 5 dora@studio.example: phone: must be a phone number with its country code" in done.err
    assert "row 6 emil@studio.example: phone_verified needs a phone" in done.err
    other = tmp_path / "more.csv"
    other.write_text(f"{lines[0]}\nfritz@studio.example,true,+4915123456789,true\n")
    again = gatehouse.run("import", "--from", "csv", str(other))
    assert "the phone number is verified for user" in again.err
    anna, cleo = (gatehouse.json("user", "show", f"{name}@studio.example") for name in ("anna", "cleo"))
    assert (anna["phone"], anna["phone_verified"]) == ("+4915123456789", True)
    assert (cleo["phone"], cleo["phone_verified"]) == ("+4915123456789", False)
