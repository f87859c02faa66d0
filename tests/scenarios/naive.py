"""A slow and simple implementation of R5, to compare the evaluation with.

It shares only the records and `holds` with the code it checks; `holds` has its own tests.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gatehouse.permissions.evaluation.conditions import condition_holds
from gatehouse.permissions.model.facts import NO_HOLDINGS, ProjectModel, ScopeHoldings
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import ROOT, End, ResourceKind, Rule, Scope
from tests.scenarios.scenario import Scenario


class NaiveEvaluation:
    """The permissions at `at`, as predicted now."""

    def __init__(self, scenario: Scenario, at: int | None = None) -> None:
        self.scenario = scenario
        self.at = scenario.now if at is None else at

    def allows(self, scope: Scope, rule: Rule) -> bool:
        around = Scope(scope.project_id)
        if scope.kind is not None and self.holds(around, rule) and self._is_let_in(scope):
            return True
        if self.scenario.model.application.application_id == 1 and str(rule) == "private_data.can_administer":
            return self.holds(scope, rule) or self.holds(ROOT, rule)
        return self.holds(scope, rule)

    def holds(self, scope: Scope, rule: Rule) -> bool:
        if self._application_is_gone() or not self._is_let_in(scope):
            return False
        verdict = False
        for tier in self._tiers(scope):
            values = [self._value(tree, rule) for tree in tier]
            if False in values:
                verdict = False
            elif True in values:
                verdict = True
        return verdict

    def seconds_left(self, scope: Scope, rule: Rule) -> int:
        moments = sorted({end.ends_at(self.scenario.now) for end in self._all_ends()} - {0})
        for moment in moments:
            if moment > self.scenario.now and not NaiveEvaluation(self.scenario, moment).holds(scope, rule):
                return moment - self.scenario.now
        return 0

    def roles(self, scope: Scope) -> set[str]:
        if self._application_is_gone() or not self._is_let_in(scope):
            return set()
        return {role.name for role in self._assigned_roles(scope)}

    def params(self, scope: Scope, rule: Rule) -> list[str]:
        merged: list[str] = []
        for tree, appended in self._true_sources(scope, rule):
            own = self._leaf(tree, rule).get("params", "")
            merged += [item for item in [*own.split(","), *appended.split(",")] if item and item not in merged]
        return list(dict.fromkeys(merged))

    def _tiers(self, scope: Scope) -> Iterator[list[Any]]:
        """Trees of two sections each, lower tiers first."""
        model = self.scenario.model
        if scope.is_root:
            yield [{"private_data": model.schema.private_data, "public_data": model.schema.public_data}]
            yield [role.meta for role in self._default_roles()]
            yield [role.meta for role in (*self._assigned_roles(scope), *self._conditional())]
        else:
            yield [role.meta for role in self._assigned_roles(scope)]
        yield [self._living_entries(scope)]

    def _true_sources(self, scope: Scope, rule: Rule) -> Iterator[tuple[Any, str]]:
        roles = [*self._assigned_roles(scope)]
        if scope.is_root:
            roles = [*self._default_roles(), *roles, *self._conditional()]
        sources = [*((role.meta, role.params) for role in roles), (self._living_entries(scope), "")]
        for tree, appended in sources:
            if self._value(tree, rule) is True:
                yield tree, appended

    def _default_roles(self) -> list[Role]:
        roles = [
            role for role in self.scenario.model.roles.values() if role.default or role.name.lower() == "default"
        ]
        return sorted(roles, key=lambda role: role.name.lower())

    def _conditional(self) -> list[Role]:
        roles = [
            role
            for role in self.scenario.model.roles.values()
            if role.condition is not None and role.condition_mode == "grant" and self._meets(role)
        ]
        return sorted(roles, key=lambda role: role.name.lower())

    def _assigned_roles(self, scope: Scope) -> list[Role]:
        """Assignments as stored, then grants by group."""
        keys = [role.role for role in self._holdings(scope).roles if self._lives(role.end)]
        revoked: set[str] = set()
        if not scope.is_root and scope.kind is None:
            for grant in sorted(self._grants(scope), key=lambda item: item.group_id):
                if self._is_member(self._project(scope), grant.group_id):
                    keys += [key for key in grant.roles if grant.action == "grant"]
                    revoked |= {key for key in grant.roles if grant.action == "revoke"}
        roles = [
            self.scenario.model.roles[key] for key in keys if key in self.scenario.model.roles and key not in revoked
        ]
        return [
            role
            for role in roles
            if (scope.is_root or not role.protected) and (role.condition_mode == "grant" or self._meets(role))
        ]

    def _grants(self, scope: Scope) -> Any:
        project = self._project(scope)
        application = self.scenario.model.application
        if project is None or not (
            application.project_id == scope.project_id or application.service_meta.get("name")
        ):
            return ()
        return project.project.settings.services.get(application.application_id, ())

    def _is_let_in(self, scope: Scope) -> bool:
        if scope.is_root:
            return True
        model = self._project(scope)
        if model is None or model.project.removed or not self._has(model, scope):
            return False
        ownership = self.scenario.facts.owns.get(scope.project_id)
        if ownership is not None and self._lives(ownership):
            return True
        if any(self._is_member(model, item) for item in model.project.disallow):
            return False
        if model.project.allow and not any(self._is_member(model, item) for item in model.project.allow):
            return False
        domains = [name.lower() for name in model.project.settings.allowed_domains]
        return not domains or self.scenario.facts.subject.domain in domains

    def _has(self, model: ProjectModel, scope: Scope) -> bool:
        groups, services = model.groups, map(str, model.services)
        own = {
            None: [""],
            ResourceKind.APPLICATION: [str(number) for number in model.applications],
            ResourceKind.SERVICE: list(services),
            ResourceKind.GROUP: list(groups),
        }
        return scope.resource_id in own[scope.kind]

    def _is_member(self, model: ProjectModel | None, group_id: str) -> bool:
        if model is None or group_id not in model.groups:
            return False
        conditions = [condition.condition.test for condition in model.groups[group_id].conditions]
        listed = group_id in self.scenario.facts.groups
        return listed or any(condition_holds(test, self.scenario.facts.subject, None) for test in conditions)

    def _meets(self, role: Role) -> bool:
        return role.condition is None or condition_holds(
            role.condition.test, self.scenario.facts.subject, self.scenario.address
        )

    def _application_is_gone(self) -> bool:
        application = self.scenario.model.application
        here = {application.application_id, 0}
        is_banned = any(
            ban.application_id in here and not ban.project_id and (not ban.until or ban.until > self.at)
            for ban in self.scenario.facts.bans
        )
        return (
            is_banned or application.removed or self.scenario.facts.applications[application.application_id].removed
        )

    def _project(self, scope: Scope) -> ProjectModel | None:
        return self.scenario.structure.projects.get(scope.project_id)

    def _holdings(self, scope: Scope) -> ScopeHoldings:
        record = self.scenario.facts.records[self.scenario.model.application.application_id]
        return record.scopes.get(scope, NO_HOLDINGS)

    def _lives(self, end: End) -> bool:
        if end.ttl:
            return self.at < self.scenario.now + end.ttl
        return end.expired == 0 or end.expired > self.at

    def _living_entries(self, scope: Scope) -> dict[str, Any]:
        holdings = self._holdings(scope)
        return {
            "private_data": self._living(holdings.private_data),
            "public_data": self._living(holdings.public_data),
        }

    def _living(self, tree: Any) -> dict[str, Any]:
        living = {}
        for name, node in tree.items():
            if "value" not in node:
                living[name] = self._living(node)
            elif self._lives(End(expired=node.get("expired", 0), ttl=node.get("ttl", 0))):
                living[name] = node
        return living

    def _value(self, tree: Any, rule: Rule) -> bool | None:
        value = self._leaf(tree, rule).get("value")
        return value if isinstance(value, bool) else None

    def _leaf(self, tree: Any, rule: Rule) -> Mapping[str, Any]:
        node = tree
        for segment in str(rule).split("."):
            node = node.get(segment, {}) if isinstance(node, Mapping) else {}
        return node if isinstance(node, Mapping) else {}

    def _all_ends(self) -> Iterator[End]:
        yield from self.scenario.facts.owns.values()
        record = self.scenario.facts.records[self.scenario.model.application.application_id]
        for holdings in record.scopes.values():
            yield from (role.end for role in holdings.roles)
            yield from self._ends_in(holdings.private_data)
            yield from self._ends_in(holdings.public_data)

    def _ends_in(self, tree: Any) -> Iterator[End]:
        for node in tree.values():
            if "value" in node:
                yield End(expired=node.get("expired", 0), ttl=node.get("ttl", 0))
            else:
                yield from self._ends_in(node)


def list_short(naive: NaiveEvaluation, scopes: list[Scope], rules: list[Rule]) -> list[str]:
    names = set()
    for scope in scopes:
        for rule in rules:
            if naive.holds(scope, rule):
                params = naive.params(scope, rule)
                names.add(short_place(scope) + rule.path + ("|" + ",".join(params) if params else ""))
    return sorted(names)


def short_place(scope: Scope) -> str:
    if scope.is_root:
        return ""
    if scope.kind is None:
        return f"{scope.project_id}/"
    words = {ResourceKind.APPLICATION: "applications", ResourceKind.SERVICE: "services", ResourceKind.GROUP: "groups"}
    return f"{scope.project_id}/{words[scope.kind]}/{scope.resource_id}/"
