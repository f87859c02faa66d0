from pathlib import Path

import pytest

from tests.support.capabilities import Capability, missing_program_lines, require_program

PRESENT = Capability(name="A program", find=lambda: Path("/somewhere"))
ABSENT = Capability(name="A program", find=lambda: None)
ABSENT_EXTRA = Capability(name="An extra", find=lambda: None, optional=True)


def test_a_present_program_is_returned() -> None:
    assert require_program(PRESENT, on_ci=True) == Path("/somewhere")


def test_an_absent_program_skips_the_test_and_says_which() -> None:
    with pytest.raises(pytest.skip.Exception, match="no A program"):
        require_program(ABSENT, on_ci=False)


def test_missing_program_fails_the_test_on_ci() -> None:
    with pytest.raises(pytest.fail.Exception, match="no A program"):
        require_program(ABSENT, on_ci=True)


def test_missing_optional_program_skips_the_test_on_ci() -> None:
    with pytest.raises(pytest.skip.Exception, match="no An extra"):
        require_program(ABSENT_EXTRA, on_ci=True)


def test_the_run_closes_with_one_line_for_each_absent_program() -> None:
    with pytest.raises(pytest.skip.Exception) as error:
        require_program(ABSENT, on_ci=False)
    reasons = [str(error.value)] * 2 + ["not on this platform", "this machine has no Helm"]
    assert missing_program_lines(reasons) == [
        "NOT TESTED: 2 tests need A program, absent here (see `make test-deps`)",
        "NOT TESTED: 1 tests need Helm, absent here (see `make chart-test`)",
    ]
