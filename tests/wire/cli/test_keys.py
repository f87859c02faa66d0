"""`gatehouse key`: rotation, the master key, and resealing."""

import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from gatehouse.keys.sealing import master_key_id, parse_master_key
from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.processes import Node

MASTER = "GATEHOUSE__SECURITY__MASTER_KEY"
PREVIOUS = "GATEHOUSE__SECURITY__PREVIOUS_MASTER_KEYS"
BASE_URL = {"GATEHOUSE__SERVER__BASE_URL": "https://login.studio.example"}
KEYS = "/proxy/oauth/keys"


def states(gatehouse: CommandLine, *options: str) -> list[tuple[str, str, str]]:
    return sorted((key["purpose"], key["alg"], key["state"]) for key in gatehouse.json("key", "list", *options))


def test_keys_are_rotated_as_planned_at_once_or_with_distrust(gatehouse: CommandLine) -> None:
    first = {key["kid"] for key in gatehouse.json("key", "list")}
    assert {state for _, _, state in states(gatehouse)} == {"signing"}

    [planned] = gatehouse.json("key", "rotate", "--purpose", "tokens", "--alg", "ES256")
    assert planned["state"] == "next"
    assert planned["signs_from"] - planned["created_at"] == 3_600
    assert "nothing to rotate" in gatehouse.expect_failure("key", "rotate", "--alg", "ES256")
    [now] = gatehouse.json("key", "rotate", "--alg", "ES256", "--now")
    assert (now["kid"], now["state"]) == (planned["kid"], "signing")
    assert ("tokens", "ES256", "verifying") in states(gatehouse)

    distrusted = gatehouse.json("key", "rotate", "--distrust")
    assert "audit" not in {one["purpose"] for one in distrusted}
    live = {key["kid"]: key["state"] for key in gatehouse.json("key", "list")}
    assert set(live.values()) == {"signing"}
    assert len(live) == len(first) == 5
    assert len(first & live.keys()) == 1, "only the audit key is still trusted"
    retired = [key for key in gatehouse.json("key", "list", "--all") if key["state"] == "retired"]
    assert {key["kid"] for key in retired} == (first | {planned["kid"]}) - live.keys()
    assert "no matching keys" in gatehouse.expect_failure("key", "rotate", "--purpose", "audit", "--distrust", code=2)

    events = [record["event"] for record in gatehouse.json("audit", "show") if record["event"] != "key.made"]
    assert sorted(events) == ["key.distrusted"] * 4 + ["key.rotated"] * 2


def test_a_master_key_file_is_for_its_owner_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "master.key"
    gatehouse = CommandLine(("--data", tmp_path))
    words = gatehouse.run("key", "init", "--file", path)
    assert words.code == 0
    assert f"{MASTER}__FILE={path}" in words.out
    assert "Better store it outside the data directory" in words.err
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key = path.read_text()
    assert key.strip() not in words.out
    assert "never overwritten" in gatehouse.expect_failure("key", "init", "--file", path)
    assert path.read_text() == key
    named = {f"{MASTER}__FILE": str(path)}
    gatehouse("migrate", environment=named)
    assert gatehouse.json("key", "list", environment=named)


@pytest.fixture
def dev_installation(gatehouse: CommandLine, tmp_path: Path) -> Path:
    """An installation made with --dev, with a sealed secret of each kind, and a production master key."""
    gatehouse("client", "create", "web", "--name", "Web shop", "--profile", "native", "--redirect-host", "localhost")
    gatehouse("client", "rotate-secret", "web")
    gatehouse(
        "client", "create", "native-game", "--name", "Game", "--profile", "native", "--redirect-host", "localhost"
    )
    users = tmp_path / "users.yaml"
    users.write_text("users: [{login: anna@studio.example, nick: Anna, totp_secret: JBSWY3DPEHPK3PXP}]")
    gatehouse("apply", users)
    path = tmp_path / "master.key"
    gatehouse("key", "init", "--file", path)
    return path


def without_dev(installation: InstallationPaths, key: Path) -> CommandLine:
    return CommandLine(
        ("--data", installation.data), {**installation.settings, **BASE_URL, f"{MASTER}__FILE": str(key)}
    )


def levels(gatehouse: CommandLine, topic: str) -> Sequence[str]:
    findings = gatehouse.run("doctor", "--json").json()["findings"]
    return [finding["level"] for finding in findings if finding["topic"] == topic]


