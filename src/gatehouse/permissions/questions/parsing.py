"""Parse what a question is about: a rule or role, in a scope, as requests name it."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.fields import printable
from gatehouse.permissions.documents.records import RESOURCE_IDS
from gatehouse.permissions.documents.trees import MAX_PATH_SEGMENTS, SEGMENT
from gatehouse.permissions.errors import Malformed, ProjectNotFound
from gatehouse.permissions.evaluation.shapes import RulePrefix
from gatehouse.permissions.model.facts import Structure
from gatehouse.permissions.model.rules import PROJECT_ACCESS, ROOT, ResourceKind, Rule, RuleSection, Scope
from gatehouse.permissions.store import ProjectStore

MAX_RULE_LENGTH: Final = 1_024
PREFIX: Final = re.compile(r"[A-Za-z0-9_.-]*", re.ASCII)


class ResourceDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kind: str
    id: object


class RuleReference(msgspec.Struct, frozen=True):
    """A rule as the request names it; without a section it is in the section that has it (R5)."""

    text: str
    rules: tuple[Rule, ...]

    def resolve(self, known: Iterable[Rule]) -> Rule:
        """The referenced rule; an unknown path counts as private."""
        among = frozenset(known)
        return next((rule for rule in self.rules if rule in among), self.rules[0])


class ScopeReference(msgspec.Struct, frozen=True, kw_only=True):
    """A scope as the request names it: its project is an id or an alias."""

    scope: Scope

    def resolve(self, structure: Structure) -> Scope:
        """Return the scope with the project's id, if the structure contains the project."""
        name = self.scope.project_id
        if not name or name in structure.projects:
            return self.scope
        project_id = structure.derived_cache.get_or_make(project_ids_by_alias, structure).get(name)
        return self.scope if project_id is None else Scope(project_id, self.scope.kind, self.scope.resource_id)


def project_ids_by_alias(structure: Structure) -> Mapping[str, str]:
    """Made once for all questions of a request."""
    found: dict[str, str] = {}
    for project_id, model in structure.projects.items():
        for alias in model.project.aliases:
            found.setdefault(alias, project_id)
    return found


def target_user_id(named: str | UnsetType, own: str) -> str:
    """Return the named user; by default the caller (R6)."""
    return own if named is UNSET else grammar.check_user_id(named, "data.user_id")


def read_rule(text: object, place: str) -> RuleReference:
    """`user.kick`, or with its section in front; a first segment that names a section is always that."""
    if not isinstance(text, str) or len(text) > MAX_RULE_LENGTH:
        raise Malformed(f"{place}: must be the name of a rule").on_screen("rule_name")
    head, dot, rest = text.partition(".")
    sections = [section for section in RuleSection if dot and section.value == head]
    path = rest if sections else text
    segments = path.split(".")
    if (
        len(segments) > MAX_PATH_SEGMENTS
        or segments[0] == PROJECT_ACCESS
        or not all(map(SEGMENT.fullmatch, segments))
    ):
        raise Malformed(f"{place}: {printable(text)} is not a valid rule name").on_screen(
            "rule_invalid", text=printable(text)
        )
    return RuleReference(text, tuple(Rule(section, path) for section in sections or RuleSection))


def read_prefix(text: str, place: str) -> RulePrefix:
    """`public_data`, `private_data.user.` or `user.ki`; a first segment that names a section is always that."""
    head, _, rest = text.partition(".")
    section = next((known_section for known_section in RuleSection if known_section.value == head), None)
    path = text if section is None else rest
    if len(text) > MAX_RULE_LENGTH or not PREFIX.fullmatch(path):
        raise Malformed(f"{place}: {printable(text)} is not a valid rule prefix").on_screen(
            "prefix_invalid", text=printable(text)
        )
    return RulePrefix(section, path)


def searchable_project_name(text: str) -> str:
    """A name to look up: an invalid one is an unknown project, never the root (R5)."""
    return text if grammar.PROJECT_ID.fullmatch(text) else printable(text) or ascii(text)


def read_scope(project: str | None, resource: ResourceDraft | None, place: str) -> ScopeReference:
    if project is None:
        if resource is not None:
            raise Malformed(f"{place}.project_id: required for a resource")
        return ScopeReference(scope=ROOT)
    project_id = searchable_project_name(project)
    if resource is None:
        return ScopeReference(scope=Scope(project_id))
    if resource.kind not in set(ResourceKind):
        raise Malformed(f"{place}.resource.kind: must be one of {', '.join(ResourceKind)}").on_screen(
            "one_of", names=", ".join(ResourceKind)
        )
    kind = ResourceKind(resource.kind)
    return ScopeReference(scope=Scope(project_id, kind, RESOURCE_IDS[kind](resource.id, f"{place}.resource.id")))


async def find_project_id(projects: ProjectStore, name: str, *, default: str | None) -> str:
    """The id of a project, by id or alias; if there is none, `default`, or ProjectNotFound without one."""
    try:
        return (await projects.project(name)).project.project_id
    except ProjectNotFound:
        if default is None:
            raise
        return default
