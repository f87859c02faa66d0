"""Distinct values are counted exactly while they are few, and closely when they are many."""

from gatehouse.kernel.sketches import (
    SKETCH_SIZE,
    count_distinct,
    decode_sketch,
    encode_sketch,
    merge_sketches,
    sketch_digest,
)

KEY = bytes(32)


def sketch_of(first: int, last: int) -> list[int]:
    return list(merge_sketches([{sketch_digest(KEY, str(number)) for number in range(first, last)}]))


def test_few_values_are_counted_exactly_also_after_a_merge() -> None:
    both = merge_sketches([sketch_of(0, 300), sketch_of(200, 500)])
    assert count_distinct(both) == 500
    assert count_distinct([]) == 0
    assert list(decode_sketch(encode_sketch(both))) == list(both)


def test_many_values_are_estimated_within_a_tenth() -> None:
    merged = merge_sketches(sketch_of(start, start + 5_000) for start in range(0, 20_000, 2_500))
    assert len(merged) == SKETCH_SIZE
    assert abs(count_distinct(merged) - 22_500) < 2_250
