"""The table of faults matches the names of the tests."""

from pathlib import Path

from tools import faults_reference
from tools.faults_reference import PAGE, ROOT, SOURCE

FAULTS = '[faults]\nR-01 = "a kill"\nR-02 = "another"\nR-03 = {fault = "power loss", without = "no switch"}\n'


def test_the_page_is_current() -> None:
    assert (ROOT / PAGE).read_text() == faults_reference.page(ROOT), "run python tools/faults_reference.py"


def test_a_fault_has_its_tests_a_reason_or_is_told_as_missing(tmp_path: Path) -> None:
    for path, content in (
        (SOURCE, FAULTS),
        (Path("tests/test_it.py"), "async def test_r_01_and_r_011() -> None: ..."),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    lines = faults_reference.page(tmp_path).splitlines()[-3:]
    assert lines == [
        "| R-01 | a kill | `tests/test_it.py::test_r_01_and_r_011` |",
        "| R-02 | another | **missing** |",
        "| R-03 | power loss | none: no switch |",
    ]
