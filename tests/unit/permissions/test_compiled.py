"""Compiled permissions match their source, are bounded, and are not rebuilt without need."""

import dataclasses

from msgspec import structs

from gatehouse.permissions.evaluation.compiled import compiled_model
from gatehouse.permissions.evaluation.condition_index import person_index_keys
from gatehouse.permissions.evaluation.effective import evaluate
from gatehouse.permissions.model.index_keys import group_index_keys
from gatehouse.permissions.model.rules import ROOT, Rule, RuleSection, Scope
from tests.scenarios.scenario import a_group, a_scenario

A = Rule(RuleSection.PRIVATE, "a")
TESTERS = {"groups": {"g": [{"tag": "staff"}]}, "grants": [{"group": "g", "roles": ["editor"]}]}


def test_model_is_compiled_once_and_a_changed_one_anew() -> None:
    model = a_scenario({"roles": {"editor": {"says": {"a": True}}}}).model
    assert compiled_model(model) is compiled_model(model)
    assert compiled_model(structs.replace(model, roles={})).roles == {}


def test_another_model_of_the_same_version_is_compiled_by_itself() -> None:
    before = a_scenario({"schema": {"a": True}})
    after = dataclasses.replace(
        before, model=structs.replace(before.model, schema=structs.replace(before.model.schema, private_data={}))
    )
    assert A in before.effective().rules(ROOT)
    assert A not in after.effective().rules(ROOT)


def test_another_structure_of_the_same_version_is_compiled_by_itself() -> None:
    """As when a change is simulated before it is saved."""
    document = {"roles": {"editor": {"says": {"a": True}}}, "user": {"tags": ["staff"]}, "projects": {"mg": TESTERS}}
    before = a_scenario(document)
    project = before.structure.projects["mg"]
    changed = structs.replace(project, groups={"g": a_group("g", "mg", [{"tag": "other"}])})
    after = structs.replace(before.structure, projects={"mg": changed})
    assert before.effective().allows(Scope("mg"), A)
    assert not evaluate(before.model, before.facts, after, now=before.now, address=None).allows(Scope("mg"), A)


def test_a_revoke_counts_in_a_project_that_is_not_named_as_connecting() -> None:
    document = {
        "roles": {"editor": {"says": {"a": True}}},
        "user": {"listed_in": ["g"]},
        "access": {"mg": {"assigned": ["editor"]}},
        "projects": {
            "mg": {"groups": {"g": []}, "grants": [{"group": "g", "roles": ["editor"], "action": "revoke"}]}
        },
    }
    scenario = a_scenario(document)
    assert (
        not dataclasses.replace(scenario, structure=structs.replace(scenario.structure, connecting={}))
        .effective()
        .allows(Scope("mg"), A)
    )


def test_only_groups_sharing_an_index_key_with_the_person_are_evaluated() -> None:
    groups = {f"g{n}": [{"tag": f"tag{n}", "everyone": True}, {"domain": f"d{n}.example"}] for n in range(500)}
    project = {"groups": groups, "grants": [{"group": group, "roles": ["editor"]} for group in groups]}
    document = {
        "roles": {"editor": {"says": {"a": True}}},
        "user": {"tags": ["tag7"], "domain": "d8.example", "listed_in": ["g9"]},
        "projects": {"mg": project},
    }
    scenario = a_scenario(document)
    marks = person_index_keys(scenario.facts)
    reached = [
        group_id
        for group_id, group in scenario.structure.projects["mg"].groups.items()
        if group_index_keys(group) & marks
    ]
    assert reached == ["g7", "g8", "g9"]
    assert list(scenario.effective().granted_roles(Scope("mg"))) == ["editor"]
