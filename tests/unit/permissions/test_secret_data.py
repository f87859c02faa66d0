"""What opens an application's own records, parsed from stored data (interface §2.8, S-22)."""

import pytest

from gatehouse.permissions.model.rules import NO_END, End
from gatehouse.permissions.rights.secret_data import (
    NO_SECRET_DATA,
    Extent,
    RecordPart,
    outlasts,
    overlay_secret_data,
    unexpired_value,
)

NOW = 1_000
READS_ROLES = ("meta", "roles", "canRead")


@pytest.mark.parametrize(
    ("leaf", "value"),
    [
        ({"value": True}, True),
        ({"value": True, "expired": NOW + 1}, True),
        ({"value": True, "expired": NOW}, None),
        ({"value": True, "expired": NOW - 1, "ttl": 60}, True),
        ({"value": True, "expired": "soon"}, None),
        ({"value": True, "ttl": "long"}, None),
        ({}, None),
        (True, None),
        (None, None),
    ],
)
def test_expired_or_malformed_leaf_has_no_value(leaf: object, value: object) -> None:
    assert unexpired_value(leaf, NOW) is value


def test_a_tree_says_what_it_says_and_leaves_the_rest() -> None:
    below = overlay_secret_data(
        NO_SECRET_DATA, {"application": {"canRead": {"value": True}, "canSave": {"value": True}}}, NOW
    )
    tree = {
        "application": {"canSave": {"value": False}},
        "meta": {"roles": {"canRead": {"value": "all"}}, "public": {"canWrite": {"value": "everything"}}},
    }
    data = overlay_secret_data(below, tree, NOW)
    assert data.application == {"canRead"}
    assert data.reads[RecordPart.ROLES] is Extent.ALL
    assert data.writes[RecordPart.PUBLIC] is Extent.NONE
    assert data.reads[RecordPart.SECRET] is Extent.NONE


@pytest.mark.parametrize("junk", [True, "everything", 1, None, ["all"]])
def test_unknown_extent_value_grants_nothing(junk: object) -> None:
    tree = {"application": {"canSave": {"value": "all"}}, "meta": {"roles": {"canRead": {"value": junk}}}}
    data = overlay_secret_data(NO_SECRET_DATA, tree, NOW)
    assert (data.extent_at(("application", "canSave")), data.extent_at(READS_ROLES)) == (Extent.NONE, Extent.NONE)


@pytest.mark.parametrize(
    ("below", "above", "end"),
    [
        ({"value": "all"}, {"value": "all", "expired": NOW + 60}, NO_END),  # it is held without that leaf as well
        ({"value": "self"}, {"value": "all", "expired": NOW + 60}, End(expired=NOW + 60)),
        ({"value": "all", "expired": NOW + 90}, {"value": "self", "expired": NOW + 60}, End(expired=NOW + 90)),
        ({"value": "none"}, {"value": "all", "ttl": 60}, End(ttl=60)),
        ({"value": "all", "expired": NOW + 60}, {"value": "all"}, NO_END),
        ({"value": "all", "expired": NOW + 60}, {"value": "all", "expired": NOW}, End(expired=NOW + 60)),
    ],
)
def test_right_held_twice_lasts_until_the_later_end(below: object, above: object, end: End) -> None:
    data = NO_SECRET_DATA
    for leaf in (below, above):
        data = overlay_secret_data(data, {"meta": {"roles": {"canRead": leaf}}}, NOW)
    assert data.end_at(READS_ROLES) == end


@pytest.mark.parametrize(
    ("one", "other", "longer"),
    [
        (NO_END, NO_END, False),
        (NO_END, End(expired=NOW + 60), True),
        (NO_END, End(ttl=60), True),
        (End(expired=NOW + 60), NO_END, False),
        (End(expired=NOW + 60), End(expired=NOW + 60), False),
        (End(expired=NOW + 61), End(expired=NOW + 60), True),
        (End(ttl=5), End(expired=NOW + 60), True),  # such an end never takes effect
        (End(expired=NOW + 1, ttl=5), End(expired=NOW + 60), True),
        (End(ttl=60), End(ttl=60), False),
        (End(ttl=61), End(ttl=60), True),
        (End(expired=NOW + 60), End(ttl=60), False),
        (End(expired=NOW + 61), End(ttl=60), True),
    ],
)
def test_outlasts_compares_two_ends(one: End, other: End, longer: bool) -> None:  # noqa: FBT001 - a column of the table
    assert outlasts(one, other, NOW) is longer
