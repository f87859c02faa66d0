"""Ids for new records."""

from gatehouse.kernel.ids import new_record_id

NOW = 1_800_000_000


def test_later_records_have_later_ids() -> None:
    ids = [new_record_id(NOW + second) for second in range(100)]
    assert ids == sorted(ids)


def test_ids_of_one_second_differ_and_all_are_as_long() -> None:
    ids = {new_record_id(at) for at in (0, NOW) for _ in range(1_000)}
    assert len(ids) == 2_000
    assert {len(id_) for id_ in ids} == {32}
