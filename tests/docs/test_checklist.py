"""The security checklist, and the tool that lists the tests for each row."""

from pathlib import Path

import pytest
from tools import checklist
from tools.checklist import PAGE, ROOT, SOURCE

LISTED = """
capabilities = ["people", "proof"]
built = []
[[section]]
number = 1
title = "Doors"
waits = []
[section.items]
DO-01 = "A door is shut."
[[section]]
number = 2
title = "Windows"
waits = ["people"]
[section.items]
WI-01 = "A window is shut."
"""


@pytest.fixture
def project_root(tmp_path: Path) -> Path:
    """A project with one id that must be tested, and one that people check."""
    for directory in ("docs/security", "docs/reference", "tests"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / SOURCE).write_text(LISTED)
    return tmp_path


def listed_in_addition(project_root: Path, item: str) -> None:
    (project_root / SOURCE).write_text(f"{LISTED}{item}\n")


def has_test(project_root: Path, source: str) -> None:
    (project_root / "tests" / "test_doors.py").write_text(source)


def problems_of(project_root: Path) -> list[str]:
    return checklist.problems(checklist.load(project_root), checklist.find_tests(project_root))


def page_of(project_root: Path) -> str:
    return checklist.page(checklist.load(project_root), checklist.find_tests(project_root))


def test_every_id_of_the_checklist_has_a_test_or_does_not_apply() -> None:
    assert problems_of(ROOT) == []
    listed = checklist.load(ROOT)
    assert [item.id for item in listed.items if item.waits] == []
    assert [item.id for item in listed.items if item.void] == ["HT-22"]  # TLS ends at the proxy


def test_the_page_shows_what_the_tests_answer_today() -> None:
    assert (ROOT / PAGE).read_text() == page_of(ROOT), "run python tools/checklist.py"


def test_an_id_that_has_a_test_is_shown_with_it(project_root: Path) -> None:
    has_test(project_root, "def test_do_01_the_door_is_shut(): ...")
    assert problems_of(project_root) == []
    assert "| DO-01 | A door is shut. | `tests/test_doors.py::test_do_01_the_door_is_shut` |" in page_of(project_root)
    assert "2 IDs: 1 with tests, 1 waiting, 0 not applicable, 0 missing." in page_of(project_root)


def test_an_id_without_a_test_is_missing(project_root: Path) -> None:
    assert problems_of(project_root) == ["DO-01 has no test: A door is shut."]
    assert "| DO-01 | A door is shut. | **missing** |" in page_of(project_root)


def test_an_id_that_waits_says_for_what(project_root: Path) -> None:
    assert "| WI-01 | A window is shut. | waits for people |" in page_of(project_root)


@pytest.mark.parametrize(
    "source",
    [
        "def test_do_01_wi_01_all_is_shut(): ...",
        "async def test_all_is_shut_do_01_wi_01(): ...",
        "class TestHouse:\n    def test_do_01(self): ...\n    def test_wi_01(self): ...",
    ],
)
def test_ids_are_found_wherever_they_stand_in_a_name(project_root: Path, source: str) -> None:
    has_test(project_root, source)
    assert checklist.find_tests(project_root).keys() == {"DO-01", "WI-01"}


@pytest.mark.parametrize("name", ["test_redo_01_it", "test_do_011_it", "test_do_1_it", "do_01_it"])
def test_name_that_only_resembles_an_id_is_ignored(project_root: Path, name: str) -> None:
    has_test(project_root, f"def {name}(): ...")
    assert checklist.find_tests(project_root) == {}


def test_a_test_that_names_an_id_no_one_listed_is_a_problem(project_root: Path) -> None:
    has_test(project_root, "def test_do_01_it(): ...\ndef test_do_02_it(): ...")
    assert problems_of(project_root) == [f"DO-02 is not an ID in {SOURCE}: tests/test_doors.py::test_do_02_it"]


def test_an_id_that_waits_in_part_needs_a_test_now(project_root: Path) -> None:
    has_test(project_root, "def test_do_01_it(): ...")
    listed_in_addition(project_root, 'WI-02 = { holds = "A pane holds.", partly = true }')
    assert problems_of(project_root) == ["WI-02 has no test: A pane holds."]
    has_test(project_root, "def test_do_01_it(): ...\ndef test_wi_02_it(): ...")
    assert problems_of(project_root) == []
    assert "`tests/test_doors.py::test_wi_02_it`<br>the rest waits for people |" in page_of(project_root)


def test_no_item_waits_for_a_finished_feature(project_root: Path) -> None:
    has_test(project_root, "def test_do_01_it(): ...")
    (project_root / SOURCE).write_text(LISTED.replace("built = []", 'built = ["people"]'))
    assert problems_of(project_root) == ["WI-01 waits for people, which is built"]


def test_no_item_waits_for_an_unknown_feature(project_root: Path) -> None:
    has_test(project_root, "def test_do_01_it(): ...")
    listed_in_addition(project_root, 'WI-02 = { holds = "A pane holds.", waits = ["glaziers"] }')
    assert problems_of(project_root) == [f"WI-02 waits for glaziers, which is not in {SOURCE}"]


def test_an_id_that_does_not_apply_says_why_and_needs_no_test(project_root: Path) -> None:
    has_test(project_root, "def test_do_01_it(): ...")
    listed_in_addition(project_root, 'WI-02 = { holds = "A pane holds.", void = "there is no glass" }')
    assert problems_of(project_root) == []
    assert "| WI-02 | A pane holds. | not applicable: there is no glass |" in page_of(project_root)


def test_the_check_fails_while_the_page_is_old(project_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    has_test(project_root, "def test_do_01_it(): ...")
    assert checklist.main(["--check"], project_root) == 1
    assert "is out of date" in capsys.readouterr().err
    assert checklist.main([], project_root) == 0
    assert checklist.main(["--check"], project_root) == 0
    assert capsys.readouterr().err == ""


def test_the_check_fails_while_an_id_is_missing_although_the_page_says_so(
    project_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checklist.main([], project_root) == 0
    assert checklist.main(["--check"], project_root) == 1
    assert capsys.readouterr().err == "DO-01 has no test: A door is shut.\n" * 2
