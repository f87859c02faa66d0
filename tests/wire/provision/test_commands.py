"""`gatehouse apply` and `gatehouse export` as an operator runs them."""

import asyncio
import json
import re
import stat
from pathlib import Path

import yaml

from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.database_contents import flip_bit
from tests.support.oauth import REDIRECT
from tests.support.processes import GATEHOUSE_COMMAND, WatchedProcess
from tests.wire.provision.conftest import SECRETS

NOTHING = "No changes.\n"


def test_a_file_is_planned_applied_and_exported(gatehouse: CommandLine, file: Path, tmp_path: Path) -> None:
    plan = gatehouse.run("apply", file, "--dry-run")
    assert plan.code == 2
    assert plan.out.splitlines() == [
        "+ user anna@studio.example",
        "+ user bob@studio.example",
        "+ client web: profile native, because the file names none; for standard OpenID Connect add profile: oidc",
        "3 would be added, 0 changed, 0 removed.",
    ]
    assert gatehouse("apply", file) == plan.out.replace("would be ", "")
    assert gatehouse("apply", file) == NOTHING
    exported = tmp_path / "export.yaml"
    exported.write_text("others could read this")
    assert gatehouse("export", "--output", exported) == ""
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    assert [user["country"] for user in yaml.safe_load(exported.read_text())["users"]] in (["", "NO"], ["NO", ""])
    assert gatehouse("apply", exported, "--dry-run", "--prune") == NOTHING
    assert gatehouse("apply", "-", "--dry-run", stdin=exported.read_text()) == NOTHING
    assert gatehouse("export") == exported.read_text()


def test_only_new_clients_of_a_file_without_profile_become_native_and_the_plan_says_so(
    gatehouse: CommandLine, tmp_path: Path
) -> None:
    gatehouse("client", "create", "shop", "--name", "Shop", "--profile", "oidc", "--redirect-uri", REDIRECT)
    file = tmp_path / "clients.yaml"
    forum = "{client_id: forum, name: Forum, redirect_uris: [https://forum.example/cb], profile: oidc}"
    file.write_text(
        f"clients:\n  - {{client_id: shop, name: Store}}\n  - {forum}\n"
        "  - {client_id: lobby, name: Lobby, redirect_hosts: [localhost]}\n"
    )
    assert gatehouse.run("apply", file, "--dry-run").out.splitlines()[:3] == [
        "~ client shop: name",
        "+ client forum",
        "+ client lobby: profile native, because the file names none; for standard OpenID Connect add profile: oidc",
    ]
    changes = gatehouse.json("apply", file)["changes"]
    assert [change.get("assumed", "").partition(",")[0] for change in changes] == ["", "", "profile native"]
    exported = {client["client_id"]: client["profile"] for client in yaml.safe_load(gatehouse("export"))["clients"]}
    assert exported == {"shop": "oidc", "forum": "oidc", "lobby": "native"}


def test_a_terminal_sees_how_far_apply_and_export_are(place: InstallationPaths, file: Path) -> None:
    output, shown = place.run_in_terminal("apply", file)
    assert output.endswith("3 added, 0 changed, 0 removed.\n")
    works = ("Reading, lines", "Planning, entries", "Applying, records")
    totals = [re.findall(rf"\r{work}: \[[#.]+\] \d+ of (\d+)", shown) for work in works]
    assert [set(total) for total in totals] == [{str(file.read_text().count("\n"))}, {"3"}, {"3"}]
    output, shown = place.run_in_terminal("export", "--format", "yaml")
    assert re.search(r"\rExporting, entries: \[[#.]+\] 1 of 4 \(25 %\)", shown)  # with the central application
    assert yaml.safe_load(output).keys() >= {"users", "clients"}


