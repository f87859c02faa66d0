"""Check the packaging files without a container engine."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

import pytest

from gatehouse.cli import COMMANDS
from gatehouse.cli.samples import GAME_FILE
from gatehouse.keys.sealing import new_master_key
from gatehouse.settings.entries import FILE_SUFFIX
from gatehouse.settings.sources import setting_of_variable
from gatehouse.storage.postgres.runner import OLDEST_SERVER
from gatehouse.web.pages import client_files, guides
from tests.support.capabilities import Capability, require_program
from tests.support.find_programs import ROOT
from tests.support.packaging import (
    DEPLOY,
    SERVICES,
    UNIT,
    dockerfile_instructions,
    last_instruction,
    read_compose,
    unit_settings,
    user_of,
)
from tests.support.processes import LOOPBACK

LOCKS: Final = ("requirements.txt", "requirements-dev.txt")
HIGHEST_EXPOSURE: Final = 2.5  # checklist OP-11
PINNED: Final = re.compile(r"([a-z0-9-]+)==([0-9][0-9a-z.+]*)((?: --hash=sha256:[0-9a-f]{64})+)")
OFFLINE_SINCE: Final = 250  # the first systemd whose `security` can check a file


# -- requirements ---------------------------------------------------------------------------------------


def locked_versions(name: str) -> dict[str, str]:
    """Versions by package; a line that is not a pin with hashes fails the test."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    lines = [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]
    pins = [PINNED.fullmatch(line) or pytest.fail(line) for line in lines if line and not line.startswith("#")]
    return {pin[1]: pin[2] for pin in pins}


@pytest.mark.parametrize("name", LOCKS)
def test_op_10_every_requirement_is_pinned_with_hashes_and_names_no_index(name: str) -> None:
    assert locked_versions(name)
    assert "://" not in (ROOT / name).read_text()


def test_op_10_the_two_locks_agree() -> None:
    assert locked_versions("requirements.txt").items() <= locked_versions("requirements-dev.txt").items()


def test_the_wheel_carries_the_guides_and_the_game_that_sample_game_plays() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    carried = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert ROOT / "src" / carried.pop("docs/guides") == guides.PACKAGED
    assert all((ROOT / source).exists() for source in carried)
    wanted = [*client_files.FILES.values(), *(folder for folder, _ in client_files.ZIPS.values())]
    assert all(any(f"clients/{name}".startswith(source) for source in carried) for name in wanted)
    assert {f"gatehouse/demo/{source}" for source in carried} == set(carried.values())
    assert f"clients/{GAME_FILE}" in carried


def test_op_10_everything_the_package_depends_on_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {re.split(r"[<>=]", line)[0] for line in project["dependencies"]} <= locked_versions(
        "requirements.txt"
    ).keys()


def test_every_dependency_has_its_paragraph_in_the_decision_page() -> None:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {re.split(r"[<>=]", line)[0] for line in content["project"]["dependencies"]}
    wanted |= {re.split(r"[<>=]", line)[0] for line in content["dependency-groups"]["dev"]}
    page = (ROOT / "docs" / "decisions" / "0002-dependencies.md").read_text()
    assert set(re.findall(r"\*\*([a-z0-9-]+)\*\*", page)) == wanted


def test_op_10_what_is_installed_is_what_was_locked() -> None:
    wanted = locked_versions("requirements.txt")
    assert {name: metadata.version(name) for name in wanted} == wanted


# -- the systemd unit -----------------------------------------------------------------------------------


def find_systemd_analyze() -> Path | None:
    program = shutil.which("systemd-analyze")
    if program is None:
        return None
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    digits = re.search(r"\d+", version)
    return Path(program) if digits is not None and int(digits[0]) >= OFFLINE_SINCE else None


SYSTEMD: Final = Capability(name=f"systemd {OFFLINE_SINCE} or newer", find=find_systemd_analyze, optional=True)


def test_op_11_the_unit_is_exposed_no_more_than_allowed() -> None:
    command: list[str | Path] = [require_program(SYSTEMD), "security", "--offline=true", "--no-pager", UNIT]
    judged = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    level = re.search(r"Overall exposure level for gatehouse.service: ([0-9.]+)", judged)
    assert level is not None
    assert float(level[1]) <= HIGHEST_EXPOSURE


