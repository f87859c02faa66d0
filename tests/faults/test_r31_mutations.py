"""For every safeguard removed from the program, a test fails (faults R-31)."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults.mutating import ROOT, TIMEOUT, Mutation, mutations, try_mutations
from tests.faults.run_record import FULL_RUN

LEAST = 12
QUICK = [mutation for mutation in mutations() if mutation.quick]


# The quick ones are of different modules and their tests of different safeguards: one run tries them all.
@pytest.mark.timeout(TIMEOUT + 60)
@pytest.mark.parametrize(
    "tried", [[one] for one in mutations()] if FULL_RUN else [QUICK], ids=lambda tried: tried[0].name
)
def test_r_31_a_precaution_taken_out_turns_its_test_red(tried: Sequence[Mutation], tmp_path: Path) -> None:
    verdict = try_mutations(tried, tmp_path)
    for mutation in tried:
        assert any(test.startswith(mutation.test) for test in verdict.failed_tests), verdict.output


def test_r_31_every_mutation_on_the_list_changes_what_is_there_and_names_a_test_that_is_there() -> None:
    listed = mutations()
    assert len(listed) >= LEAST
    assert len({mutation.name for mutation in listed}) == len(listed)
    assert len({mutation.file for mutation in QUICK}) == len({mutation.test for mutation in QUICK}) == len(QUICK)
    for mutation in listed:
        assert mutation.old != mutation.new
        assert (ROOT / "src" / "gatehouse" / mutation.file).read_text().count(mutation.old) == 1, mutation.name
        file, _, test = mutation.test.partition("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(), mutation.name
