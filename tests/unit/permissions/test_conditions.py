"""Which people meet a condition, and which conditions exist."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.kernel.addresses import parse_address
from gatehouse.permissions.documents.conditions import (
    MAX_CONDITION_DEPTH,
    MAX_CONDITION_MEMBERS,
    MAX_CONDITION_USERS,
    MAX_TOTAL_MEMBERS,
    MAX_TOTAL_USERS,
    parse_condition,
    refuse_overgrown,
    stored_condition,
)
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.conditions import condition_holds
from gatehouse.permissions.model.condition import Condition, ConditionSubject
from tests.support.cpu_time import run_within_cpu_seconds

ANNA = ConditionSubject("1001", domain="studio.example", tags=frozenset({"staff"}), purchases=frozenset({"gold"}))
QUICK = 0.05  # CPU seconds; checklist RO-12


def condition_applies(document: object, who: ConditionSubject = ANNA, address: str = "") -> bool:
    return condition_holds(parse_condition(document).test, who, parse_address(address))


def nest_document(levels: int, around: Callable[[object], object]) -> object:
    document: object = {"everyone": True}
    for _ in range(levels - 1):
        document = around(document)
    return document


def refused_quickly(document: object, words: str) -> None:
    def read() -> None:
        with pytest.raises(Malformed, match=words):
            parse_condition(document)

    run_within_cpu_seconds(QUICK, read)


@pytest.mark.parametrize(
    ("document", "outcome"),
    [
        ({"domain": "studio.example"}, True),
        ({"domain": "STUDIO.example"}, True),
        ({"domain": "other.example"}, False),
        ({"domain": "example"}, False),
        ({"uid": ["1001", "1002"]}, True),
        ({"uid": ["1002"]}, False),
        ({"tag": "staff"}, True),
        ({"tag": "Staff"}, False),
        ({"purchase": "gold"}, True),
        ({"purchase": "silver"}, False),
        ({"everyone": True}, True),
        ({"or": [{"tag": "x"}, {"purchase": "gold"}]}, True),
        ({"or": [{"tag": "x"}, {"tag": "y"}]}, False),
        ({"and": [{"tag": "staff"}, {"purchase": "gold"}]}, True),
        ({"and": [{"tag": "staff"}, {"purchase": "x"}]}, False),
        ({"and": [{"or": [{"tag": "x"}, {"uid": ["1001"]}]}, {"everyone": True}]}, True),
    ],
)
def test_each_member_tests_what_its_name_says(document: object, outcome: object) -> None:
    assert condition_applies(document) is outcome


def test_a_domain_that_is_not_verified_is_none() -> None:
    assert not condition_applies({"domain": "studio.example"}, ConditionSubject("1001"))


@pytest.mark.parametrize("value", ["false", "true", 1, 0, None, []])
def test_ro_10_everyone_is_true_or_false_and_nothing_else(value: object) -> None:
    with pytest.raises(Malformed, match=r"^condition\.everyone: must be true or false"):
        parse_condition({"everyone": value})


def test_ro_10_everyone_false_holds_for_no_one() -> None:
    assert not condition_applies({"everyone": False})
    assert not condition_applies({"everyone": False, "uid": ["1001"]})


def test_ro_12_sixteen_levels_and_no_more() -> None:
    assert condition_applies(nest_document(MAX_CONDITION_DEPTH, lambda inner: {"and": [inner]}))
    for levels in (MAX_CONDITION_DEPTH + 1, 33, 100_000):
        refused_quickly(nest_document(levels, lambda inner: {"or": [inner]}), "nested at most 16")


def test_ro_12_two_hundred_and_fifty_six_members_and_no_more() -> None:
    assert condition_applies({"or": [{"everyone": True}] * (MAX_CONDITION_MEMBERS - 1)})
    wide = {"or": [{"everyone": True}] * 100_000}
    for document in ({"or": [{"everyone": True}] * MAX_CONDITION_MEMBERS}, wide):
        refused_quickly(document, "at most 256")


def test_a_list_of_users_is_bounded_too() -> None:
    listed = [str(1_000 + number) for number in range(MAX_CONDITION_USERS)]
    assert condition_applies({"uid": listed})
    with pytest.raises(Malformed, match="at most 1000 users"):
        parse_condition({"uid": [*listed, "5"]})


@pytest.mark.parametrize(
    ("network", "address", "outcome"),
    [
        ("0.0.0.0/0", "192.0.2.7", True),
        ("0.0.0.0/0", "2001:db8::1", False),
        ("::/0", "2001:db8::1", True),
        ("::/0", "192.0.2.7", False),
        ("192.0.2.6/31", "192.0.2.7", True),
        ("192.0.2.6/31", "192.0.2.8", False),
        ("192.0.2.7/32", "192.0.2.7", True),
        ("192.0.2.7", "192.0.2.7", True),
        ("2001:db8::/32", "2001:db8::5", True),
        ("10.0.0.0/8", "::ffff:10.1.2.3", True),
        ("::ffff:10.0.0.0/104", "10.1.2.3", True),
        ("::ffff:10.0.0.0/104", "::ffff:10.1.2.3", True),
        ("::ffff:10.0.0.0/104", "11.0.0.1", False),
        ("0.0.0.0/0", "", False),
        ("::/0", "", False),
    ],
)
def test_ro_13_an_address_matches_its_network_and_an_unknown_one_none(
    network: str, address: str, outcome: object
) -> None:
    assert condition_applies({"ip": network}, address=address) is outcome


@pytest.mark.parametrize(
    "network",
    [
        "10.0.0.1/8",
        "10.0.0.0/8,11.0.0.0/8",
        "010.0.0.0/8",
        "10.0.0.0/08",
        "10.0.0.0/255.0.0.0",
        "10.0.0.0/33",
        "fe80::%eth0/64",
        "localhost",
        "",
        "10",
        "::ffff:10.0.0.1/104",
        10,
        None,
        ["10.0.0.0/8"],
    ],
)
def test_ro_13_a_network_is_written_as_cidr(network: object) -> None:
    with pytest.raises(Malformed, match=r"^condition\.ip: "):
        parse_condition({"ip": network})


def test_ro_13_a_condition_tells_whether_it_looks_at_the_address() -> None:
    assert parse_condition({"or": [{"tag": "a"}, {"and": [{"ip": "10.0.0.0/8"}]}]}).uses_address
    assert not parse_condition({"or": [{"tag": "a"}, {"uid": ["1"]}]}).uses_address


@pytest.mark.parametrize(
    ("document", "outcome"),
    [
        ({"tag": "staff", "purchase": "gold"}, True),
        ({"tag": "staff", "purchase": "silver"}, False),
        ({"tag": "other", "purchase": "gold"}, False),
        ({"everyone": True, "tag": "other"}, False),
        ({"tag": "staff", "or": [{"purchase": "silver"}, {"uid": ["5"]}]}, False),
        ({"or": [{"tag": "staff", "uid": ["5"]}, {"purchase": "silver"}]}, False),
    ],
)
def test_ro_15_all_members_of_an_object_must_hold(document: object, outcome: object) -> None:
    assert condition_applies(document) is outcome


@pytest.mark.parametrize(
    "document",
    [
        {"ip": "10.0.0.0/8"},
        {"tag": "a", "ip": "10.0.0.0/8"},
        nest_document(6, lambda inner: {"and": [inner, {"or": [{"ip": "10.0.0.0/8"}]}]}),
    ],
)
def test_gr_04_the_condition_of_a_group_knows_no_address(document: object) -> None:
    assert parse_condition(document)
    with pytest.raises(Malformed, match=r"\.ip: not allowed here"):
        parse_condition(document, with_address=False)


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "everyone",
        True,
        {},
        {"and": []},
        {"or": [{}]},
        {"and": {}},
        {"uid": []},
        {"uid": ["1001"] * 1_001},
        {"or": [{"uid": ["1001"] * 600}, {"uid": ["1001"] * 600}]},
        {"uid": "1001"},
        {"uid": [1001]},
        {"tag": ""},
        {"tag": 5},
        {"tag": "a\x00"},
        {"tag": "x" * 256},
        {"purchase": None},
        {"domain": ""},
        {"domain": "\u212aey.example"},
        {"Everyone": True},
        {"$where": "1"},
        {1: True},
        {"x\x00": 1},
    ],
)
def test_malformed_condition_is_refused(document: object) -> None:
    with pytest.raises(Malformed, match=r"^condition"):
        parse_condition(document)


def test_a_stored_condition_that_would_be_refused_today_holds_for_no_one() -> None:
    stored = stored_condition({"everyone": True, "moon": "full"})
    assert not condition_holds(stored.test, ANNA, None)
    assert stored.document == {"everyone": True, "moon": "full"}


def conditions() -> st.SearchStrategy[dict[str, object]]:
    single: st.SearchStrategy[dict[str, object]] = st.one_of(
        st.fixed_dictionaries({"everyone": st.booleans()}),
        st.fixed_dictionaries({"tag": st.sampled_from(["staff", "other"])}),
        st.fixed_dictionaries({"uid": st.lists(st.sampled_from(["1001", "1002"]), min_size=1, max_size=2)}),
        st.fixed_dictionaries({"domain": st.sampled_from(["studio.example", "other.example"])}),
    )
    return st.recursive(
        single,
        lambda inner: st.one_of(
            st.fixed_dictionaries({"and": st.lists(inner, min_size=1, max_size=3)}),
            st.fixed_dictionaries({"or": st.lists(inner, min_size=1, max_size=3)}),
        ),
        max_leaves=12,
    )


def by_hand(document: dict[str, object]) -> bool:
    ((name, value),) = document.items()
    match name, value:
        case "and", list():
            return all(by_hand(part) for part in value)
        case "or", list():
            return any(by_hand(part) for part in value)
        case "uid", list():
            return "1001" in value
        case "everyone", _:
            return value is True
        case _:
            return value in ("staff", "studio.example")


@given(conditions())
def test_a_tree_of_conditions_means_what_its_words_say(document: dict[str, object]) -> None:
    condition = parse_condition(document)
    assert condition_holds(condition.test, ANNA, None) is by_hand(document)
    assert condition.document == document
    assert condition == Condition(document, condition.test)


def condition_on_users(count: int, first: int = 1_000) -> dict[str, object]:
    return {"uid": [str(first + number) for number in range(count)]}


def test_the_users_of_a_condition_are_counted_together() -> None:
    half = MAX_CONDITION_USERS // 2
    assert parse_condition({"or": [condition_on_users(half), condition_on_users(half, 9_000)]})
    with pytest.raises(Malformed, match="condition: a condition can name at most 1000 users in total"):
        parse_condition({"or": [condition_on_users(half), condition_on_users(half + 1, 9_000)]})


def test_the_conditions_of_many_roles_are_counted_together() -> None:
    full = [parse_condition(condition_on_users(MAX_CONDITION_USERS))] * (MAX_TOTAL_USERS // MAX_CONDITION_USERS)
    one = parse_condition({"uid": ["5"]})
    refuse_overgrown([], full, what="it")
    with pytest.raises(Malformed, match="conditions of it can name at most 10000 users"):
        refuse_overgrown(full, [*full, one], what="it")
    refuse_overgrown([*full, one, one], [*full, one], what="it")  # fewer than before
    wide = [parse_condition({"or": [{"tag": "a"}] * 99})] * (MAX_TOTAL_MEMBERS // 100)
    refuse_overgrown([], wide, what="it")
    with pytest.raises(Malformed, match="conditions of it can have at most 5000 members"):
        refuse_overgrown([], [*wide, one], what="it")


def test_stored_condition_is_read_without_validating_it_again() -> None:
    strange = {"uid": [f"user {number}" for number in range(20_000)]}
    stored = stored_condition(strange)
    assert condition_holds(stored.test, ConditionSubject("user 19999"), None)
    assert not condition_holds(stored.test, ConditionSubject("19999"), None)


@given(conditions())
def test_a_condition_is_read_back_as_it_was_written(document: dict[str, object]) -> None:
    assert stored_condition(document).test == parse_condition(document).test


@pytest.mark.parametrize(
    "document",
    [
        {"uid": []},
        {"uid": [["1"]]},
        {"uid": [1, "1"]},
        {"uid": {"1": True}},
        {"tag": 5},
        {"domain": None},
        {"ip": "everywhere"},
        {"ip": 10},
        {"everyone": "yes"},
        {"or": []},
        {"or": [{"everyone": True}, {}]},
    ],
)
def test_stored_condition_of_unknown_shape_matches_no_one(document: dict[str, object]) -> None:
    assert not condition_holds(
        stored_condition(document).test, ConditionSubject("1", domain="a.example"), parse_address("10.0.0.1")
    )
