"""On any model, all kinds of queries agree with each other and with a naive implementation of R5."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gatehouse.permissions.evaluation.effective import EffectivePermissions
from gatehouse.permissions.evaluation.shapes import Shape, ShapeOptions, list_prefix, render_shape, short_prefix
from gatehouse.permissions.model.rules import ROOT, Rule, Scope
from tests.scenarios.naive import NaiveEvaluation, list_short
from tests.scenarios.scenario import Scenario, a_scenario, parse_path, parse_scope

NOW = 1_000
PATHS = ["a", "b.c", "b.d", "public_data.e"]
RULES = [parse_path(path) for path in PATHS]
ROLES = ["One", "two", "default", "four"]
GROUPS = ["g1", "g2"]
PLACES = ["p", "q", "p/applications/7", "p/groups/g1", "gone"]
SCOPES = [ROOT, *map(parse_scope, PLACES)]
DOMAINS = ["studio.example", "other.example"]
PLAIN = ShapeOptions()
WITH_EXP = ShapeOptions(with_exp=True)

marks = st.sampled_from(["x", "y"])
simple_condition = st.one_of(
    st.builds(lambda name: {"domain": name}, st.sampled_from(DOMAINS)),
    st.builds(lambda tag: {"tag": tag}, marks),
    st.builds(lambda one: {"purchase": one}, marks),
    st.builds(lambda one: {"uid": [one, "7"]}, st.sampled_from(["1001", "8"])),
    st.builds(lambda flag: {"everyone": flag}, st.booleans()),
    st.just({"ip": "10.0.0.0/8"}),
)
condition = st.recursive(
    simple_condition,
    lambda inner: st.builds(
        lambda word, parts: {word: parts}, st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=4,
)
params = st.sampled_from(["", "x", "x,y", "z"])
ends = [{"expired": 999}, {"expired": 1000}, {"expired": 1100}, {"expired": 1200}, {"ttl": 150}]
end = st.sampled_from([{}, {}, *ends, {"expired": 500, "ttl": 50}, {"expired": 1100, "ttl": 300}])
says = st.dictionaries(
    st.sampled_from(PATHS), st.builds(lambda value, text: {"value": value, "params": text}, st.booleans(), params)
)
entries = st.dictionaries(
    st.sampled_from(PATHS),
    st.builds(lambda value, text, until: {"value": value, "params": text, **until}, st.booleans(), params, end),
)
role = st.fixed_dictionaries(
    {"says": says},
    optional={
        "default": st.booleans(),
        "protected": st.booleans(),
        "params": params,
        "condition": condition,
        "condition_mode": st.sampled_from(["grant", "require"]),
    },
)
assigned = st.lists(
    st.builds(lambda name, until: {"name": name, **until}, st.sampled_from([*ROLES, "ghost"]), end),
    unique_by=lambda one: one["name"],
)
held = st.fixed_dictionaries({}, optional={"assigned": assigned, "entries": entries})
group_list = st.lists(st.sampled_from(GROUPS), max_size=1)
project = st.fixed_dictionaries(
    {"groups": st.fixed_dictionaries({}, optional={group: st.lists(condition, max_size=2) for group in GROUPS})},
    optional={
        "removed": st.just(True),
        "applications": st.just([7]),
        "allow": group_list,
        "disallow": group_list,
        "allowed_domains": st.lists(st.sampled_from(["Studio.Example", "art.example"]), max_size=2),
        "grants": st.lists(
            st.fixed_dictionaries(
                {
                    "group": st.sampled_from(GROUPS),
                    "roles": st.lists(st.sampled_from([*ROLES, "ghost"]), min_size=1, max_size=3),
                    "action": st.sampled_from(["grant", "grant", "revoke"]),
                }
            ),
            max_size=3,
        ),
    },
)
user = st.fixed_dictionaries(
    {"listed_in": st.lists(st.sampled_from(GROUPS))},
    optional={
        "domain": st.sampled_from(DOMAINS),
        "tags": st.lists(marks),
        "purchases": st.lists(marks),
        "address": st.sampled_from(["10.1.2.3", "11.1.2.3"]),
        "owns": st.dictionaries(st.sampled_from(["p", "q"]), end),
    },
)
worlds = st.fixed_dictionaries(
    {
        "now": st.just(NOW),
        "user": user,
        "roles": st.fixed_dictionaries({}, optional=dict.fromkeys(ROLES, role)),
        "access": st.fixed_dictionaries({}, optional=dict.fromkeys(PLACES, held)),
        "projects": st.fixed_dictionaries({}, optional={"p": project, "q": project}),
    },
    optional={
        "schema": st.dictionaries(st.sampled_from(PATHS), st.booleans()),
        "assigned": assigned,
        "entries": entries,
    },
).map(a_scenario)


@given(worlds)
def test_the_evaluation_is_the_naive_one(scenario: Scenario) -> None:
    effective, naive = scenario.effective(), NaiveEvaluation(scenario)
    for scope in SCOPES:
        rules = effective.rules(scope)
        assert set(rules) == {rule for rule in RULES if naive.holds(scope, rule)}
        assert {item.role.name for item in effective.granted_roles(scope).values()} == naive.roles(scope)
        for rule, item in rules.items():
            assert list(item.params) == naive.params(scope, rule)
            assert item.seconds_left(NOW) == naive.seconds_left(scope, rule)


@given(worlds)
def test_shapes_and_decisions_agree(scenario: Scenario) -> None:
    effective = scenario.effective()
    full, short = (list(render_shape(effective, kind, PLAIN, NOW)) for kind in (Shape.LIST, Shape.LIST_SHORT))
    assert full == sorted(set(full))
    assert short == list_short(NaiveEvaluation(scenario), SCOPES, RULES)
    assert len(full) == len(short)
    for scope in SCOPES:
        for rule in RULES:
            held_here = rule in effective.rules(scope)
            assert scenario.allows(scope, rule) is NaiveEvaluation(scenario).allows(scope, rule)
            assert (
                list_contains(full, list_text(scope, rule))
                is list_contains(short, short_text(scope, rule))
                is held_here
            )


@given(worlds)
def test_an_explanation_agrees_with_the_decision_and_has_a_reason(scenario: Scenario) -> None:
    for scope in SCOPES:
        for rule in RULES:
            explanation = scenario.explain_rule(f"{short_prefix(scope)}{rule}")
            deciding = [contribution for contribution in explanation.contributions if contribution.decides]
            assert explanation.allowed is scenario.allows(scope, rule)
            assert not (explanation.allowed and explanation.missing)
            assert not explanation.allowed or any(item.value for item in deciding)
            shut = any(item.kind in BARRIERS for item in explanation.missing)
            assert explanation.allowed or shut or not any(item.value for item in deciding)


@given(worlds)
def test_remedies_reverse_the_answer_and_no_step_is_needless(scenario: Scenario) -> None:
    for scope in SCOPES:
        for rule in RULES:
            search, explanation = scenario.search_remedies(f"{short_prefix(scope)}{rule}")
            found = [remedy.steps for remedy in search.find(explanation)]
            for steps in found:
                after = search.after(search.situation, steps)
                assert after is not None
                assert NaiveEvaluation(scenario.after(after)).allows(scope, rule) is not explanation.allowed
                for needless in steps:
                    left = search.after(search.situation, [step for step in steps if step is not needless])
                    assert left is not None
                    assert scenario.after(left).allows(scope, rule) is explanation.allowed
            assert not any(set(one) < set(other) for one in found for other in found)


BARRIERS = {
    *("project_unknown", "project_removed", "in_disallowed_group", "in_no_allowed_group", "domain_not_allowed")
}


@given(worlds)
def test_roles_told_are_those_held(scenario: Scenario) -> None:
    naive = NaiveEvaluation(scenario)
    expected = {
        ("" if scope.is_root else short_prefix(scope)[:-1].replace("/", ".") + "/") + name
        for scope in SCOPES
        for name in naive.roles(scope)
    }
    assert list(render_shape(scenario.effective(), Shape.ROLES, PLAIN, NOW)) == sorted(expected)


@given(worlds)
def test_the_seconds_told_are_those_left(scenario: Scenario) -> None:
    naive = NaiveEvaluation(scenario)
    expected = []
    for scope in SCOPES:
        for rule in RULES:
            if naive.holds(scope, rule):
                following = naive.params(scope, rule)
                marked = "|" + ",".join(following) if following else ""
                expected.append(f"{short_text(scope, rule)}{marked}:{naive.seconds_left(scope, rule)}")
    assert list(render_shape(scenario.effective(), Shape.LIST_SHORT, WITH_EXP, NOW)) == sorted(expected)


@given(worlds, st.integers(0, 400))
def test_effective_permissions_stay_the_same_until_valid_until(scenario: Scenario, later: int) -> None:
    effective = scenario.effective()
    if effective.valid_until and NOW + later >= effective.valid_until:
        later = effective.valid_until - 1 - NOW
    assert snapshot(effective) == snapshot(replace(scenario, now=NOW + later).effective())


@given(worlds)
def test_a_list_kept_in_memory_is_the_one_made_anew(scenario: Scenario) -> None:
    effective = scenario.effective()
    for _ in range(2):
        for kind in Shape:
            for options in (PLAIN, WITH_EXP, ShapeOptions(project_id="p"), ShapeOptions(hide_project_access=True)):
                for now in (NOW, NOW + 10):
                    expected = render_shape(scenario.effective(), kind, options, now)
                    assert render_shape(effective, kind, options, now) == expected


def snapshot(effective: EffectivePermissions) -> list[Any]:
    return [(set(effective.rules(scope)), sorted(effective.granted_roles(scope))) for scope in SCOPES]


def list_contains(lines: list[str], text: str) -> bool:
    return any(line.partition("|")[0] == text for line in lines)


def list_text(scope: Scope, rule: Rule) -> str:
    return f"{list_prefix(scope)}{rule}"


def short_text(scope: Scope, rule: Rule) -> str:
    return short_prefix(scope) + rule.path
