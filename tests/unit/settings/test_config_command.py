import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import run

import click
import pytest
from click.testing import CliRunner, Result

from gatehouse import __version__
from gatehouse.cli import COMMANDS, main
from gatehouse.cli.common import Invocation, common_options, load_settings
from gatehouse.kernel.errors import Conflict
from gatehouse.settings.entries import ALL_SETTINGS
from tests.unit.settings.installation import MASTER, MASTER_KEY, SOUND

Command = Callable[..., Result]


@pytest.fixture
def gatehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line in an empty directory, with only the given environment."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str, environment: Mapping[str, str] = SOUND) -> Result:
        monkeypatch.setattr("gatehouse.cli.common.process_environment", lambda: environment)
        return CliRunner().invoke(main, words, prog_name="gatehouse")

    return call


def test_show_prints_every_setting_its_value_and_its_source(gatehouse: Command) -> None:
    answer = gatehouse("config", "show", environment=SOUND | {"GATEHOUSE__LOG__LEVEL": "debug"})
    rows = [line.split() for line in answer.stdout.splitlines()]
    assert answer.exit_code == 0
    assert set(ALL_SETTINGS) <= {row[0] for row in rows}
    assert ["log.level", "debug", "environment"] in rows
    assert ["rates.enabled", "true", "default"] in rows
    assert ["security.master_key", "********", "environment"] in rows


def test_show_prints_json_for_scripts(gatehouse: Command) -> None:
    answer = gatehouse("config", "show", "--json", "--dev", environment={})
    body = json.loads(answer.stdout)
    assert list(body) == list(ALL_SETTINGS)
    assert body["server.port"] == {"value": 8080, "source": "default"}
    assert body["game.session_info_allow"] == {"value": ["127.0.0.0/8", "::1/128"], "source": "dev"}
    assert body["rates.enabled"]["value"] is True


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_show_never_prints_a_secret(gatehouse: Command, options: tuple[str, ...]) -> None:
    strong = "Zq8vK2mX4tR9wLp6sYb3nHc7dJf5gTaU"
    environment = SOUND | {
        "GATEHOUSE__DATABASE__URL": "postgresql://gate:swordfish@db/gate",
        "GATEHOUSE__OPERATIONS__TOKEN": strong,
        "GATEHOUSE__SECURITY__PASSWORD_PEPPER": strong,
        "GATEHOUSE__SECURITY__PREVIOUS_MASTER_KEYS": MASTER_KEY,
    }
    answer = gatehouse("config", "show", *options, environment=environment)
    assert answer.exit_code == 0
    assert "gate:********@db" in answer.output
    for secret in (MASTER_KEY, strong, "swordfish"):
        assert secret not in answer.output


def test_show_prints_a_value_that_looks_like_markup_as_it_is(gatehouse: Command, tmp_path: Path) -> None:
    keys = tmp_path / "[red]:smile:"
    keys.mkdir()
    environment = SOUND | {"GATEHOUSE__APPLICATIONS__KEYS_DIR": str(keys)}
    answer = gatehouse("config", "show", environment=environment)
    assert "[red]:smile:" in "".join(answer.stdout.split())


def test_show_refuses_what_would_not_start(gatehouse: Command) -> None:
    answer = gatehouse("config", "show", environment={})
    assert answer.exit_code == 78
    assert answer.stdout == ""
    assert "security.master_key: is missing" in answer.stderr


def test_check_says_ok(gatehouse: Command) -> None:
    answer = gatehouse("config", "check")
    assert (answer.exit_code, answer.output) == (0, "ok\n")
    assert json.loads(gatehouse("config", "check", "--json").stdout) == {"ok": True, "problems": []}


