"""`accounts.geoip_file` is checked at the start."""

from pathlib import Path

from tests.support.geoip import write_geoip
from tests.unit.settings.installation import SOUND, TemporaryInstallation

NAME = "GATEHOUSE__ACCOUNTS__GEOIP_FILE"


def test_a_geoip_file_is_taken(installation: TemporaryInstallation, tmp_path: Path) -> None:
    file = write_geoip(tmp_path / "city.mmdb", {"192.0.2.0/24": {"country": {"iso_code": "SE"}}})
    assert installation.load({**SOUND, NAME: str(file)}).settings.accounts.geoip_file == str(file)


def test_a_missing_file_and_one_of_another_kind_are_refused(
    installation: TemporaryInstallation, tmp_path: Path
) -> None:
    file = tmp_path / "city.mmdb"
    assert installation.problems({**SOUND, NAME: str(file)}) == (
        f"{NAME}: cannot read {file}: No such file or directory",
    )
    file.write_bytes(b"x" * 200_000)
    assert installation.problems({**SOUND, NAME: str(file)}) == (f"{NAME}: {file} is not a MaxMind database",)
