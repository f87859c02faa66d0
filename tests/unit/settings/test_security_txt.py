"""`operations.security_txt` is checked at the start."""

from pathlib import Path

import pytest

from tests.unit.settings.installation import SOUND, TemporaryInstallation

NAME = "GATEHOUSE__OPERATIONS__SECURITY_TXT"
WHOLE = b"Contact: mailto:security@example.org\nExpires: 2027-01-01T00:00:00Z\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (WHOLE, ""),
        (b"-----BEGIN PGP SIGNED MESSAGE-----\n\n" + WHOLE.lower(), ""),
        (b"Contact: mailto:security@example.org\n", "has no line Expires:"),
        (b"hello", "has no line Contact: and no line Expires:"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (WHOLE + b"#" * 16_384, "is larger than 16 KiB"),
    ],
)
def test_a_security_contact_is_complete_or_refused(
    installation: TemporaryInstallation, tmp_path: Path, content: bytes, problem: str
) -> None:
    file = tmp_path / "security.txt"
    file.write_bytes(content)
    environment = {**SOUND, NAME: str(file)}
    if problem:
        assert installation.problems(environment) == (f"{NAME}: {file} {problem}",)
    else:
        assert installation.load(environment).settings.operations.security_txt == str(file)


def test_a_missing_file_is_refused(installation: TemporaryInstallation, tmp_path: Path) -> None:
    file = tmp_path / "none"
    assert installation.problems({**SOUND, NAME: str(file)}) == (
        f"{NAME}: cannot read {file}: No such file or directory",
    )