def test_check_lists_everything_that_is_wrong_and_fails(gatehouse: Command) -> None:
    environment = {"GATEHOUSE__LOG__LEVEL": "loud"}
    answer = gatehouse("config", "check", environment=environment)
    assert answer.exit_code == 1
    assert answer.stdout == ""
    assert [line.strip().partition(":")[0] for line in answer.stderr.splitlines()[1:]] == [
        "GATEHOUSE__LOG__LEVEL",
        "security.master_key",
        "server.base_url",
    ]
    body = json.loads(gatehouse("config", "check", "--json", environment=environment).stdout)
    assert (body["ok"], len(body["problems"])) == (False, 3)


def test_check_asks_for_the_address_that_serve_will_need(gatehouse: Command) -> None:
    answer = gatehouse("config", "check", environment={MASTER: MASTER_KEY})
    assert answer.exit_code == 1
    assert "server.base_url: is missing" in answer.stderr


def test_the_common_options_say_which_installation_is_meant(gatehouse: Command, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("server.port = 1234", encoding="utf-8")
    answer = gatehouse(
        "config", "show", "--json", "--dev", "--data", "elsewhere", "--config", "other.toml", environment={}
    )
    body = json.loads(answer.stdout)
    assert body["server.port"]["value"] == 1234
    assert body["database.url"]["value"] == f"sqlite:///{tmp_path}/elsewhere/gatehouse.db"
    assert (tmp_path / "elsewhere" / "dev.key").exists()


def test_a_command_receives_its_invocation_and_its_own_options(tmp_path: Path) -> None:
    received: list[tuple[Invocation, int]] = []

    @click.command()
    @common_options
    @click.option("--number", type=int)
    def probe(invocation: Invocation, *, number: int) -> None:
        received.append((invocation, number))

    CliRunner().invoke(probe, ["--number", "3", "--data", str(tmp_path)], catch_exceptions=False)
    assert received == [(Invocation(data=tmp_path, config=None, dev=False), 3)]


def test_flags_of_a_command_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = SOUND | {"GATEHOUSE__SERVER__PORT": "1000"}
    monkeypatch.setattr("gatehouse.cli.common.process_environment", lambda: environment)
    invocation = Invocation(data=tmp_path, config=None, dev=False)
    assert load_settings(invocation, {"server.port": "2000"}).settings.server.port == 2000


def test_error_of_a_service_ends_a_command_with_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def fail() -> None:
        raise Conflict("that name is taken")

    monkeypatch.setattr("gatehouse.cli.version.version", fail)
    answer = CliRunner().invoke(main, ["version"])
    assert (answer.exit_code, answer.stderr) == (1, "Error: that name is taken\n")


def test_version_prints_the_version(gatehouse: Command) -> None:
    assert gatehouse("version").stdout == f"gatehouse {__version__}\n"
    assert json.loads(gatehouse("version", "--json").stdout)["version"] == __version__


def test_an_unknown_command_is_refused(gatehouse: Command) -> None:
    answer = gatehouse("confg")
    assert answer.exit_code == 2
    assert "No such command 'confg'" in answer.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_asked_for_help(gatehouse: Command, name: str) -> None:
    answer = gatehouse(name, "--help")
    assert answer.exit_code == 0
    assert answer.stdout.startswith(f"Usage: gatehouse {name}")


def test_a_quick_command_does_not_wait_for_the_others_to_be_imported() -> None:
    script = (
        "import sys; from gatehouse.cli import main; main(['version'], standalone_mode=False); print(*sys.modules)"
    )
    imported = run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "gatehouse.cli.version" in imported
    assert not {"gatehouse.settings", "sqlalchemy", "uvicorn", "cryptography"} & set(imported)


def test_the_installed_module_reads_the_real_environment(tmp_path: Path) -> None:
    answer = run(
        [sys.executable, "-m", "gatehouse", "config", "check", "--dev"],
        env={"GATEHOUSE__LOG__LEVLE": "info"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert "GATEHOUSE__LOG__LEVLE: unknown setting, did you mean GATEHOUSE__LOG__LEVEL?" in answer.stderr
