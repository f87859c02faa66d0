"""Equal columns give the record that was made of them; anything else is converted."""

from collections.abc import Callable
from sys import intern
from typing import Any, Final

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import BigInteger, Boolean, Column, LargeBinary, MetaData, Table, Text, bindparam, select

from gatehouse.storage.rows import MAX_LENGTH, MAX_RECORDS, RecordColumns
from gatehouse.storage.statements import DatabaseKind, JsonDocument, Statement

SAMPLES: Final = Table(
    "samples",
    MetaData(),
    *(Column("name", Text()), Column("size", BigInteger()), Column("flag", Boolean()), Column("seal", LargeBinary())),
    *(Column("document", JsonDocument()), Column("other", Text())),
)
STORED: Final = tuple(SAMPLES.c)[:5]
NUMBERS: Final = st.sampled_from([0, 1, 2, True, False, None])  # equal ones of different types
ROWS: Final = st.tuples(
    st.sampled_from(["", "a", "1"]),
    NUMBERS,
    NUMBERS,
    st.sampled_from([b"", b"1", None]),
    st.sampled_from(["{}", "[]", '{"1": true}', '{"1": 1}', None]),
)


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    size: int
    flag: bool
    seal: bytes | None
    document: object


def sample(fields: dict[str, Any]) -> Sample:
    return Sample(**fields)


def statement(columns: RecordColumns[Sample]) -> Statement:
    return Statement(lambda: select(*STORED, SAMPLES.c.other), records={"sample": columns})


def typed(value: object) -> str:
    return repr(value)  # tells 1 from True


def decoder(columns: RecordColumns[Sample], kind: DatabaseKind = DatabaseKind.SQLITE) -> Callable[[Any], Any]:
    return statement(columns).compile_for(kind).decode


@given(rows=st.lists(ROWS, max_size=30), kind=st.sampled_from(DatabaseKind))
def test_memo_of_records_changes_no_record(rows: list[tuple[Any, ...]], kind: DatabaseKind) -> None:
    remembering = decoder(RecordColumns(sample, STORED), kind)
    for number, row in enumerate(rows):
        expected = decoder(RecordColumns(sample, STORED), kind)((*row, f"other {number}"))
        assert typed(remembering((*row, f"other {number}"))) == typed(expected)


def test_equal_columns_are_converted_once() -> None:
    decode = decoder(RecordColumns(sample, STORED))
    first, second = (decode(("a", 1, 0, b"", "{}", other)) for other in ("x", "y"))
    assert first.sample is second.sample
    assert (first.other, second.other) == ("x", "y")


def test_memo_of_records_is_bounded() -> None:
    converted: list[str] = []

    def make(fields: dict[str, Any]) -> Sample:
        converted.append(fields["name"])
        return sample(fields)

    columns = RecordColumns(make, STORED)
    decode = decoder(columns)
    for name in (*map(str, range(MAX_RECORDS + 1)), "0"):
        decode((name, 1, 0, b"", None, ""))
    assert converted.count("0") == 2
    for _ in range(2):
        decode(("a" * (MAX_LENGTH + 1), 1, 0, b"", None, ""))
    assert converted.count("a" * (MAX_LENGTH + 1)) == 2


def test_names_of_rows_and_parameters_are_interned() -> None:
    found = select(SAMPLES.c.name, SAMPLES.c.document).where(
        SAMPLES.c.name == bindparam("of"), SAMPLES.c.document == bindparam("like"), SAMPLES.c.size == 7
    )
    for kind in DatabaseKind:
        compiled = Statement(lambda: found).compile_for(kind)
        names = [*compiled.parameter_order, *compiled.constants, *compiled.encoders]
        assert {"of", "like", "size_1"} == set(names)
        assert all(type(name) is str and name is intern(name) for name in names)
