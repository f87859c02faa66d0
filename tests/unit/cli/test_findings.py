"""The findings of `gatehouse doctor` that need no database."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from gatehouse.cli.doctor import Level, about_files, about_settings, about_space
from tests.unit.settings.installation import SOUND, TemporaryInstallation

PREFIX = "GATEHOUSE__"
PROXIED = {**SOUND, "GATEHOUSE__SERVER__TRUSTED_PROXIES": "10.0.0.5"}


def risks(installation: TemporaryInstallation, environment: Mapping[str, str], *, dev: bool = False) -> list[str]:
    findings = list(
        about_settings(installation.load({**PROXIED, **environment} if not dev else environment, dev=dev))
    )
    assert all(finding.level is Level.WARN for finding in findings) or [finding.level for finding in findings] == [
        Level.OK
    ]
    return [finding.text for finding in findings if finding.level is Level.WARN]


@pytest.fixture
def installation(tmp_path: Path) -> TemporaryInstallation:
    return TemporaryInstallation(tmp_path)


def test_sound_settings_carry_no_risk(installation: TemporaryInstallation) -> None:
    assert risks(installation, {}) == []


@pytest.mark.parametrize(
    ("variable", "value", "risk_text"),
    [
        ("SERVER__TRUSTED_PROXIES", "", "share its rate limits"),
        ("SERVER__TRUSTED_PROXIES", "0.0.0.0/0", "trusts most of the internet"),
        ("SERVER__TRUSTED_PROXIES", "10.0.0.0/8,::/0", "trusts most of the internet"),
        ("OPERATIONS__BIND", "0.0.0.0:9090", "exposes metrics to everyone"),
        ("OPERATIONS__BIND", "[::]:9090", "exposes metrics to everyone"),
        ("RATES__ENABLED", "false", "not rate limited"),
        ("OUTBOUND__ALLOW", "0.0.0.0/0", "outbound.allow permits"),
        ("TOKENS__JWT_WITHOUT_FACTOR", "true", "not bound to a device"),
        ("LOG__LEVEL", "debug", "produces large logs"),
    ],
)
def test_each_risky_setting_is_named(
    installation: TemporaryInstallation, variable: str, value: str, risk_text: str
) -> None:
    [risk] = risks(installation, {f"{PREFIX}{variable}": value})
    assert risk_text in risk


@pytest.mark.parametrize(
    "settings",
    [
        {"SERVER__HOST": "0.0.0.0"},  # noqa: S104
        {"OPERATIONS__BIND": "127.0.0.1:9090"},
        {"OPERATIONS__BIND": "[::1]:9090"},
        {"OUTBOUND__ALLOW": "10.1.0.0/16"},
    ],
)
def test_sound_settings_are_no_risk(installation: TemporaryInstallation, settings: Mapping[str, str]) -> None:
    assert risks(installation, {f"{PREFIX}{name}": value for name, value in settings.items()}) == []


def test_dev_is_a_risk_by_itself(installation: TemporaryInstallation) -> None:
    assert risks(installation, {}, dev=True) == ["--dev is only for development on this machine"]


def test_files_in_a_closed_directory_need_no_look(installation: TemporaryInstallation) -> None:
    installation.data.chmod(0o700)
    installation.write("gatehouse.db", "", mode=0o644)
    [finding] = about_files(installation.load())
    assert finding.level is Level.OK
    installation.data.chmod(0o750)
    assert [file.text.split()[0] for file in about_files(installation.load())] == [
        str(installation.data),
        f"{installation.data}/gatehouse.db",
    ]


@pytest.mark.parametrize(("free", "level"), [(50, Level.BAD), (500, Level.WARN), (5_000, Level.OK)])
def test_space_that_runs_out_is_told(
    installation: TemporaryInstallation, monkeypatch: pytest.MonkeyPatch, free: int, level: Level
) -> None:
    usage = shutil.disk_usage(os.devnull)._replace(free=free * 2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    [finding] = about_space(installation.load())
    assert finding.level is level
    assert f"{free:,} MiB free in {installation.data}" in finding.text