def test_op_11_systemd_understands_every_line_of_the_unit(tmp_path: Path) -> None:
    # The program is not installed where the unit expects it; any existing one will do.
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/gatehouse/bin/gatehouse", "/bin/true"))
    judged = subprocess.run(
        [require_program(SYSTEMD), "verify", "--man=no", copy], capture_output=True, text=True, check=False
    )
    assert [line for line in judged.stderr.splitlines() if copy.name in line] == []
    assert judged.returncode == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("User", "gatehouse"),
        ("NoNewPrivileges", "yes"),
        ("CapabilityBoundingSet", ""),
        ("ProtectSystem", "strict"),
        ("ProtectHome", "yes"),
        ("PrivateTmp", "yes"),
        ("PrivateDevices", "yes"),
        ("LimitCORE", "0"),
    ],
)
def test_op_11_the_unit_has_no_root_no_new_privileges_and_a_read_only_system(key: str, value: str) -> None:
    assert unit_settings()[key] == [value]


def test_op_11_the_unit_bounds_memory_tasks_and_descriptors() -> None:
    assert {"MemoryMax", "TasksMax", "LimitNOFILE"} <= unit_settings().keys()


def test_the_unit_hands_the_master_key_over_as_a_credential() -> None:
    unit = unit_settings()
    assert unit["LoadCredential"] == ["master_key:/etc/gatehouse/master.key"]
    assert "GATEHOUSE__SECURITY__MASTER_KEY__FILE=%d/master_key" in unit["Environment"]


def test_the_operators_command_is_about_the_same_installation_as_the_unit() -> None:
    command = (DEPLOY / "gatehouse-ctl.sh").read_text()
    started, unit = unit_settings()["ExecStart"][0], unit_settings()
    key_file = unit["LoadCredential"][0].partition(":")[2]
    about = " ".join(re.findall(r"--(?:data|config) \S+", started))
    assert f"$(cat {key_file})" in command
    assert f"--reuid={unit['User'][0]} " in command
    assert f'set -- "$@" {about} ;;' in command
    assert f'{started.split()[0]} "$@"\n' in command


@pytest.fixture
def gatehouse_ctl(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The operator's command for an installation in `tmp_path`, run in `work` as the user who runs the tests."""
    here, work = tmp_path / "installed", tmp_path / "work"
    for directory in (here, work, here / "bin"):
        directory.mkdir()
    (here / "master.key").write_text(new_master_key())
    (here / "gatehouse.toml").write_text('server.base_url = "https://id.example.org"\n')
    script = (DEPLOY / "gatehouse-ctl.sh").read_text()
    script = re.sub(r"setpriv( --\S+)+ ", "", script)
    script = script.replace("/opt/gatehouse/bin", str(Path(sys.executable).parent))
    script = script.replace("/etc/gatehouse", str(here)).replace("/var/lib/gatehouse", str(here))
    (here / "bin" / "gatehouse-ctl").write_text(script)

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", here / "bin" / "gatehouse-ctl", *arguments]
        return subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)

    return call


@pytest.mark.parametrize("words", [["version"], ["--version"], ["--help"], ["key", "--help"]], ids=" ".join)
def test_the_operators_command_also_tells_about_the_program(
    gatehouse_ctl: Callable[..., subprocess.CompletedProcess[str]], words: list[str]
) -> None:
    result = gatehouse_ctl(*words)
    assert (result.returncode, result.stderr) == (0, "")
    assert "gatehouse" in result.stdout


