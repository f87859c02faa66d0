"""The quick parts of `make release-check`, and a test that it detects errors."""

import json
import tarfile
import zipfile
from pathlib import Path

import pytest
from tools import release_check
from tools.release_check import NotReady, check_imports, check_licences, check_sdist, check_wheel, judge_audit, pins

WHOLE = (
    *("gatehouse/py.typed", "gatehouse/web/templates/a.html", "gatehouse/web/locales/en.toml"),
    *("gatehouse/web/locales/de.toml", "gatehouse/web/static/a.css", "gatehouse-1.dist-info/licenses/LICENSE"),
)


def a_wheel(at: Path, *names: str) -> Path:
    with zipfile.ZipFile(at / "gatehouse-1-py3-none-any.whl", "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return at / "gatehouse-1-py3-none-any.whl"


def test_op_10_every_dependency_is_declared_imported_and_of_an_allowed_licence() -> None:
    assert "all imported" in check_imports()
    assert "all licenses allowed" in check_licences()


def test_op_10_a_dependency_no_one_imports_or_declares_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_check, "declared", lambda: {"click", "leftover"})
    with pytest.raises(NotReady, match=r"never imported: \['leftover'\].*'msgspec'"):
        check_imports()


def test_op_10_a_licence_no_one_allowed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_check, "ALLOWED", ("MIT",))
    with pytest.raises(NotReady, match="cryptography"):
        check_licences()


def test_op_10_a_requirement_without_hashes_is_told(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("click==8.5.1\n")
    with pytest.raises(NotReady, match="not a pinned requirement with hashes"):
        pins(tmp_path / "requirements.txt")


def test_op_10_a_wheel_has_what_belongs_there_and_nothing_else(tmp_path: Path) -> None:
    # `gatehouse test` is a feature; tests of Gatehouse do not belong there.
    assert "no unexpected ones" in check_wheel(a_wheel(tmp_path, *WHOLE, "gatehouse/provision/tests/cases.py"))
    for stray in (
        "tests/test_a.py",
        "gatehouse/conftest.py",
        "gatehouse/tests/test_a.py",
        "gatehouse/data/gatehouse.db",
        "other/a.py",
    ):
        with pytest.raises(NotReady, match=stray.rpartition("/")[2]):
            check_wheel(a_wheel(tmp_path, *WHOLE, stray))
    for name in WHOLE:
        with pytest.raises(NotReady, match="lacks"):
            check_wheel(a_wheel(tmp_path, *(other for other in WHOLE if other != name)))


def test_op_10_a_source_archive_has_exactly_what_git_tracks(tmp_path: Path) -> None:
    archive = tmp_path / "gatehouse-1.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("PKG-INFO", "Makefile", "tests/test_a.py"):
            tar.addfile(tarfile.TarInfo(f"gatehouse-1/{name}"))
    assert "everything that git tracks" in check_sdist(archive, ["Makefile", "tests/test_a.py"])
    with pytest.raises(NotReady, match=r"lacks \['deploy/Dockerfile'\]"):
        check_sdist(archive, ["Makefile", "tests/test_a.py", "deploy/Dockerfile"])
    with pytest.raises(NotReady, match=r"contains \['tests/test_a.py'\]"):
        check_sdist(archive, ["Makefile"])


def test_op_10_a_source_archive_contains_no_links(tmp_path: Path) -> None:
    archive = tmp_path / "gatehouse-1.tar.gz"
    link = tarfile.TarInfo("gatehouse-1/.venv")
    link.type, link.linkname = tarfile.SYMTYPE, "/elsewhere"
    with tarfile.open(archive, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("gatehouse-1/PKG-INFO"))
        tar.addfile(link)
    with pytest.raises(NotReady, match=r"contains \['.venv'\]"):
        check_sdist(archive, [".venv"])


@pytest.mark.parametrize(
    "report", ["", "no JSON", "{}", '{"dependencies": [{"name": "click", "skip_reason": "unreachable"}]}']
)
def test_op_10_no_answer_is_no_audit(report: str) -> None:
    with pytest.raises(NotReady, match=r"AUDIT NOT DONE.*no result for 1 of 1.*pip-audit says: unreachable"):
        judge_audit(report, "Traceback\nunreachable\n", 1)
    with pytest.raises(NotReady, match=r"pip-audit says: (unreachable|nothing)"):
        judge_audit(report, "", 1)


def test_op_10_what_is_known_to_be_vulnerable_is_never_released() -> None:
    sound = {"name": "click", "version": "1", "vulns": []}
    assert "no known vulnerabilities" in judge_audit(json.dumps({"dependencies": [sound]}), "", 1)
    broken = {"name": "rich", "version": "1", "vulns": [{"id": "CVE-1"}]}
    for wanted in (2, 3):
        with pytest.raises(NotReady, match=r"VULNERABLE.*CVE-1"):
            judge_audit(json.dumps({"dependencies": [sound, broken]}), "", wanted)
