"""What opens an application's own records, read back from whatever is stored (interface §2.8, S-22)."""

import pytest

from gatehouse.permissions.rights.secret_data import NO_SECRETS, Extent, Part, living_value, overlaid

NOW = 1_000


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
def test_what_has_ended_or_cannot_be_read_opens_nothing(leaf: object, value: object) -> None:
    assert living_value(leaf, NOW) is value


def test_a_tree_says_what_it_says_and_leaves_the_rest() -> None:
    below = overlaid(NO_SECRETS, {"application": {"canRead": {"value": True}, "canSave": {"value": True}}}, NOW)
    tree = {
        "application": {"canSave": {"value": False}},
        "meta": {"roles": {"canRead": {"value": "all"}}, "public": {"canWrite": {"value": "everything"}}},
    }
    data = overlaid(below, tree, NOW)
    assert data.application == {"canRead"}
    assert data.reads[Part.ROLES] is Extent.ALL
    assert data.writes[Part.PUBLIC] is Extent.NONE
    assert data.reads[Part.SECRET] is Extent.NONE


def test_nobody_covers_more_than_he_holds() -> None:
    holder = overlaid(NO_SECRETS, {"meta": {"roles": {"canRead": {"value": "self"}}}}, NOW)
    wider = overlaid(NO_SECRETS, {"meta": {"roles": {"canRead": {"value": "all"}}}}, NOW)
    assert wider.covers(holder)
    assert not holder.covers(wider)
