"""An application's roles and a project's grants in the form that decisions are made from, made once for each.

What is kept belongs to one object and to no other: whatever is read anew from the database is compiled anew.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Final, Generic, TypeVar

from gatehouse.permissions.documents.rules import leaves, meta_entries, split_params
from gatehouse.permissions.evaluation.matching import Handle, Matcher, group_handles, handles_for
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel, Structure
from gatehouse.permissions.model.project import GroupGrant
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.rule import Entry, Rule

S = TypeVar("S")
T = TypeVar("T")

DEFAULT_KEY: Final = "default"  # a role of this name is a default role whatever it says (interface §2.7)
MODELS_MOST: Final = 1_000
PROJECTS_MOST: Final = 10_000
STRUCTURES_MOST: Final = 8


@dataclass(frozen=True, kw_only=True)
class Says:
    """What one role, schema or record says about rules."""

    yes: frozenset[Rule] = frozenset()
    no: frozenset[Rule] = frozenset()
    params: Mapping[Rule, tuple[str, ...]] = field(default_factory=dict)  # only of those it says yes to

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """What it says yes to in words and in order, written once for everybody who holds the role."""
        return tuple(sorted(map(str, self.yes)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRole:
    role: Role
    says: Says


class CompiledModel:
    def __init__(self, model: ApplicationModel) -> None:
        same: dict[Rule, Rule] = {}  # equal rules become one object, so that sets need not compare them
        known = leaves(model.schema.private_data, model.schema.public_data)
        same.update(zip(known, known, strict=True))
        self.schema = Says(
            yes=frozenset(rule for rule, leaf in known.items() if leaf.value),
            no=frozenset(rule for rule, leaf in known.items() if not leaf.value),
        )
        self.known: frozenset[Rule] = frozenset(known)
        self.looks_at_address = any(
            role.condition is not None and role.condition.looks_at_address for role in model.roles.values()
        )
        self.roles = {key: _compiled(role, same) for key, role in sorted(model.roles.items())}
        self.default_roles = tuple(one for one in self.roles.values() if is_default(one.role))
        self.conditional = Matcher(
            (key, handles_for(one.role.condition.test))
            for key, one in self.roles.items()
            if one.role.condition is not None and one.role.condition_mode is ConditionMode.GRANT
        )

    @cached_property
    def named(self) -> frozenset[Rule]:
        """Rules of the schema, and of every role."""
        return self.known.union(*(role.says.yes | role.says.no for role in self.roles.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledGrants:
    """What one project gives and takes away, by group, of one application's roles."""

    by_group: Mapping[str, tuple[GroupGrant, ...]]
    groups: Matcher[str]


class CompiledProject:
    def __init__(self, model: ProjectModel) -> None:
        self.model = model
        self._grants: dict[int, CompiledGrants] = {}

    def grants(self, application_id: int) -> CompiledGrants:
        if application_id not in self._grants:
            self._grants[application_id] = self._compile(application_id)
        return self._grants[application_id]

    @cached_property
    def allowed_domains(self) -> frozenset[str]:
        return frozenset(name.lower() for name in self.model.project.settings.allowed_domains)

    @cached_property
    def allow(self) -> Matcher[str]:
        return self._matcher(self.model.project.allow)

    @cached_property
    def disallow(self) -> Matcher[str]:
        return self._matcher(self.model.project.disallow)

    def _compile(self, application_id: int) -> CompiledGrants:
        by_group: dict[str, tuple[GroupGrant, ...]] = {}
        for grant in self.model.project.settings.services.get(application_id, ()):
            by_group[grant.group_id] = (*by_group.get(grant.group_id, ()), grant)
        return CompiledGrants(by_group=by_group, groups=self._matcher(by_group))

    def _matcher(self, group_ids: Iterable[str]) -> Matcher[str]:
        """A group that is not the project's own has no members here."""
        own = self.model.groups
        return Matcher((group_id, group_handles(own[group_id])) for group_id in group_ids if group_id in own)


class CompiledStructure:
    def __init__(self, structure: Structure) -> None:
        self._structure = structure
        self._connecting: dict[int, Matcher[str]] = {}

    def project(self, project_id: str) -> CompiledProject | None:
        model = self._structure.projects.get(project_id)
        return None if model is None else _projects.of(model)

    def connecting(self, application_id: int) -> Matcher[str]:
        """Ids of the projects in which somebody may be given roles of the application."""
        if application_id not in self._connecting:
            projects = self._structure.connecting.get(application_id, ())
            self._connecting[application_id] = Matcher((one, self._reach(one, application_id)) for one in projects)
        return self._connecting[application_id]

    def _reach(self, project_id: str, application_id: int) -> Iterable[Handle]:
        project = self.project(project_id)
        return () if project is None else project.grants(application_id).groups.handles


class Kept(Generic[S, T]):
    """The compiled form of the objects seen last; an object is held, so its id is nobody else's."""

    def __init__(self, make: Callable[[S], T], most: int) -> None:
        self._make = make
        self._most = most
        self._lock = Lock()
        self._kept: dict[tuple[int, ...], tuple[S, T]] = {}

    def of(self, source: S, *parts: object) -> T:
        """`parts`: what the form is made from, when the source itself is often made anew around them."""
        key = tuple(id(part) for part in parts or (source,))
        found = self._kept.get(key)
        if found is not None:
            return found[1]
        made = self._make(source)
        with self._lock:
            if len(self._kept) >= self._most:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = (source, made)
        return made


_models: Final[Kept[ApplicationModel, CompiledModel]] = Kept(CompiledModel, MODELS_MOST)
_projects: Final[Kept[ProjectModel, CompiledProject]] = Kept(CompiledProject, PROJECTS_MOST)
_structures: Final[Kept[Structure, CompiledStructure]] = Kept(CompiledStructure, STRUCTURES_MOST)


def compiled_model(model: ApplicationModel) -> CompiledModel:
    return _models.of(model, model.schema, model.roles)


def compiled_structure(structure: Structure) -> CompiledStructure:
    return _structures.of(structure)


def says(entries: Mapping[Rule, Entry], appended: tuple[str, ...] = ()) -> Says:
    """`appended`: a role's own params, which follow those of each of its rules (interface §2.7)."""
    return Says(
        yes=frozenset(rule for rule, entry in entries.items() if entry.value),
        no=frozenset(rule for rule, entry in entries.items() if not entry.value),
        params={
            rule: entry.params + appended
            for rule, entry in entries.items()
            if entry.value and (entry.params or appended)
        },
    )


def is_default(role: Role) -> bool:
    return role.default or role.key == DEFAULT_KEY


def _compiled(role: Role, same: dict[Rule, Rule]) -> CompiledRole:
    entries = {same.setdefault(rule, rule): entry for rule, entry in meta_entries(role.meta).items()}
    return CompiledRole(role=role, says=says(entries, split_params(role.params)))
