from collections.abc import Callable
from pathlib import Path

import pytest
from tools.install import CouldNotGet, InstallMethod, Program, ensure_installed, failure_reason
from tools.test_deps import fetch_npm_package

HERE = Path("/usr/bin/thing")


def a_program(*, lookups: list[Path | None], take: Callable[[], None] | None) -> Program:
    """A program that successive lookups find as listed."""
    looks = iter(lookups)
    download = None if take is None else InstallMethod(description="a registry", install=take)
    return Program(name="Thing", find=lambda: next(looks), system_package="no-such-package", download=download)


@pytest.fixture(autouse=True)
def not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may install a system package."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)


def refuse() -> None:
    raise CouldNotGet("no network")


def test_installed_program_is_not_installed_again(capsys: pytest.CaptureFixture[str]) -> None:
    ensure_installed(a_program(lookups=[HERE], take=refuse))
    assert capsys.readouterr().out == "test-deps: Thing found: /usr/bin/thing\n"


def test_an_installation_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    taken: list[bool] = []
    ensure_installed(a_program(lookups=[None, HERE], take=lambda: taken.append(True)))
    assert taken == [True]
    assert capsys.readouterr().out == "test-deps: installing Thing (a registry)\n"


def test_failed_installation_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    ensure_installed(a_program(lookups=[None], take=refuse))
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "test-deps: COULD NOT INSTALL Thing, its tests are skipped: a registry: no network"


def test_installation_that_is_still_too_old_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    ensure_installed(a_program(lookups=[None, None], take=lambda: None))
    assert "a registry: installed, but too old" in capsys.readouterr().out


def test_program_only_root_can_install_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    ensure_installed(a_program(lookups=[None], take=None))
    assert capsys.readouterr().out.endswith("its tests are skipped: only root can install it\n")


def test_a_package_of_other_bytes_is_refused(tmp_path: Path) -> None:
    writes_something_else = ["sh", "-c", "echo other > chromium.tgz"]
    with pytest.raises(CouldNotGet, match="checksum"):
        fetch_npm_package(writes_something_else, tmp_path)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("Reading lists\nE: Unable to locate package x\n", "E: Unable to locate package x"),
        ("WARNING: Retrying after an error\nERROR: No matching distribution\n", "ERROR: No matching distribution"),
        ("npm error code E404\nnpm error a log was written\n", "npm error code E404"),
        ("one\ntwo\n\n", "two"),
        ("", "failed without an error message"),
    ],
)
def test_the_telling_line_of_a_failure_is_found(output: str, reason: str) -> None:
    assert failure_reason(output) == reason