def test_an_installation_moves_on_from_dev_to_a_production_key(
    installation: InstallationPaths, dev_installation: Path
) -> None:
    gatehouse = without_dev(installation, dev_installation)
    assert "was created with --dev" in gatehouse.expect_failure("key", "list", code=78)
    outcome = gatehouse.json("key", "rewrap")
    assert outcome == {
        "moved": {"signing_keys": 5, "client_secrets": 3, "totp_factors": 1, "installation": 2},
        "left": {},
    }
    again = gatehouse("key", "rewrap")
    assert "Everything is encrypted with the current master key" in again
    assert f"Delete {installation.data / 'dev.key'}" in again
    (installation.data / "dev.key").unlink()
    assert levels(gatehouse, "master key") == ["ok"]
    assert len(gatehouse.json("key", "list")) == 5
    records = gatehouse.json("audit", "show", "--event", "installation.rewrapped")
    assert {record["subject"] for record in records} == {
        *("master_keys", "keys", "client_secrets", "totp_factors", "installation")
    }
    assert gatehouse.json("audit", "verify")["problems"] == []
    assert gatehouse("export").count("sealed") >= 3


def test_r_24_everything_is_sealed_anew_while_the_service_runs(
    installation: InstallationPaths, dev_installation: Path
) -> None:
    """R-24: new key primary and old key previous, re-wrap, then the old key is removed."""
    new = {MASTER: dev_installation.read_text().strip()}
    old = {PREVIOUS: (installation.data / "dev.key").read_text().strip()}
    both = replace(installation, environment={**new, **old})
    gatehouse = both.command_line()
    with Node(data=installation.data, environment=both.settings) as node:
        before = httpx2.get(f"{node.address}{KEYS}").json()
        assert levels(gatehouse, "master key") == ["warn"] * 4
        assert gatehouse.json("key", "rewrap")["left"] == {}
        assert levels(gatehouse, "master key") == ["warn"], "the previous key can be removed"
        assert httpx2.get(f"{node.address}{KEYS}").json() == before
        assert httpx2.get(f"{node.address}/readyz").status_code == 200
        node.terminate()
    only = replace(installation, environment=new)
    gatehouse = only.command_line()
    with Node(data=installation.data, environment=only.settings) as node:
        assert httpx2.get(f"{node.address}{KEYS}").json() == before
        assert levels(gatehouse, "master key") == ["ok"]
        assert gatehouse("client", "rotate-secret", "web")


def test_mk_02_a_rewrap_is_refused_while_a_running_node_lacks_the_new_key(
    installation: InstallationPaths, dev_installation: Path
) -> None:
    new, old = dev_installation.read_text().strip(), (installation.data / "dev.key").read_text().strip()
    before = replace(installation, environment={MASTER: old})
    both = replace(installation, environment={MASTER: new, PREVIOUS: old})
    gatehouse = both.command_line()
    new_id = master_key_id(parse_master_key(new))
    with Node(data=installation.data, environment=before.settings) as node:
        refusal = gatehouse.expect_failure("key", "rewrap")
        assert f"(process {node.process.pid}) runs without master key {new_id}" in refusal
        [(level, text)] = [
            (one["level"], one["text"])
            for one in gatehouse.run("doctor", "--json").json()["findings"]
            if one["topic"] == "nodes"
        ]
        assert (level, f"restart it with {new_id}" in text) == ("warn", True)
        assert "nothing was changed" in gatehouse.run("key", "rewrap", "--force", stdin="yes\n").err
        assert httpx2.get(f"{node.address}{KEYS}").status_code == 200
        forced = gatehouse.run("key", "rewrap", "--force", stdin=f"{new_id}\n")
        assert forced.code == 0, forced.err
        assert httpx2.get(f"{node.address}/readyz").status_code == 503
        node.process.wait_for_line("not ready: master key", node.process.stderr)
        assert levels(gatehouse, "nodes") == ["bad"]
        assert node.terminate() == 0
    assert levels(gatehouse, "nodes") == ["ok"], "a node that stopped is not listed"
    with Node(data=installation.data, environment=both.settings) as node:
        assert httpx2.get(f"{node.address}/readyz").status_code == 200
        assert levels(gatehouse, "nodes") == ["ok"]
        assert node.terminate() == 0
    assert gatehouse.json("audit", "verify")["problems"] == []


def test_a_wrong_master_key_changes_nothing(
    installation: InstallationPaths, gatehouse: CommandLine, dev_installation: Path
) -> None:
    """R-24."""
    keys = gatehouse.json("key", "list")
    records = len(gatehouse.json("audit", "show"))
    wrong = {MASTER: dev_installation.read_text().strip()}
    for command in (("key", "rotate"), ("migrate",), ("user", "show", "1"), ("backup", installation.data / "b.gz")):
        assert "encrypted with" in gatehouse.expect_failure(*command, environment=wrong)
    assert gatehouse.json("key", "list") == keys
    assert len(gatehouse.json("audit", "show")) == records
    assert not (installation.data / "b.gz").exists()
