"""What an account takes over from one that is merged into it (R10)."""

from typing import Any

from gatehouse.permissions.model.facts import Assignment, ScopeHoldings, UserRecord
from gatehouse.permissions.model.merging import merge_records
from gatehouse.permissions.model.rules import ROOT, End

NOW = 1_000


def a_record(**fields: Any) -> UserRecord:
    login = fields.pop("login", {})
    return UserRecord(application_id=5, user_id="1", login=login, scopes={ROOT: ScopeHoldings(**fields)})


def merged_section(own: dict[str, Any], given: dict[str, Any]) -> Any:
    return merge_records(a_record(private_data=own), a_record(private_data=given), (), NOW).record.root.private_data


def test_restriction_beats_a_right_of_either() -> None:
    yes, no = {"value": True}, {"value": False}
    assert merged_section({"a": yes}, {"a": no}) == {"a": no}
    assert merged_section({"a": no}, {"a": yes}) == {"a": no}
    assert merged_section({}, {"a": {"b": no, "c": yes}}) == {"a": {"b": no}}


def test_longer_restriction_stays_and_an_expired_one_is_not_taken_over() -> None:
    short, long, endless = ({"value": False, "expired": NOW + n} for n in (10, 20, -NOW))
    assert merged_section({"a": short}, {"a": long}) == {"a": long}
    assert merged_section({"a": long}, {"a": short}) == {"a": long}
    assert merged_section({"a": long}, {"a": endless}) == {"a": endless}
    assert merged_section({}, {"a": {"value": False, "expired": NOW}}) == {}


def test_login_restrictions_go_over_and_login_rights_do_not() -> None:
    given = a_record(login={"cannot": {"value": True}, "can": {"value": True}})
    assert merge_records(a_record(login={"cannot": {"value": False}}), given, (), NOW).record.login == {
        "cannot": {"value": True}
    }


def test_live_role_replaces_the_same_one_that_has_ended() -> None:
    ended, later = End(expired=NOW), End(expired=NOW + 20)
    own = a_record(roles=(Assignment(role="a", end=ended), Assignment(role="b", end=End(expired=NOW + 10))))
    given = a_record(roles=(Assignment(role="a", end=later), Assignment(role="b", end=later)))
    merged = merge_records(own, given, ("a", "b"), NOW)
    assert {one.role: one.end.expired for one in merged.record.root.roles} == {"a": NOW + 20, "b": NOW + 10}
    assert merged.dropped == ("5: role b: its later end",)


def test_own_rights_that_give_way_and_restrictions_without_a_place_are_named() -> None:
    yes, no = {"value": True}, {"value": False}
    own = a_record(private_data={"a": yes, "b": {"c": no}, "d": yes, "e": no})
    given = a_record(private_data={"a": no, "b": no, "d": {"f": no}, "e": yes})
    merged = merge_records(own, given, (), NOW)
    assert merged.record.root.private_data == {"a": no, "b": {"c": no}, "d": yes, "e": no}
    assert merged.dropped == ("5: entry e", "5: own entry a", "5: restriction b", "5: restriction d.f")


def test_roles_that_are_not_allowed_and_direct_rights_are_named() -> None:
    roles = (Assignment(role="a"), Assignment(role="b"), Assignment(role="c", end=End(expired=NOW)))
    given = a_record(roles=roles, public_data={"x": {"y": {"value": True}}})
    merged = merge_records(a_record(), given, ("a",), NOW)
    assert [one.role for one in merged.record.root.roles] == ["a"]
    assert merged.dropped == ("5: role b", "5: entry x.y")
