"""Build the input of an evaluation from a few lines of YAML; what a scenario leaves out is empty.

Rules are flat: `user.kick` is private, `public_data.doc.edit` public; a value is true, false or an object.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gatehouse.accounts.bans.model import UserBan
from gatehouse.kernel.addresses import Address, parse_address
from gatehouse.permissions.documents.conditions import stored_condition
from gatehouse.permissions.documents.records import parse_assignments
from gatehouse.permissions.documents.rules import parse_entries, parse_meta, parse_schema_section
from gatehouse.permissions.evaluation.effective import EffectivePermissions, evaluate
from gatehouse.permissions.explanation.reasons import Explanation, explain_rule
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.condition import ConditionSubject, GroupCondition
from gatehouse.permissions.model.facts import (
    ApplicationModel,
    ApplicationState,
    Facts,
    ProjectModel,
    ScopeHoldings,
    Structure,
    UserRecord,
)
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.project import GrantAction, GroupGrant, Project, ProjectSettings
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.rules import ROOT, End, ResourceKind, Rule, RuleSection, Scope
from gatehouse.permissions.model.schema import ApplicationSchema, Tree
from gatehouse.permissions.questions.remedies import RemedySearch, Situation

USER = "1001"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    model: ApplicationModel
    facts: Facts
    structure: Structure
    now: int
    address: Address | None

    def effective(self) -> EffectivePermissions:
        return evaluate(self.model, self.facts, self.structure, now=self.now, address=self.address)

    def allows(self, scope: Scope, rule: Rule) -> bool:
        return any(self.effective().scopes_holding(self.structure, scope, rule))

    def explain_rule(self, text: str, holders: Mapping[str, int] | None = None) -> Explanation:
        scope, rule = parse_rule(text)
        return explain_rule(
            *(self.model, self.facts, self.structure, scope, rule),
            now=self.now,
            address=self.address,
            holders=holders or {},
        )

    def search_remedies(
        self, text: str, holders: Mapping[str, int] | None = None
    ) -> tuple[RemedySearch, Explanation]:
        explanation = self.explain_rule(text, holders)
        search = RemedySearch(
            situation=Situation(model=self.model, facts=self.facts, address=self.address),
            structure=self.structure,
            scope=explanation.scope,
            rule=explanation.rule,
            now=self.now,
            holders=holders or {},
        )
        return search, explanation

    def after(self, situation: Situation) -> "Scenario":
        return replace(self, model=situation.model, facts=situation.facts, address=situation.address)


def a_scenario(document: Mapping[str, Any]) -> Scenario:
    application_id = document.get("application", 50_001)
    user = document.get("user", {})
    structure = a_structure(document.get("projects", {}), application_id)
    return Scenario(
        model=a_model(document, application_id),
        facts=some_facts(document, user, application_id),
        structure=structure,
        now=document.get("now", 1_000),
        address=parse_address(user["address"]) if "address" in user else None,
    )


def a_model(document: Mapping[str, Any], application_id: int) -> ApplicationModel:
    roles = [a_role(name, role or {}, application_id) for name, role in document.get("roles", {}).items()]
    application = Application(
        application_id=application_id,
        name="Shop",
        project_id=document.get("home"),
        removed=document.get("removed", False),
        service_meta={"name": "Shop"} if document.get("published", True) else {},
        created_at=0,
    )
    return ApplicationModel(
        application=application,
        schema=a_schema(document.get("schema", {}), application_id),
        roles={role.key: role for role in roles},
    )


def a_schema(rules: Mapping[str, Any], application_id: int) -> ApplicationSchema:
    private, public = (nest_rules(rules, section) for section in RuleSection)
    return ApplicationSchema(
        application_id=application_id,
        private_data=parse_schema_section(private, RuleSection.PRIVATE),
        public_data=parse_schema_section(public, RuleSection.PUBLIC),
        updated_at=0,
    )


def a_role(name: str, document: Mapping[str, Any], application_id: int) -> Role:
    fields = dict(document)
    meta = {section.value: nest_rules(fields.get("says", {}), section) for section in RuleSection}
    fields.pop("says", None)
    meta |= {section.value: fields.pop(section.value) for section in RuleSection if section.value in fields}
    condition = fields.pop("condition", None)
    mode = ConditionMode(fields.pop("condition_mode", "grant"))
    return Role(
        application_id=application_id,
        name=name,
        condition=None if condition is None else stored_condition(condition),
        condition_mode=mode,
        meta=parse_meta(meta, place="meta"),
        **fields,
    )


def some_facts(document: Mapping[str, Any], user: Mapping[str, Any], application_id: int) -> Facts:
    subject = ConditionSubject(
        user_id=user.get("id", USER),
        domain=user.get("domain"),
        tags=frozenset(user.get("tags", ())),
        purchases=frozenset(user.get("purchases", ())),
    )
    record = UserRecord(application_id=application_id, user_id=subject.user_id, scopes=some_scopes(document))
    state = ApplicationState(
        application_id=application_id, project_id=None, removed=document.get("removed_since", False), schema_version=1
    )
    return Facts(
        subject=subject,
        login=None,
        blocked=False,
        rev=0,
        has_strong_factor=False,
        groups=frozenset(user.get("listed_in", ())),
        owns={project: End(**(end or {})) for project, end in user.get("owns", {}).items()},
        records={application_id: record},
        applications={application_id: state},
        bans=tuple(UserBan(ban_id="", **ban) for ban in user.get("bans", ())),
    )


def some_scopes(document: Mapping[str, Any]) -> dict[Scope, ScopeHoldings]:
    """The root is at the top level of the scenario, everything below it under `access`, by scope."""
    root = {ROOT: some_holdings(document.get("assigned", ()), document.get("entries", {}))}
    below = {
        parse_scope(scope_text): some_holdings(holdings.get("assigned", ()), holdings.get("entries", {}))
        for scope_text, holdings in document.get("access", {}).items()
    }
    return {scope: holdings for scope, holdings in (root | below).items() if not holdings.is_empty}


def some_holdings(assigned: Any, entries: Mapping[str, Any]) -> ScopeHoldings:
    return ScopeHoldings(
        roles=parse_assignments(list(assigned), place="roles"),
        private_data=parse_entries(nest_rules(entries, RuleSection.PRIVATE), RuleSection.PRIVATE),
        public_data=parse_entries(nest_rules(entries, RuleSection.PUBLIC), RuleSection.PUBLIC),
    )


def a_structure(projects: Mapping[str, Any], application_id: int) -> Structure:
    models = {
        project_id: a_project(project_id, document or {}, application_id) for project_id, document in projects.items()
    }
    connecting = tuple(
        one for one, model in models.items() if model.project.settings.services and not model.project.removed
    )
    return Structure(projects=models, connecting={application_id: connecting})


def a_project(project_id: str, document: Mapping[str, Any], application_id: int) -> ProjectModel:
    grants = tuple(
        GroupGrant(
            group_id=grant["group"],
            roles=tuple(name.lower() for name in grant["roles"]),
            action=GrantAction(grant.get("action", "grant")),
        )
        for grant in document.get("grants", ())
    )
    connected = document.get("connects", application_id)
    settings = ProjectSettings(
        allowed_domains=tuple(document.get("allowed_domains", ())),
        services={connected: grants} if grants or "connects" in document else {},
    )
    project = Project(
        project_id=project_id,
        title=project_id,
        settings=settings,
        allow=tuple(document.get("allow", ())),
        disallow=tuple(document.get("disallow", ())),
        removed=document.get("removed", False),
        author="1",
        created_at=0,
    )
    groups = {
        name: a_group(name, project_id, conditions or []) for name, conditions in document.get("groups", {}).items()
    }
    return ProjectModel(
        project=project,
        groups=groups,
        applications=frozenset(document.get("applications", ())),
        services=frozenset(settings.services) - set(document.get("no_longer", ())),
    )


def a_group(name: str, project_id: str, conditions: list[Mapping[str, Any]]) -> Group:
    return Group(
        group_id=name,
        project_id=project_id,
        title=name.title(),
        conditions=tuple(
            GroupCondition(title=f"condition {number}", condition=stored_condition(document))
            for number, document in enumerate(conditions, 1)
        ),
        created_at=0,
    )


def nest_rules(flat: Mapping[str, Any], section: RuleSection) -> Tree:
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        rule = parse_path(name)
        if rule.section is section:
            *way, last = rule.path.split(".")
            node = tree
            for segment in way:
                node = node.setdefault(segment, {})
            node[last] = {"value": value} if isinstance(value, bool) else {"value": True, **value}
    return tree


def parse_path(text: str) -> Rule:
    section, _, path = text.partition(".")
    return Rule(RuleSection(section), path) if section in list(RuleSection) else Rule(RuleSection.PRIVATE, text)


def parse_scope(text: str) -> Scope:
    """Parse `mg` or `mg/applications/50001`."""
    project, *resource = text.split("/")
    return Scope(project, ResourceKind(resource[0]), resource[1]) if resource else Scope(project)


def parse_rule(text: str) -> tuple[Scope, Rule]:
    section, _, path = text.rpartition("/")
    return (parse_scope(section) if section else ROOT), parse_path(path)
