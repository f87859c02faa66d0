"""Permission responses encoded in slices have the same bytes as encoded at once, and end at the limit."""

from collections.abc import Iterator

import msgspec
import pytest

from gatehouse.kernel.background import OFF_LOOP_WEIGHT
from gatehouse.permissions.errors import MAX_ANSWER_BYTES, AnswerTooLarge
from gatehouse.web.api.permissions.envelope import LIST_SLICE, DataResponse, encode_bounded, iter_json_pieces
from gatehouse.web.api.permissions.explanation_records import MemberRecord, MembersPage, PathStep, ScopeName


class Tagged(msgspec.Struct, tag_field="part", tag="keys", omit_defaults=True):
    keys: list[str] = msgspec.field(default_factory=list)
    days: int = 90


class Unset(msgspec.Struct):
    known: bool | msgspec.UnsetType = msgspec.UNSET
    days: int = 90


def page(count: int) -> MembersPage:
    step = PathStep(source="assigned_role", scope=ScopeName(), role='the "first"')
    return MembersPage(
        members=tuple(MemberRecord(user_id=str(n), until=0, path=(step,)) for n in range(count)), after=None
    )


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        "plain",
        tuple(f"rule{n}" for n in range(LIST_SLICE + 1)),
        DataResponse(status="OK"),
        DataResponse(status="OK", data=[{"name": "one", "meta": {"a": {"b": {"value": True}}}}], warnings=("x",)),
        DataResponse(status="OK", data=page(3)),
        [Tagged(), Tagged(keys=["one"], days=1)],
        [Unset(), Unset(known=True)],
        {"a": [[1, 2], [3]], "b": {"c": {"d": {"e": {"f": {"g": {"h": [1]}}}}}}},
    ],
)
def test_slices_joined_are_what_one_call_makes(value: object) -> None:
    assert b"".join(iter_json_pieces(value)) == msgspec.json.encode(value)
    assert encode_bounded(value, weight=OFF_LOOP_WEIGHT) == encode_bounded(value)


def test_no_chunk_of_a_long_list_is_large() -> None:
    rules = tuple(f"private_data.area.rule{n:06}" for n in range(20 * LIST_SLICE))
    assert max(map(len, iter_json_pieces(DataResponse(status="OK", data=rules)))) < 2**18


@pytest.mark.parametrize("weight", [0, OFF_LOOP_WEIGHT])
def test_lp_01_an_answer_over_the_bound_is_given_up(weight: int) -> None:
    texts = ["x" * 2**16] * (MAX_ANSWER_BYTES // 2**16 + 1)
    with pytest.raises(AnswerTooLarge, match="answer too large: more than 8 MB; ask for one at a time"):
        encode_bounded(texts, weight=weight, narrower="ask for one at a time")


def test_lp_01_an_endless_answer_is_given_up_early() -> None:
    created = 0

    class EndlessList(list[object]):
        def __iter__(self) -> Iterator[object]:
            nonlocal created
            while True:
                created += 1
                yield ["x" * 2**16]

    with pytest.raises(AnswerTooLarge):
        encode_bounded(EndlessList([[]]), weight=OFF_LOOP_WEIGHT)
    assert created <= MAX_ANSWER_BYTES // 2**16 + 1