def test_no_command_prints_a_given_secret(gatehouse: CommandLine, file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(file.read_text().replace("[localhost]", "[]"))
    results = [
        gatehouse.run(*words)
        for words in (
            ("apply", bad),
            ("apply", bad, "--json"),
            ("apply", file, "--dry-run", "--json"),
            ("apply", file, "--json"),
            ("export",),
        )
    ]
    assert [result.code for result in results] == [1, 1, 2, 0, 0]
    assert not [secret for secret in SECRETS for result in results if secret in result.out + result.err]


def test_scripts_get_the_plan_as_json(gatehouse: CommandLine, file: Path) -> None:
    gatehouse("apply", file)
    change = file.with_suffix(".json")
    change.write_text('{"users": [{"user_id": "1001", "nick": "Annie", "tags": ["boss"]}], "clients": []}')
    assert gatehouse.json("apply", change, "--prune") == {
        "applied": True,
        "changes": [
            {"action": "remove", "kind": "user", "name": "bob@studio.example", "fields": []},
            {"action": "change", "kind": "user", "name": "anna@studio.example", "fields": ["nick", "tags"]},
            {"action": "remove", "kind": "client", "name": "web", "fields": []},
        ],
        "spared": [],
        "warnings": [],
        "generated_secrets": {},
    }
    change.write_text('{"users": []}')
    assert gatehouse("apply", change, "--prune").splitlines() == [
        "! user anna@studio.example is kept as the last administrator",
        "No changes.",
    ]


def test_a_file_that_cannot_be_applied_is_refused_with_all_that_is_wrong(gatehouse: CommandLine, file: Path) -> None:
    file.write_text(file.read_text().replace("bob.txt", "missing.txt").replace("[localhost]", "[]"))
    assert gatehouse.expect_failure("apply", file).splitlines() == [
        "The file cannot be applied.",
        f"  users[1].password: cannot read {file.parent}/missing.txt: No such file or directory",
        "  clients[0]: a client needs a redirect URI or host",
    ]
    file.write_text("users: [{nick: Anna, nic: Anna}]")
    assert gatehouse.run("apply", file, "--json").json() == {
        "applied": False,
        "problems": ["users[0].nic: unknown field, did you mean nick?"],
    }
    assert "cannot read nowhere.yaml: No such file or directory" in gatehouse.expect_failure("apply", "nowhere.yaml")
    file.write_text("users: [")
    assert f"  {file}: line 1: " in gatehouse.expect_failure("apply", file)


def test_a_secret_made_for_a_client_is_told_once(gatehouse: CommandLine, file: Path) -> None:
    file.write_text(file.read_text().replace(f", client_secret: {SECRETS[2]}", ""))
    assert gatehouse.run("apply", file, "--dry-run", "--json").json()["generated_secrets"] == {}
    assert "New secret" not in gatehouse.run("apply", file, "--dry-run").out
    created = gatehouse("apply", file).splitlines()[-1]
    assert created.startswith("New secret for client web: ")
    assert gatehouse("apply", file) == NOTHING
    bare = file.with_suffix(".json")
    bare.write_text(gatehouse("export", "--no-secrets", "--format", "json"))
    assert "sealed" not in bare.read_text()
    assert gatehouse("apply", bare, "--dry-run") == NOTHING


def test_new_oidc_client_of_a_file_gets_es256_and_an_existing_one_keeps_its_algorithm(
    gatehouse: CommandLine, tmp_path: Path
) -> None:
    def applied(client_id: str, more: str) -> str:
        fields = f"profile: oidc, public: true, redirect_uris: ['{REDIRECT}']"
        file = tmp_path / "client.yaml"
        file.write_text(f"clients: [{{client_id: {client_id}, name: Shop, {fields}{more}}}]")
        gatehouse("apply", file)
        return str(gatehouse.json("client", "show", client_id)["id_token_signed_response_alg"])

    assert applied("web", "") == "ES256"
    gatehouse(
        "client", "create", "old", "--name", "Shop", "--public", "--redirect-uri", REDIRECT, "--id-token-alg", "RS256"
    )
    for more in ("", ", token_settings: {access_seconds: 600}", ", token_settings: null"):
        assert applied("old", more) == "RS256"
    assert applied("old", ", token_settings: {id_token_signed_response_alg: ES256}") == "ES256"


def test_r_25_a_damaged_secret_is_named_by_an_export_and_mended_by_a_file_that_has_it(
    gatehouse: CommandLine, place: InstallationPaths, file: Path, tmp_path: Path
) -> None:
    gatehouse("apply", file)
    exported = tmp_path / "export.yaml"
    gatehouse("export", "--output", exported)
    for path in (file, exported):
        asyncio.run(flip_bit(place.url, "client_secrets", "secret", "client_id = 'web'", at=90))
        assert "client-secret:web: authentication failed" in gatehouse.expect_failure("export")
        assert "~ client web" in gatehouse("apply", path)
        assert gatehouse("apply", path) == NOTHING
        assert "web" in gatehouse("export")


def test_weak_secrets_are_taken_in_development_or_when_told(place: InstallationPaths, file: Path) -> None:
    master_key = "hJ3oGkP0rVtYw1mXq9Zc5sEdN7uBfLaI2xRkT8vQ4yM"  # random; seals nothing elsewhere
    strict = CommandLine(("--data", place.data), {**place.settings, "GATEHOUSE__SECURITY__MASTER_KEY": master_key})
    file.write_text('users: [{login: anna@studio.example, nick: Anna, password: "short"}]')
    assert "use --allow-weak to accept it" in strict.expect_failure("apply", file)
    assert strict("apply", file, "--allow-weak").startswith("+ user anna@studio.example")
    assert strict("apply", file) == NOTHING


def test_an_export_needs_an_installation(tmp_path: Path) -> None:
    nowhere = InstallationPaths(data=tmp_path / "data", url=f"sqlite:///{tmp_path}/none.db").command_line()
    assert "no database at" in nowhere.expect_failure("export")


def test_two_processes_that_apply_one_file_at_once_make_everything_once(
    gatehouse: CommandLine, place: InstallationPaths, file: Path
) -> None:
    gatehouse("export")  # creates the keys
    command = [*GATEHOUSE_COMMAND, "apply", str(file), "--json", "--dev", "--data", str(place.data)]
    both = [WatchedProcess(command, environment=place.settings) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert sorted(len(json.loads("".join(process.stdout))["changes"]) for process in both) == [0, 3]


def test_a_file_bans_people_and_prune_lifts_bans(gatehouse: CommandLine, file: Path, tmp_path: Path) -> None:
    gatehouse("apply", file)
    bans = tmp_path / "bans.yaml"
    bans.write_text('bans: [{user_id: "1001"}]')
    assert "At least one person must administer" in gatehouse.expect_failure("apply", bans)
    eve = 'users: [{user_id: "1077", login: eve@studio.example, nick: Eve}]'
    bans.write_text(f'{eve}\nbans: [{{user_id: "1077", public_text: Cheating, until: 4000000000}}]')
    assert gatehouse("apply", bans).splitlines()[1] == "+ ban 1077 from the installation"
    assert gatehouse("apply", bans) == NOTHING
    exported = yaml.safe_load(gatehouse("export"))["bans"]
    assert exported == [{"user_id": "1077", "reason": "", "public_text": "Cheating", "until": 4_000_000_000}]
    bans.write_text('bans: [{user_id: "1077", until: 0}]')
    assert "until" in gatehouse("apply", bans)
    (active,) = gatehouse.json("user", "bans", "--state", "active")
    assert (active["public_text"], active["until"]) == ("Cheating", 0)
    bans.write_text('bans: [{user_id: "1999", application_id: 7}, {user_id: "1077", project_id: none}]')
    refused = gatehouse.expect_failure("apply", bans)
    assert all(text in refused for text in ("bans[0]", "bans[1]", "there is no project none"))
    bans.write_text("bans: []")
    assert gatehouse("apply", bans, "--prune").splitlines()[0] == "- ban 1077 from the installation"
    assert gatehouse.json("user", "bans", "--state", "active") == []


def test_export_of_some_sections_is_applied_too(gatehouse: CommandLine, file: Path) -> None:
    gatehouse("apply", file)
    assert set(yaml.safe_load(gatehouse("export", "--only", "clients", "--only", "users"))) == {"clients", "users"}
    rest = gatehouse("export", "--no-users")
    assert ("users" in yaml.safe_load(rest), "clients" in yaml.safe_load(rest)) == (False, True)
    assert gatehouse("apply", "-", stdin=rest) == NOTHING
    assert "leave nothing to export" in gatehouse.expect_failure("export", "--only", "users", "--no-users", code=2)
