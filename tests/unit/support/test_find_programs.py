from pathlib import Path

import pytest

from tests.support.find_programs import find_chromium, find_postgres


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with only what the test puts there."""
    directory = tmp_path / "path"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    return directory


def a_program(place: Path, *, prints: str = "", exit_code: int = 0) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\necho '{prints}'\nexit {exit_code}\n")
    place.chmod(0o755)
    return place


def a_server(directory: Path, version: str) -> Path:
    a_program(directory / "initdb")
    a_program(directory / "postgres", prints=f"postgres (PostgreSQL) {version}")
    return directory


def test_a_machine_without_servers_has_none(tmp_path: Path) -> None:
    assert find_postgres(tmp_path / "debian", tmp_path / "downloads") is None


def test_the_server_on_the_path_is_taken_first(path: Path, tmp_path: Path) -> None:
    a_server(path, "17.2")
    a_server(tmp_path / "debian/16/bin", "16.1")
    assert find_postgres(tmp_path / "debian", tmp_path / "downloads") == path


def test_a_server_too_old_is_passed_over(path: Path, tmp_path: Path) -> None:
    a_server(path, "14.9")
    newer = a_server(tmp_path / "debian/15/bin", "15.4 (Debian 15.4-1)")
    assert find_postgres(tmp_path / "debian", tmp_path / "downloads") == newer


def test_a_client_package_without_initdb_is_no_server(tmp_path: Path) -> None:
    a_program(tmp_path / "debian/15/bin/postgres", prints="postgres (PostgreSQL) 15.4")
    assert find_postgres(tmp_path / "debian", tmp_path / "downloads") is None


def test_the_newest_downloaded_server_is_taken(tmp_path: Path) -> None:
    a_server(tmp_path / "postgres/package/pginstall/bin", "16.1")
    newest = a_server(tmp_path / "postgres/package/pginstall18/bin", "18.4")
    assert find_postgres(tmp_path / "debian", tmp_path) == newest


def test_a_chromium_that_does_not_start_is_passed_over(path: Path, tmp_path: Path) -> None:
    a_program(path / "chromium-browser", prints="install the snap", exit_code=1)
    chrome = a_program(path / "google-chrome", prints="Google Chrome 150")
    assert find_chromium(tmp_path) == chrome


def test_a_downloaded_chromium_is_found(tmp_path: Path) -> None:
    downloaded = a_program(tmp_path / "chromium/chromium", prints="Chromium 150")
    assert find_chromium(tmp_path) == downloaded
