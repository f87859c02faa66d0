"""The truth tables: every scenario of every file in this directory is a test."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatehouse.permissions.documents.rules import meta_entries, schema_rules, section_entries
from gatehouse.permissions.evaluation.shapes import Shape, ShapeOptions, render_shape, selected_scopes
from gatehouse.permissions.explanation.remedies import RemedyStep
from gatehouse.permissions.explanation.wording import explanation_sentences
from gatehouse.permissions.model.rules import ROOT, Rule, RuleSection, Scope
from tests.scenarios.naive import NaiveEvaluation, list_short
from tests.scenarios.scenario import Scenario, a_scenario, parse_rule, parse_scope

HERE = Path(__file__).parent
SCENARIOS_LEAST = 150
GIVEN = {
    *("now", "application", "removed", "removed_since", "schema", "roles", "user", "assigned", "entries"),
    *("access", "projects", "holders", "home", "published"),
}


def scenarios() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path in sorted(HERE.glob("*.yaml")):
        for document in yaml.load(path.read_text(), yaml.CSafeLoader):
            yield f"{path.stem}: {document['name']}", document


ALL = dict(scenarios())


@pytest.mark.parametrize("name", ALL)
def test_truth_table(name: str) -> None:
    document = ALL[name]
    scenario = a_scenario(document)
    for what, expected in document["expect"].items():
        assert evaluate(what, expected, scenario, document) == expected, what


@pytest.mark.parametrize("name", ALL)
def test_every_scenario_matches_the_naive_evaluation(name: str) -> None:
    scenario = a_scenario(ALL[name])
    effective, naive = scenario.effective(), NaiveEvaluation(scenario)
    scopes, rules = scopes_in(ALL[name], scenario), sorted(rules_in(scenario))
    for scope in scopes:
        effective_rules = effective.rules(scope)
        assert sorted(effective_rules) == [rule for rule in rules if naive.holds(scope, rule)]
        assert {role.role.name for role in effective.granted_roles(scope).values()} == naive.roles(scope)
        for rule in rules:
            allowed = naive.allows(scope, rule)
            assert scenario.allows(scope, rule) is allowed
            assert scenario.explain_rule(f"{place(scope)}{rule}").allowed is allowed
            if rule in effective_rules:
                assert effective_rules[rule].seconds_left(scenario.now) == naive.seconds_left(scope, rule)
    assert list(render_shape(effective, Shape.LIST_SHORT, ShapeOptions(), scenario.now)) == list_short(
        naive, scopes, rules
    )


def test_scenarios_are_many_and_uniquely_named() -> None:
    names = [name for name, _ in scenarios()]
    assert len(names) >= SCENARIOS_LEAST
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", ALL)
def test_a_scenario_says_only_what_is_understood(name: str) -> None:
    assert set(ALL[name]) <= GIVEN | {"name", "expect"}


def evaluate(what: str, expected: Any, scenario: Scenario, document: Mapping[str, Any]) -> Any:  # noqa: C901, PLR0911 - one a kind
    """Evaluate the kind of result that the scenario expects."""
    effective = scenario.effective()
    match what.split():
        case ["list" | "list_short" | "roles" as kind, *settings]:
            return list(render_shape(effective, Shape(kind), some_options(settings), scenario.now))
        case ["expired", *settings]:
            return effective.first_end(scenario.now, selected_scopes(effective, some_options(settings)))
        case ["until"]:
            return effective.valid_until
        case ["scopes"]:
            return [place(scope).rstrip("/") or "root" for scope in effective.nonempty_scopes]
        case ["allows"]:
            return [text for text in expected if scenario.allows(*parse_rule(text))]
        case ["denies"]:
            return [text for text in expected if not scenario.allows(*parse_rule(text))]
        case ["lacks"]:
            return {text: missing_for(scenario, document, text) for text in expected}
        case ["decided_by"]:
            return {text: deciding_contributions(scenario, text) for text in expected}
        case ["words"]:
            return {
                text: explanation_sentences(scenario.explain_rule(text, document.get("holders"))) for text in expected
            }
        case ["remedies"]:
            return {text: remedies_for(scenario, document, text) for text in expected}
        case _:
            raise AssertionError(f"unknown expectation {what}")


def missing_for(scenario: Scenario, document: Mapping[str, Any], text: str) -> list[str]:
    missing = scenario.explain_rule(text, document.get("holders")).missing
    return [f"{one.kind} {one.role}".strip() for one in missing]


def remedies_for(scenario: Scenario, document: Mapping[str, Any], text: str) -> list[str]:
    search, explanation = scenario.search_remedies(text, document.get("holders"))
    return [" + ".join(map(step_words, remedy.steps)) for remedy in search.find(explanation)]


def step_words(step: RemedyStep) -> str:
    """The kind, what it is about, and where."""
    needs = [f"{need.member}={need.wanted}" for need in step.needs]
    group = [step.group.group_id] if step.group else []
    ban = [f"application={step.application_id}"] if step.application_id else []
    where = [] if step.scope.is_root else [f"in {place(step.scope).rstrip('/')}"]
    return " ".join([step.kind, *([step.role] if step.role else []), *group, *ban, *needs, *where])


def deciding_contributions(scenario: Scenario, text: str) -> list[str]:
    return [
        f"{contribution.kind} {contribution.role}".strip()
        for contribution in scenario.explain_rule(text).contributions
        if contribution.decides
    ]


def some_options(settings: list[str]) -> ShapeOptions:
    """Parse `list project_id=mg with_exp`; without an id it is one that was not found. One section, or both."""
    options: dict[str, Any] = {}
    for setting in settings:
        name, is_text, value = setting.partition("=")
        options[name] = value if is_text else True
    if "sections" in options:
        options["sections"] = frozenset({RuleSection(options["sections"])})
    return ShapeOptions(**options)


def scopes_in(document: Mapping[str, Any], scenario: Scenario) -> list[Scope]:
    written = {parse_scope(text) for text in document.get("access", {})}
    return [ROOT, *sorted(written | {Scope(project) for project in scenario.structure.projects}, key=place)]


def rules_in(scenario: Scenario) -> set[Rule]:
    schema = scenario.model.schema
    rules = set(schema_rules(schema.private_data, schema.public_data))
    for role in scenario.model.roles.values():
        rules |= set(meta_entries(role.meta))
    for record in scenario.facts.records.values():
        for holdings in record.scopes.values():
            rules |= set(section_entries(holdings.private_data, RuleSection.PRIVATE))
            rules |= set(section_entries(holdings.public_data, RuleSection.PUBLIC))
    return rules


def place(scope: Scope) -> str:
    return "" if scope.is_root else "/".join([scope.project_id, *filter(None, [scope.kind, scope.resource_id])]) + "/"
