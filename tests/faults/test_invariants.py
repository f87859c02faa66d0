"""Each checker passes a valid history and reports an invalid one; otherwise it would prove nothing."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.history import Act, History, Operation, Recorder, Result, read_history
from tests.faults.invariants.answers import (
    RecordFields,
    answers_come_within,
    every_lost_answer_was_asked_for_again,
    i8_one_record_for_each_change,
    i13_figures_stay_bounded,
    i14_a_lost_answer_hides_no_half,
    no_answer_blames_the_code,
)
from tests.faults.invariants.lasting import (
    i3_what_was_ended_stays_ended,
    i11_what_was_not_ended_goes_on,
    i12_nothing_succeeds_without_what_it_needs,
    public_endpoints_stay_available,
)
from tests.faults.invariants.once import (
    a_secret_is_spent_at_most_once,
    i1_a_code_is_consumed_at_most_once,
    i2_a_family_has_one_live_token_and_after_reuse_none,
    i4_an_answer_is_delivered_once_and_never_lost,
    i15_nothing_outlives_its_end,
)
from tests.faults.invariants.registers import i6_every_record_is_linearizable, i6_versions_grow_by_one
from tests.faults.invariants.roles import i10_roles_are_whole
from tests.faults.invariants.sets import (
    i5_limits_are_never_exceeded,
    i5_names_are_unique,
    i7_every_acknowledged_element_is_there,
)
from tests.support.database_contents import Rows

OK, FAIL, INFO = Result.OK, Result.FAIL, Result.INFO
ISSUE, REDEEM, REFRESH, LAST, DELIVER = Act.ISSUE, Act.REDEEM, Act.REFRESH, Act.LAST_TRY, Act.DELIVER
BEGIN, END, USE, WRITE, READ, FOUND, ADD, REMOVE = (
    *(Act.BEGIN, Act.END, Act.USE, Act.WRITE, Act.READ, Act.FOUND),
    *(Act.ADD, Act.REMOVE),
)


def op(
    t0: float, t1: float, act: Act, key: str = "k", value: str = "", *, result: Result = OK, **more: Any
) -> Operation:
    return Operation(t0=t0, t1=t1, node=0, client="c", op=act, key=key, value=value, result=result, **more)


CHECKS = {
    "a code twice": (
        i1_a_code_is_consumed_at_most_once,
        [op(0, 1, REDEEM), op(0, 2, REDEEM, result=FAIL), op(0, 3, REDEEM, result=INFO)],
        [op(0, 1, REDEEM), op(0, 2, REDEEM)],
    ),
    "a secret twice": (
        a_secret_is_spent_at_most_once,
        [op(0, 1, Act.SPEND), op(0, 1, Act.SPEND, "other")],
        [op(0, 1, Act.SPEND), op(2, 3, Act.SPEND)],
    ),
    "two live tokens": (
        i2_a_family_has_one_live_token_and_after_reuse_none,
        [
            op(0, 1, REDEEM, "c", "a"),
            op(2, 3, REFRESH, "a", "b"),
            op(9, 9, LAST, "b", "n"),
            op(9, 9, LAST, "a", result=FAIL),
        ],
        [op(0, 1, REDEEM, "c", "a"), op(2, 3, REFRESH, "a", "b"), op(9, 9, LAST, "b", "n"), op(9, 9, LAST, "a", "m")],
    ),
    "alive after reuse": (
        i2_a_family_has_one_live_token_and_after_reuse_none,
        [
            *(op(0, 1, REDEEM, "c", "a"), op(2, 3, REFRESH, "a", "b"), op(4, 5, REFRESH, "a", result=FAIL)),
            op(9, 9, LAST, "b", result=FAIL),
        ],
        [
            *(op(0, 1, REDEEM, "c", "a"), op(2, 3, REFRESH, "a", "b"), op(4, 5, REFRESH, "a", result=FAIL)),
            op(9, 9, LAST, "b", "n"),
        ],
    ),
    "rotated twice": (
        i2_a_family_has_one_live_token_and_after_reuse_none,
        [op(0, 1, REFRESH, "a", "b"), op(0, 1, REFRESH, "a", result=FAIL)],
        [op(0, 1, REFRESH, "a", "b"), op(0, 1, REFRESH, "a", "c")],
    ),
    "delivered twice": (
        i4_an_answer_is_delivered_once_and_never_lost,
        [op(0, 1, Act.APPROVE), op(0, 1, DELIVER), op(2, 3, DELIVER, result=FAIL)],
        [op(0, 1, Act.APPROVE), op(0, 1, DELIVER), op(2, 3, DELIVER)],
    ),
    "never delivered": (
        i4_an_answer_is_delivered_once_and_never_lost,
        [op(0, 1, Act.APPROVE), op(2, 3, DELIVER, result=INFO), op(4, 5, DELIVER, result=FAIL)],
        [op(0, 1, Act.APPROVE), op(2, 3, DELIVER, result=FAIL)],
    ),
    "used after its end": (
        i3_what_was_ended_stays_ended,
        [op(0, 1, BEGIN), op(1, 3, USE), op(2, 3, END), op(4, 5, USE, result=FAIL), op(6, 7, BEGIN), op(8, 9, USE)],
        [op(0, 1, BEGIN), op(2, 3, END), op(4, 5, USE)],
    ),
    "used after its end although begun before": (
        i3_what_was_ended_stays_ended,
        [op(0, 1, BEGIN, result=INFO), op(2, 3, END), op(4, 5, USE)],  # the lost one may have come last
        [op(0, 1, BEGIN), op(2, 3, END), op(4, 5, USE), op(6, 7, BEGIN)],
    ),
    "refused although it holds": (
        i11_what_was_not_ended_goes_on,
        [op(0, 1, BEGIN), op(2, 3, USE), op(4, 6, END, result=INFO), op(7, 8, USE, result=FAIL)],
        [op(0, 1, BEGIN), op(2, 3, USE, result=FAIL), op(4, 6, END)],
    ),
    "answered without a database": (
        i12_nothing_succeeds_without_what_it_needs,
        [op(0, 9, Act.FAULT), op(1, 2, READ, result=INFO), op(3, 10, READ), op(1, 2, Act.OPEN)],
        [op(0, 9, Act.FAULT), op(1, 2, READ)],
    ),
    "a public endpoint fails": (
        public_endpoints_stay_available,
        [op(0, 1, Act.OPEN)],
        [op(0, 1, Act.OPEN, result=INFO)],
    ),
    "read after it was replaced": (
        i6_every_record_is_linearizable,
        [
            op(0, 1, WRITE, value="a"),
            op(2, 5, WRITE, value="b"),
            op(3, 4, READ, value="a"),
            op(3, 4, READ, value="b"),
        ],
        [op(0, 1, WRITE, value="a"), op(2, 3, WRITE, value="b"), op(4, 5, READ, value="a")],
    ),
    "a save that was lost": (
        i6_every_record_is_linearizable,
        [op(0, 1, WRITE, value="a"), op(2, 3, WRITE, value="b", result=INFO), op(4, 5, READ, value="a")],
        [
            op(0, 1, WRITE, value="a"),
            op(0, 1, READ, value="a"),
            op(2, 3, WRITE, value="b"),
            op(4, 5, READ, value="a"),
        ],
    ),
    "back and forth between nodes": (
        i6_every_record_is_linearizable,
        [
            *(op(0, 1, WRITE, value="a"), op(2, 9, WRITE, value="b", result=INFO)),
            *(op(3, 4, READ, value="a"), op(5, 6, READ, value="b")),
        ],
        [
            *(op(0, 1, WRITE, value="a"), op(2, 9, WRITE, value="b", result=INFO)),
            *(op(3, 4, READ, value="b"), op(5, 6, READ, value="a")),
        ],
    ),
    "what was refused is read": (
        i6_every_record_is_linearizable,
        [op(0, 1, WRITE, value="a", result=FAIL), op(2, 3, READ, value="")],
        [op(0, 1, WRITE, value="a", result=FAIL), op(2, 3, READ, value="a")],
    ),
    "empty again": (
        i6_every_record_is_linearizable,
        [op(0, 3, WRITE, value="a"), op(1, 2, READ, value="")],
        [op(0, 1, WRITE, value="a"), op(2, 3, READ, value="")],
    ),
    "a version twice": (
        i6_versions_grow_by_one,
        [op(0, 1, WRITE, version=2), op(0, 1, WRITE, version=3)],
        [op(0, 1, WRITE, version=2), op(0, 1, WRITE, version=2)],
    ),
    "a version back": (
        i6_versions_grow_by_one,
        [op(0, 1, WRITE, version=2), op(2, 3, WRITE, version=3)],
        [op(0, 1, WRITE, version=3), op(2, 3, WRITE, version=2)],
    ),
    "a version that counts no save": (
        i6_versions_grow_by_one,
        [
            *(op(0, 0, FOUND, version=1), op(0, 1, WRITE, version=2), op(0, 1, WRITE, result=INFO)),
            op(9, 9, FOUND, value="end", version=3),
        ],
        [op(0, 0, FOUND, version=1), op(0, 1, WRITE, version=2), op(9, 9, FOUND, value="end", version=3)],
    ),
    "a bare 503": (
        no_answer_blames_the_code,
        [op(0, 1, READ, status=503, patient=True), op(0, 1, READ, status=200)],
        [op(0, 1, READ, status=503)],
    ),
    "a 500": (no_answer_blames_the_code, [op(0, 1, READ, status=0)], [op(0, 1, READ, status=500, patient=True)]),
    "a half": (
        i14_a_lost_answer_hides_no_half,
        [
            *(op(0, 1, ADD, result=INFO, number=1), op(0, 1, REFRESH, result=INFO, number=2)),
            op(2, 3, ADD, result=FAIL, status=409, repeats=1),
            op(2, 3, REFRESH, result=FAIL, status=400, note="invalid_grant", repeats=2),
        ],
        [op(0, 1, ADD, result=INFO, number=1), op(2, 3, ADD, result=FAIL, status=400, repeats=1)],
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_checker_passes_what_is_right_and_names_what_is_wrong(name: str) -> None:
    check, right, wrong = CHECKS[name]
    assert check(right) == []
    assert check(wrong)


LIMITS = {"keys": 2}
THIRD = [op(0, 1, ADD, "keys:1", "a"), op(0, 1, ADD, "keys:1", "b"), op(2, 3, ADD, "keys:1", "c")]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ([op(0, 1, Act.COUNT, "keys:1", "2")], [op(0, 1, Act.COUNT, "keys:1", "3")]),
        ([*THIRD, op(2, 3, REMOVE, "keys:1", "a", result=INFO)], THIRD),
        ([*THIRD, op(1.5, 1.7, REMOVE, "keys:1", "b")], [*THIRD, op(8, 9, REMOVE, "keys:1", "b")]),
    ],
)
def test_i5_a_third_is_seen_by_counting_and_by_what_was_acknowledged(right: History, wrong: History) -> None:
    assert i5_limits_are_never_exceeded(right, LIMITS) == []
    assert i5_limits_are_never_exceeded(wrong, LIMITS)


def test_i5_a_name_twice_is_seen() -> None:
    assert i5_names_are_unique(["a", "b"]) == []
    assert i5_names_are_unique(["a", "b", "a"])


@pytest.mark.parametrize(
    ("about", "right", "wrong"),
    [
        ([op(0, 1, ADD, value="a"), op(0, 1, ADD, value="b", result=INFO)], ["a"], ["b"]),
        ([op(0, 1, ADD, value="a"), op(2, 3, REMOVE, value="a")], [], ["a"]),
        ([op(0, 1, ADD, value="a", result=FAIL)], [], ["a"]),
        ([op(0, 1, ADD, value="?", result=INFO)], ["x"], ["x", "y"]),
    ],
)
def test_i7_what_is_lost_comes_back_or_was_never_added_is_seen(
    about: History, right: Sequence[str], wrong: Sequence[str]
) -> None:
    assert i7_every_acknowledged_element_is_there(about, {"k": right}) == []
    assert i7_every_acknowledged_element_is_there(about, {"k": wrong})


def test_i8_a_missing_a_second_and_a_needless_record_are_seen() -> None:
    record = RecordFields(event="role.saved", request_id="r")
    done, refusal, lost = (op(0, 1, WRITE, result=one, event="role.saved", request_id="r") for one in Result)
    assert i8_one_record_for_each_change([done], [record]) == []
    assert i8_one_record_for_each_change([refusal, lost], []) == []
    for history, records in (([done], []), ([done], [record, record]), ([refusal], [record]), ([lost], [record] * 2)):
        assert i8_one_record_for_each_change(history, records)


RULE = {"private_data": {"root": {"can_sell": {"value": False, "protected": True}}}, "public_data": {}}
SELLER = {"application_id": 7, "role_key": "seller", "name": "Seller", "protected": True}
SELLS: dict[str, Any] = {"private_data": {"root": {"can_sell": {"value": True}}}}


def rows_about(role: dict[str, Any], assigned: str) -> Rows:
    """One application with a rule that only protected roles may grant, one role, and a person with a role."""
    return {
        "application_schemas": [SimpleNamespace(application_id=7, **RULE)],
        "roles": [SimpleNamespace(**{**SELLER, **role})],
        "role_assignments": [SimpleNamespace(user_id="1", application_id=7, role_key=assigned)],
    }


def test_i10_a_role_that_is_gone_and_a_public_one_that_gives_too_much_are_seen() -> None:
    for role in ({"meta": SELLS}, {"meta": {}, "protected": False}):
        assert i10_roles_are_whole(rows_about(role, "seller")) == []
        assert i10_roles_are_whole(rows_about(role, "gone")) == [
            "I10: 1 is assigned 'gone' of 7, which is not there",
        ]
    [problem] = i10_roles_are_whole(rows_about({"meta": SELLS, "protected": False}, "seller"))
    assert "private_data.root.can_sell" in problem


def test_the_other_bounds_say_no_too() -> None:
    slow, large = op(0, 9, READ), op(0, 1, Act.MEASURE, "fds:0", "300")
    assert answers_come_within([slow], 9) == []
    assert answers_come_within([slow], 8)
    assert i13_figures_stay_bounded([large], {"fds": 300}) == []
    assert i13_figures_stay_bounded([large], {"fds": 299})
    issued, late = op(0, 1, ISSUE, value="code"), op(12, 13, REDEEM, "code")
    assert i15_nothing_outlives_its_end([issued, late], 11) == []
    assert i15_nothing_outlives_its_end([issued, late], 10)
    lost = op(0, 1, ADD, result=INFO, number=7)
    assert every_lost_answer_was_asked_for_again([lost], [ADD])
    assert every_lost_answer_was_asked_for_again([lost, op(2, 3, ADD, result=INFO, repeats=7)], [ADD])
    assert every_lost_answer_was_asked_for_again([lost, op(2, 3, ADD, repeats=7)], [ADD]) == []


def test_a_history_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "history.jsonl")
    written = [recorder.write(op(0.25, 1, ADD, value="ä\n", status=200)), recorder.write(op(1, 2, REMOVE))]
    recorder.close()
    assert read_history(recorder.path) == written == recorder.operations
    assert [one.number for one in written] == [1, 2]
