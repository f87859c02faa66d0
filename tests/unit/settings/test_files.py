import os
import stat
from pathlib import Path

import pytest

from gatehouse.settings.checks import LoadPurpose
from gatehouse.settings.secret_files import FilePrivacy, read_private, write_if_missing
from tests.unit.settings.installation import MASTER_KEY, OTHER_MASTER_KEY, SOUND, TemporaryInstallation

ME = 1000


STRICT = FilePrivacy(strict=True)
KEY = Path("/etc/gatehouse/master.key")


def exposure(status: os.stat_result, path: Path = KEY, privacy: FilePrivacy = STRICT) -> str:
    return privacy.exposure(path, status)


def status(*, mode: int = 0o600, owner: int = ME) -> os.stat_result:
    return os.stat_result((stat.S_IFREG | mode, 0, 0, 1, owner, 0, 0, 0, 0, 0))


@pytest.fixture
def as_me(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: ME)


@pytest.mark.usefixtures("as_me")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o777])
def test_a_file_others_can_touch_is_exposed(mode: int) -> None:
    assert exposure(status(mode=mode)) == f"is accessible to other users (mode {mode:04o}): run chmod 600"


@pytest.mark.usefixtures("as_me")
def test_a_file_of_another_user_is_exposed() -> None:
    assert exposure(status(owner=2000)) == "belongs to another user: run chown"


@pytest.mark.usefixtures("as_me")
@pytest.mark.parametrize("owner", [0, ME])
def test_a_file_of_mine_or_of_root_is_not(owner: int) -> None:
    assert exposure(status(owner=owner)) == ""


def test_root_may_read_what_belongs_to_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert exposure(status(owner=ME)) == ""


@pytest.mark.usefixtures("as_me")
def test_dev_mode_reports_no_exposed_files() -> None:
    assert exposure(status(mode=0o666, owner=2000), privacy=FilePrivacy(strict=False)) == ""


@pytest.mark.usefixtures("as_me")
def test_a_credential_of_systemd_may_show_its_access_list_as_the_group(tmp_path: Path) -> None:
    privacy = FilePrivacy(strict=True, credentials=tmp_path)
    assert exposure(status(mode=0o440, owner=2000), tmp_path / "master_key", privacy) == ""
    assert "mode 0444" in exposure(status(mode=0o444), tmp_path / "master_key", privacy)
    assert "mode 0440" in exposure(status(mode=0o440), tmp_path / ".." / "master_key", privacy)
    assert "mode 0440" in exposure(status(mode=0o440), Path(f"{tmp_path}-other/master_key"), privacy)


def test_the_directory_of_credentials_is_the_one_systemd_names(installation: TemporaryInstallation) -> None:
    path = installation.write("master_key", MASTER_KEY, mode=0o440)
    environment = {"GATEHOUSE__SECURITY__MASTER_KEY__FILE": str(path)}
    [problem] = installation.problems(environment | {"CREDENTIALS_DIRECTORY": ""})
    assert "mode 0440" in problem
    loaded = installation.load(environment | {"CREDENTIALS_DIRECTORY": str(installation.data)})
    assert loaded.settings.security.master_key.reveal() == MASTER_KEY


def test_a_pipe_in_place_of_a_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    with pytest.raises(ValueError, match="pipe is not a file"):
        read_private(pipe, STRICT)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\xff\xfe", "non-ASCII"),
        (b"x" * 65_537, "larger than"),
    ],
)
def test_a_file_without_one_sensible_text_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ValueError, match=complaint):
        read_private(path, STRICT)


def test_a_new_file_is_for_its_owner_only_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "dev.key"
    write_if_missing(path, "text")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]
    assert read_private(path, STRICT) == "text"


def test_a_file_that_appears_meanwhile_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dev.key"
    path.write_text("theirs\n", encoding="ascii")
    monkeypatch.setattr("gatehouse.settings.secret_files.path_exists", lambda _: False)
    write_if_missing(path, "ours")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text(encoding="ascii") == "theirs\n"


def test_dev_makes_a_key_once_and_every_later_command_uses_it(installation: TemporaryInstallation) -> None:
    first = installation.load({}, dev=True)
    second = installation.load({}, dev=True)
    assert first.settings.security.master_key.reveal() == second.settings.security.master_key.reveal()
    assert first.sources["security.master_key"] == "dev"
    assert stat.S_IMODE((installation.data / "dev.key").stat().st_mode) == 0o600


def test_a_dev_key_that_is_there_is_used_without_writing(
    installation: TemporaryInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_to_write(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    installation.write("dev.key", OTHER_MASTER_KEY)
    monkeypatch.setattr("gatehouse.settings.secret_files.write_atomically", fail_to_write)
    assert installation.load({}, dev=True).settings.security.master_key.reveal() == OTHER_MASTER_KEY


def test_dev_with_a_master_key_makes_none(installation: TemporaryInstallation) -> None:
    loaded = installation.load({"GATEHOUSE__SECURITY__MASTER_KEY": MASTER_KEY}, dev=True)
    assert loaded.settings.security.master_key.reveal() == MASTER_KEY
    assert list(installation.data.iterdir()) == []


def test_dev_that_is_refused_makes_no_key(installation: TemporaryInstallation) -> None:
    installation.problems({}, flags={"server.host": "0.0.0.0"}, dev=True)  # noqa: S104
    assert list(installation.data.iterdir()) == []


def test_a_spoilt_dev_key_is_refused(installation: TemporaryInstallation) -> None:
    installation.write("dev.key", "spoilt")
    [problem] = installation.problems({}, dev=True)
    assert problem.startswith("security.master_key: the master key must be 32 bytes")


def test_a_data_directory_that_cannot_be_made_is_a_problem_in_words(installation: TemporaryInstallation) -> None:
    blocked = TemporaryInstallation(installation.write("file", "") / "data")
    [problem] = blocked.problems({}, dev=True)
    assert problem == f"security.master_key: cannot create {blocked.data}/dev.key: Not a directory"


def test_a_rewrap_opens_what_the_dev_key_sealed(installation: TemporaryInstallation) -> None:
    installation.write("dev.key", OTHER_MASTER_KEY)
    loaded = installation.load(purpose=LoadPurpose.REWRAP)
    assert loaded.settings.security.master_key.reveal() == SOUND["GATEHOUSE__SECURITY__MASTER_KEY"]
    assert [key.reveal() for key in loaded.settings.security.previous_master_keys] == [OTHER_MASTER_KEY]
