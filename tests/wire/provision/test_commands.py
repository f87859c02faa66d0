"""`gatehouse apply` and `gatehouse export` as an operator runs them."""

import json
import os
import stat
from pathlib import Path

import pytest
import yaml

from tests.support.processes import GATEHOUSE, WatchedProcess

PASSWORD = "correct-horse-battery"
SECRET = "Zq8vK2mX4tR9wLp6sYb3nHc7dJf5gTaU"
FILE = """\
users:
  - {login: anna@studio.example, nick: Anna, password: {env: ANNA_PASSWORD}, user_id: "1001", administrator: true}
  - {login: bob@studio.example, nick: Bob, password: {file: bob.txt}, country: NO}
clients:
  - {client_id: web, name: Web shop, redirect_hosts: [localhost], client_secret: Zq8vK2mX4tR9wLp6sYb3nHc7dJf5gTaU}
"""


class Installation:
    def __init__(self, directory: Path, database_url: str) -> None:
        self.directory = directory
        self.file = directory / "studio.yaml"
        self.file.write_text(FILE)
        (directory / "bob.txt").write_text("a-secret-of-bob\n")
        self._environment = {"GATEHOUSE__DATABASE__URL": database_url, "ANNA_PASSWORD": PASSWORD}

    def start(self, *words: str | Path) -> WatchedProcess:
        data = ["--data", str(self.directory / "data"), "--dev"]
        return WatchedProcess([*GATEHOUSE, *map(str, words), *data], environment=self._environment)

    def run(self, *words: str | Path, expect: int = 0) -> str:
        """What the command prints, once it has ended with the expected code."""
        process = self.start(*words)
        code = process.wait()
        assert code == expect, process.output()
        for secret in (PASSWORD, SECRET, "a-secret-of-bob"):
            assert secret not in process.output()
        return "".join(process.stdout if code != 1 else process.stderr)


@pytest.fixture
def installation(tmp_path: Path, database_url: str) -> Installation:
    return Installation(tmp_path, database_url)


def test_a_file_is_planned_applied_and_exported(installation: Installation) -> None:
    plan = installation.run("apply", installation.file, "--dry-run", expect=2)
    assert plan.splitlines() == [
        "+ user anna@studio.example",
        "+ user bob@studio.example",
        "+ client web",
        "3 would be added, 0 changed, 0 removed.",
    ]
    made = json.loads(installation.run("apply", installation.file, "--json"))
    assert made["applied"] is True
    assert [(change["action"], change["name"]) for change in made["changes"]] == [
        ("add", "anna@studio.example"),
        ("add", "bob@studio.example"),
        ("add", "web"),
    ]
    exported = installation.directory / "export.yaml"
    installation.run("export", "--output", exported)
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    assert [user["country"] for user in yaml.safe_load(exported.read_text())["users"]] == ["", "NO"]
    assert installation.run("apply", exported, "--dry-run", "--prune") == "Nothing to change.\n"


def test_two_processes_that_apply_one_file_at_once_make_everything_once(installation: Installation) -> None:
    empty = installation.directory / "empty.json"
    empty.write_text('{"users": []}')
    installation.run("apply", empty)  # makes the tables and the keys
    both = [installation.start("apply", installation.file, "--json") for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    changes = [len(json.loads("".join(process.stdout))["changes"]) for process in both]
    assert sorted(changes) == [0, 3]


@pytest.fixture
def on_sqlite(tmp_path: Path, sqlite_url: str) -> Installation:
    return Installation(tmp_path, sqlite_url)


def test_a_file_that_cannot_be_applied_is_refused_with_all_that_is_wrong(on_sqlite: Installation) -> None:
    on_sqlite.file.write_text(FILE.replace("bob.txt", "nobody.txt").replace("[localhost]", "[]"))
    refusal = on_sqlite.run("apply", on_sqlite.file, expect=1)
    nobody = on_sqlite.directory / "nobody.txt"
    assert refusal.splitlines() == [
        "The file cannot be applied.",
        f"  users[1].password: {nobody} cannot be read: No such file or directory",
        "  clients[0]: a client needs a redirect URI or host",
    ]
    on_sqlite.file.write_text("users: [{nick: Anna, nic: Anna}]")
    told = on_sqlite.start("apply", on_sqlite.file, "--json")
    assert told.wait() == 1
    assert json.loads("".join(told.stdout)) == {
        "applied": False,
        "problems": ["users[0].nic: no such field, did you mean nick?"],
    }
    assert "cannot be read: No such file" in on_sqlite.run("apply", "nowhere.yaml", expect=1)


def test_a_secret_made_for_a_client_is_told_once_and_an_export_without_secrets_keeps_it(on_sqlite: Installation) -> None:
    on_sqlite.file.write_text(FILE.replace(f", client_secret: {SECRET}", ""))
    assert "client web: would" not in on_sqlite.run("apply", on_sqlite.file, "--dry-run", expect=2)
    made = on_sqlite.run("apply", on_sqlite.file)
    assert "client web has the new secret " in made
    assert "new secret" not in on_sqlite.run("apply", on_sqlite.file)
    bare = on_sqlite.directory / "bare.json"
    bare.write_text(on_sqlite.run("export", "--no-secrets", "--format", "json"))
    assert "sealed" not in bare.read_text()
    assert on_sqlite.run("apply", bare, "--dry-run") == "Nothing to change.\n"


def test_an_export_can_be_piped_into_apply(on_sqlite: Installation) -> None:
    on_sqlite.run("apply", on_sqlite.file)
    environment = {**os.environ, "GATEHOUSE__DATABASE__URL": on_sqlite._environment["GATEHOUSE__DATABASE__URL"]}  # noqa: TID251 - handed on to a child
    words = ["--dev", "--data", str(on_sqlite.directory / "data")]
    pipe = f"{GATEHOUSE[0]} -m gatehouse export {' '.join(words)} | {GATEHOUSE[0]} -m gatehouse apply - --dry-run {' '.join(words)}"
    piped = WatchedProcess(["bash", "-o", "pipefail", "-c", pipe], environment=environment)
    assert piped.wait() == 0, piped.output()
    assert "".join(piped.stdout) == "Nothing to change.\n"


def test_an_export_needs_an_installation(on_sqlite: Installation) -> None:
    assert "there is no database at" in on_sqlite.run("export", expect=1)