def test_operators_command_has_the_home_directory_of_the_service(
    gatehouse_ctl: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database client looks for certificates there; in root's it may not, and no connection with TLS is made."""
    monkeypatch.setenv("GATEHOUSE__DATABASE__URL", "postgresql://gatehouse@127.0.0.1/gatehouse?sslmode=verify-full")
    assert f'"{tmp_path}/installed/.postgresql/root.crt" does not exist' in gatehouse_ctl("migrate").stderr


def test_the_operators_command_finds_a_file_where_the_operator_stands(
    gatehouse_ctl: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "work" / "studio.yaml").write_text("users: [{login: anna@studio.example, nick: Anna}]")
    applied = gatehouse_ctl("apply", "studio.yaml")
    assert (applied.returncode, applied.stderr) == (0, "")
    assert "+ user anna@studio.example" in applied.stdout
    assert (tmp_path / "installed" / "gatehouse.db").exists()


# -- the image ------------------------------------------------------------------------------------------


def test_the_image_runs_as_a_user_without_privileges() -> None:
    uid, _, gid = last_instruction("USER").partition(":")
    assert int(uid) > 0
    assert int(gid) > 0
    words = [instruction.word for instruction in dockerfile_instructions()]
    after = words[len(words) - words[::-1].index("USER") :]
    assert set(after) <= {"HEALTHCHECK", "ENTRYPOINT", "CMD"}


def test_op_10_everything_the_image_installs_is_checked_or_local() -> None:
    runs = [instruction.rest for instruction in dockerfile_instructions() if instruction.word == "RUN"]
    installs = [part for run in runs for part in run.split(" && ") if " install " in part and "pip" in part]
    assert installs
    assert all("--require-hashes" in part or "--no-index" in part for part in installs)
    assert all("--no-deps" in part for part in installs)
    assert not [run for run in runs if re.search(r"\b(curl|wget|apt|apt-get|git)\b", run)]


def test_the_image_adds_nothing_from_elsewhere_and_holds_no_secret() -> None:
    assert "ADD" not in {instruction.word for instruction in dockerfile_instructions()}
    named = [instruction.rest for instruction in dockerfile_instructions() if instruction.word in {"ARG", "ENV"}]
    assert not [rest for rest in named if re.search(r"(?i)secret|password|token|_key", rest)]


def test_the_image_writes_to_its_data_directory_only() -> None:
    assert [instruction.rest for instruction in dockerfile_instructions() if instruction.word == "VOLUME"] == [
        "/data"
    ]
    assert "PYTHONDONTWRITEBYTECODE=1" in last_instruction("ENV")


def test_the_image_is_built_from_the_wheel_and_the_lock_alone() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns == ["*", "!requirements.txt", "!dist/*.whl"]
    copied = [instruction.rest.split()[0] for instruction in dockerfile_instructions() if instruction.word == "COPY"]
    assert copied == ["requirements.txt", "dist/*.whl", "--from=build"]


def test_the_image_asks_itself_whether_it_is_well() -> None:
    assert last_instruction("HEALTHCHECK").endswith('CMD ["gatehouse", "healthcheck"]')


# -- compose --------------------------------------------------------------------------------------------


def test_these_are_all_services_there_are() -> None:
    assert tuple(read_compose()["services"]) == SERVICES


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_is_read_only_and_without_privileges(name: str) -> None:
    service = read_compose()["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.keys() & {"privileged", "cap_add", "devices", "network_mode", "pid", "ipc", "userns_mode"}


@pytest.mark.parametrize("name", SERVICES)
def test_no_container_runs_as_root(name: str) -> None:
    assert user_of(name) > 0


@pytest.mark.parametrize("name", SERVICES)
def test_every_secret_reaches_its_container_as_a_file(name: str) -> None:
    service = read_compose()["services"][name]
    files = [value for key, value in service.get("environment", {}).items() if key.endswith("_FILE")]
    assert all(path.removeprefix("/run/secrets/") in service["secrets"] for path in files)
    secret = [
        key
        for key in service.get("environment", {})
        if re.search(r"(?i)password|secret|key|token|url", key) and not key.endswith(("_FILE", "BASE_URL"))
    ]
    assert secret == []


def test_only_the_service_publishes_a_port_and_only_on_loopback() -> None:
    services = read_compose()["services"]
    assert {name for name in services if "ports" in services[name]} == {"gatehouse"}
    assert all(port.startswith(f"{LOOPBACK}:") for port in services["gatehouse"]["ports"])
    assert read_compose()["networks"]["back"]["internal"] is True
    assert services["db"]["networks"] == ["back"]


def test_service_starts_only_after_migrations_and_grants() -> None:
    services = read_compose()["services"]
    done, healthy = {"condition": "service_completed_successfully"}, {"condition": "service_healthy"}
    assert services["migrate"]["depends_on"] == {"db": healthy}
    assert services["grants"]["depends_on"] == {"migrate": done}
    assert services["gatehouse"]["depends_on"] == {"db": healthy, "grants": done}
    assert services["db"]["healthcheck"]["test"][0] == "CMD"
    assert {services[name]["restart"] for name in ("migrate", "grants")} == {"no"}


def test_the_database_is_one_the_service_supports() -> None:
    images = {read_compose()["services"][name]["image"] for name in ("db", "grants")}
    assert len(images) == 1
    version = re.fullmatch(r"postgres:(\d+)-bookworm", images.pop())
    assert version is not None
    assert int(version[1]) >= OLDEST_SERVER


# -- statements about the service in all files ----------------------------------------------------------


@pytest.mark.parametrize("name", ["compose.yaml", "gatehouse.service", "Dockerfile"])
def test_every_setting_in_use_exists(name: str) -> None:
    matches = set(re.findall(r"GATEHOUSE__[A-Z_]+", (DEPLOY / name).read_text()))
    assert all(setting_of_variable(variable.removesuffix(FILE_SUFFIX)) for variable in matches)


def commands_given() -> Iterator[str]:
    unit = unit_settings()
    for line in (*unit["ExecStartPre"], *unit["ExecStart"]):
        yield line.split()[1]
    yield json.loads(last_instruction("CMD"))[0]
    yield json.loads(last_instruction("HEALTHCHECK").partition("CMD ")[2])[1]
    yield read_compose()["services"]["migrate"]["command"][0]


def test_every_command_in_use_exists() -> None:
    assert set(commands_given()) <= COMMANDS.keys()
