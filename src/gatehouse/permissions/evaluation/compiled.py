"""Roles and grants compiled for decisions, once per application and project.

A compiled form belongs to the object it was made from and ends with it (model/facts.py). It never refers back to
that object: a cycle would stay in memory until garbage collection. Roles are compiled when first needed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from gatehouse.kernel.cached_property import cached_property
from gatehouse.permissions.documents.rules import schema_rules, split_params
from gatehouse.permissions.evaluation.condition_index import ConditionIndex
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel, Structure
from gatehouse.permissions.model.index_keys import IndexKey, condition_index_keys, group_index_keys
from gatehouse.permissions.model.project import GroupGrant
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.rules import Rule, RuleEntry, RuleSection
from gatehouse.permissions.model.schema import Tree


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """The rules that one role, schema or record allows and denies."""

    yes: frozenset[Rule] = frozenset()
    no: frozenset[Rule] = frozenset()
    params: Mapping[Rule, tuple[str, ...]] = field(default_factory=dict)  # only of allowed rules

    interned_texts: dict[Rule, str] = field(
        default_factory=dict, compare=False, repr=False
    )  # rules as text, each once

    @cached_property
    def work(self) -> int:
        """The estimated work of including this: one per rule and per param."""
        return len(self.yes) + len(self.no) + sum(map(len, self.params.values()))

    @cached_property
    def sorted_texts(self) -> tuple[str, ...]:
        """The allowed rules as sorted texts, made once for everyone with the role."""
        return tuple(sorted(self.interned_texts.setdefault(rule, str(rule)) for rule in self.yes))


class RuleInterner:
    """Interns the rules of one application: equal rules, texts and params are one object, so sets compare fast."""

    def __init__(self) -> None:
        self.interned_texts: dict[Rule, str] = {}
        self._rules: dict[RuleSection, dict[str, Rule]] = {section: {} for section in RuleSection}
        self._params: dict[str, tuple[str, ...]] = {}

    def add(self, rules: Iterable[Rule]) -> None:
        for rule in rules:
            self._rules[rule.section].setdefault(rule.path, rule)

    def compile_verdicts(self, role: Role) -> Verdicts:
        yes: list[Rule] = []
        no: list[Rule] = []
        params: dict[Rule, str] = {}
        for section in RuleSection:
            tree = role.meta.get(section.value)
            if isinstance(tree, Mapping):
                self._read(section, tree, "", (yes, no, params))
        appended = split_params(role.params)
        joined = {text: self._split(text) + appended for text in set(params.values())}
        own = {rule: joined[text] for rule, text in params.items()}
        if appended:
            own = dict.fromkeys(yes, appended) | own
        return Verdicts(yes=frozenset(yes), no=frozenset(no), params=own, interned_texts=self.interned_texts)

    def _read(
        self, section: RuleSection, tree: Tree, prefix: str, results: tuple[list[Rule], list[Rule], dict[Rule, str]]
    ) -> None:
        """Read a stored tree, which consists of dictionaries only; this runs for every leaf."""
        yes, no, params = results
        known = self._rules[section]
        for segment, node in tree.items():
            path = f"{prefix}{segment}"
            if not isinstance(node, dict):
                continue
            if "value" not in node:
                self._read(section, node, f"{path}.", results)
                continue
            rule = known.get(path)
            if rule is None:
                rule = known[path] = Rule(section, path)
            if node["value"] is not True:
                no.append(rule)
                continue
            yes.append(rule)
            if node.get("params"):
                params[rule] = node["params"]

    def _split(self, text: str) -> tuple[str, ...]:
        if text not in self._params:
            self._params[text] = split_params(text)
        return self._params[text]


class CompiledRole:
    def __init__(self, role: Role, rules: RuleInterner) -> None:
        self.role = role
        self._interner = rules

    @cached_property
    def verdicts(self) -> Verdicts:
        return self._interner.compile_verdicts(self.role)

    def reuse_verdicts(self, before: "CompiledRole") -> None:
        if (before.role.meta, before.role.params) == (self.role.meta, self.role.params):
            self.verdicts = before.verdicts


class CompiledModel:
    """`previous`: the model before a change; verdicts that are equal in both are the same object."""

    def __init__(self, model: ApplicationModel, *, previous: "CompiledModel | None" = None) -> None:
        self.is_fully_compiled = False  # every role is compiled
        self.interner: RuleInterner = RuleInterner() if previous is None else previous.interner
        rules = self.interner
        known = schema_rules(model.schema.private_data, model.schema.public_data)
        rules.add(known)
        self.schema = Verdicts(
            yes=frozenset(rule for rule, leaf in known.items() if leaf.value),
            no=frozenset(rule for rule, leaf in known.items() if not leaf.value),
            interned_texts=rules.interned_texts,
        )
        if previous is not None and previous.schema == self.schema:
            self.schema = previous.schema
        self.schema_rules: frozenset[Rule] = frozenset(known)
        self.uses_address = any(
            role.condition is not None and role.condition.uses_address for role in model.roles.values()
        )
        self.roles = {key: CompiledRole(role, rules) for key, role in sorted(model.roles.items())}
        for key, before in previous.roles.items() if previous is not None else ():
            if key in self.roles:
                self.roles[key].reuse_verdicts(before)
        self.default_roles = tuple(role for role in self.roles.values() if role.role.is_default)
        self.conditional_roles = ConditionIndex(
            (key, condition_index_keys(role.role.condition.test))
            for key, role in self.roles.items()
            if role.role.condition is not None and role.role.condition_mode is ConditionMode.GRANT
        )

    def compile_roles(self) -> None:
        for role in self.roles.values():
            _ = role.verdicts
        self.is_fully_compiled = True

    @cached_property
    def all_rules(self) -> frozenset[Rule]:
        """Rules of the schema, and of every role."""
        rules = set(self.schema_rules)
        for role in self.roles.values():  # one role at a time, so that no single call is long
            rules |= role.verdicts.yes
            rules |= role.verdicts.no
        return frozenset(rules)

    @cached_property
    def unassigned_work(self) -> int:
        """Work of the schema and of the roles that may apply without being assigned."""
        free = (role for role in self.roles.values() if role.role.is_default or role.role.condition is not None)
        return self.schema.work + sum(role.verdicts.work for role in free)

    @cached_property
    def work(self) -> int:
        """Work of reading all verdicts of the schema and the roles."""
        return len(self.schema_rules) + sum(role.verdicts.work for role in self.roles.values())


class CompiledGrants(Struct, frozen=True, kw_only=True):
    """Which roles of one application a project grants and revokes, by group."""

    by_group: Mapping[str, tuple[GroupGrant, ...]]
    groups: ConditionIndex[str]


NO_GRANTS: Final = CompiledGrants(by_group={}, groups=ConditionIndex(()))


class CompiledProject:
    def __init__(self, model: ProjectModel) -> None:
        self.project = model.project
        self.groups = model.groups
        self._grants: dict[int, CompiledGrants] = {}

    def grants(self, application_id: int) -> CompiledGrants:
        if application_id not in self.project.settings.services:
            return NO_GRANTS
        if application_id not in self._grants:
            self._grants[application_id] = self._compile_grants(application_id)
        return self._grants[application_id]

    @cached_property
    def allowed_domains(self) -> frozenset[str]:
        return frozenset(name.lower() for name in self.project.settings.allowed_domains)

    @cached_property
    def allow(self) -> ConditionIndex[str]:
        return self._group_index(self.project.allow)

    @cached_property
    def disallow(self) -> ConditionIndex[str]:
        return self._group_index(self.project.disallow)

    def _compile_grants(self, application_id: int) -> CompiledGrants:
        by_group: dict[str, tuple[GroupGrant, ...]] = {}
        for grant in self.project.settings.services.get(application_id, ()):
            by_group[grant.group_id] = (*by_group.get(grant.group_id, ()), grant)
        return CompiledGrants(by_group=by_group, groups=self._group_index(by_group))

    def _group_index(self, group_ids: Iterable[str]) -> ConditionIndex[str]:
        """Return the index of a group; a group of another project has no members here."""
        own = self.groups
        return ConditionIndex(
            (group_id, group_index_keys(own[group_id])) for group_id in group_ids if group_id in own
        )


class CompiledStructure:
    def __init__(self, structure: Structure) -> None:
        self._projects = structure.projects
        self._connecting_ids = structure.connecting
        self._connecting: dict[int, ConditionIndex[str]] = {}

    def project(self, project_id: str) -> CompiledProject | None:
        model = self._projects.get(project_id)
        return None if model is None else model.derived_cache.get_or_make(CompiledProject, model)

    def connecting_projects(self, application_id: int) -> ConditionIndex[str]:
        """Ids of the projects that may grant roles of the application."""
        if application_id not in self._connecting:
            projects = self._connecting_ids.get(application_id, ())
            self._connecting[application_id] = ConditionIndex(
                (project, self._grant_keys(project, application_id)) for project in projects
            )
        return self._connecting[application_id]

    def _grant_keys(self, project_id: str, application_id: int) -> Iterable[IndexKey]:
        project = self.project(project_id)
        return () if project is None else project.grants(application_id).groups.index_keys


def compiled_model(model: ApplicationModel) -> CompiledModel:
    return model.derived_cache.get_or_make(CompiledModel, model)


def compile_fully(model: ApplicationModel) -> CompiledModel:
    """Compile every role now instead of when first needed: for the worker thread, once per model."""
    compiled = compiled_model(model)
    compiled.compile_roles()
    return compiled


def is_compiled(model: ApplicationModel) -> bool:
    """Whether nothing of it is left to compile."""
    made = model.derived_cache.get(CompiledModel)
    return made is not None and made.is_fully_compiled


def compile_change(model: ApplicationModel, before: ApplicationModel) -> CompiledModel:
    """The compiled model after a change; it is not cached, because the change was not saved."""
    compiled = CompiledModel(model, previous=compile_fully(before))
    compiled.compile_roles()
    return compiled


def compiled_structure(structure: Structure) -> CompiledStructure:
    return structure.derived_cache.get_or_make(CompiledStructure, structure)


def verdicts_of(entries: Mapping[Rule, RuleEntry]) -> Verdicts:
    return Verdicts(
        yes=frozenset(rule for rule, entry in entries.items() if entry.value),
        no=frozenset(rule for rule, entry in entries.items() if not entry.value),
        params={rule: entry.params for rule, entry in entries.items() if entry.value and entry.params},
    )
