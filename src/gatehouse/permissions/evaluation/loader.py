"""Load what a decision needs, in one consistent state, and cache what is made from it.

Facts are read for every request and name the versions of everything else. An entry of the cache counts only under
exactly these versions; when something newer had to be loaded, the facts are read again. So a removed right never
comes back through the cache, and old facts are never combined with a new grant
(docs/decisions/0013-nothing-decided-from-memory.md).
"""

import asyncio
import sys
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

from msgspec import Struct

from gatehouse.kernel.addresses import Address
from gatehouse.kernel.background import run_off_loop
from gatehouse.kernel.cache import WeightedCache
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Unavailable
from gatehouse.permissions.evaluation.compiled import compile_fully, is_compiled
from gatehouse.permissions.evaluation.effective import EffectivePermissions, evaluate
from gatehouse.permissions.evaluation.shapes import Shape, ShapeOptions, render_shape, render_work
from gatehouse.permissions.evaluation.work import record_work
from gatehouse.permissions.model.facts import ApplicationModel, ApplicationState, Facts, ProjectModel, Structure
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.objects import ObjectFacts
from gatehouse.permissions.model.tree_interner import CONDITION_WEIGHT
from gatehouse.permissions.store import PermissionStore

MAX_ATTEMPTS: Final = 20  # each fails only if an administrator saves at the same time
MODEL: Final = "model"  # key in the group of its application
PROJECTS: Final = "projects"  # group
PROJECT_WEIGHT: Final = 4_000  # bytes of a project without groups and services
GROUP_WEIGHT: Final = 2_000  # of a group without conditions
GRANT_WEIGHT: Final = 500
NAME_WEIGHT: Final = 400  # of an id in a list, and in the indexes made from it
EVALUATION_WEIGHT: Final = 1_000  # bytes of the facts it was made from
HEAVY_SHARE: Final = 8  # a project that takes more than this part of the cache is read for each request
CACHE_BYTES: Final = 64 * 2**20  # default of the setting permissions.cache_mb


class EvaluationInput(Struct, frozen=True, kw_only=True):
    """One person's facts, with the applications and projects of the same versions."""

    facts: Facts
    models: Mapping[int, ApplicationModel]
    structure: Structure  # of the projects that concern the person


class CachedModel(Struct, frozen=True):
    state: ApplicationState
    model: ApplicationModel


class CachedEvaluation(Struct, frozen=True):
    basis: tuple[object, ...]  # the versions and facts it was made from
    effective: EffectivePermissions


class CachedList(Struct, frozen=True):
    effective: EffectivePermissions  # what it was rendered from
    entries: tuple[str, ...]


CacheEntry: TypeAlias = CachedModel | CachedEvaluation | CachedList | ProjectModel


class PermissionLoader:
    """Owns the permission cache: models, evaluations and lists by application, and projects.

    An entry is invalid as soon as the facts of a request name other versions; a newer model drops all that was made
    from the older one. Bounded by weight (docs/decisions/0027-caches-bounded-by-weight.md).
    """

    def __init__(self, *, store: PermissionStore, clock: Clock, cache_bytes: int = CACHE_BYTES) -> None:
        """`cache_bytes`: 0 to cache nothing."""
        self._store = store
        self._clock = clock
        self._cache: WeightedCache[CacheEntry] = WeightedCache(cache_bytes)
        self._load_locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    @property
    def cache_weight(self) -> int:
        """Estimated bytes of all cached entries."""
        return self._cache.weight

    async def load_facts(self, user_id: str, application_ids: Collection[int]) -> Facts | None:
        return await self._store.facts(user_id, application_ids)

    async def load_input(self, facts: Facts, *, projects: Collection[str] = ()) -> EvaluationInput:
        """The facts with their applications and projects; the facts are read again if these changed meanwhile.

        `projects`: ids of further projects that the structure must contain.
        """
        wanted = frozenset(facts.records)
        for _ in range(MAX_ATTEMPTS):
            if facts.project_versions.keys() >= {*projects}:
                models = await self._load_models_of(facts)
                structure = await self._load_structure_of(facts)
                if models is not None and structure is not None:
                    return EvaluationInput(facts=facts, models=models, structure=structure)
            again = await self._store.facts(facts.subject.user_id, wanted, projects)
            if again is None:
                break
            facts = again
        raise Unavailable("the permission model changes too fast to be read")

    async def load_input_with_objects(
        self, facts: Facts, application_id: int, keys: Collection[str]
    ) -> tuple[EvaluationInput, ObjectFacts]:
        """The person's facts again, with objects of the application, everything in one state.

        Raises Unavailable, also when the account was deleted meanwhile.
        """
        wanted = frozenset(facts.records)
        for _ in range(MAX_ATTEMPTS):
            found = await self._store.facts_with_objects(facts.subject.user_id, wanted, application_id, keys)
            if found is None:
                break
            models = await self._load_models_of(found[0])
            structure = await self._load_structure_of(found[0])
            if models is not None and structure is not None:
                return EvaluationInput(facts=found[0], models=models, structure=structure), found[1]
        raise Unavailable("the permission model changes too fast to be read")

    async def is_project_live(self, project_id: str, facts: Facts) -> bool:
        """Whether a project that these facts name exists and is not removed."""
        model = (await self.load_input(facts)).structure.projects.get(project_id)
        return model is not None and not model.project.removed

    async def evaluate(
        self, evaluation_input: EvaluationInput, application_id: int, address: Address | None
    ) -> EffectivePermissions:
        """What the person holds in one of the applications of the input; a large one is evaluated off the loop."""
        now, facts, model = self._clock.now(), evaluation_input.facts, evaluation_input.models[application_id]
        compiled = await run_off_loop(0 if is_compiled(model) else model.size, compile_fully, model)
        seen = address if compiled.uses_address else None
        basis = (
            *(facts.applications[application_id], facts.versions_in(application_id), facts.subject),
            *(facts.records[application_id].version, facts.groups, facts.owns),
            tuple(ban for ban in facts.bans if ban.is_active(now)),
        )
        key = (facts.subject.user_id, seen)
        known = self._cache.get(application_id, key)
        if (
            isinstance(known, CachedEvaluation)
            and known.basis == basis
            and not 0 < known.effective.valid_until <= now
        ):
            return known.effective
        work = record_work(facts.records[application_id])
        effective = await run_off_loop(
            work, evaluate, model, facts, evaluation_input.structure, now=now, address=seen
        )
        made = CachedEvaluation(basis, effective)
        if self._is_cached(model):
            handle = self._cache.put(application_id, key, made, facts_weight(facts))
            grown = partial(self._cache.add_weight, handle)
            grown(made.effective.track_weight(grown))
        return made.effective

    async def render_list(
        self, evaluation_input: EvaluationInput, effective: EffectivePermissions, kind: Shape, options: ShapeOptions
    ) -> tuple[str, ...]:
        """`render_shape`, cached with the evaluation it shows; a list with seconds left changes every second."""
        make = partial(render_with_weight, effective, kind, options, self._clock.now())
        work = render_work(effective, kind)
        if options.with_exp and kind is not Shape.ROLES:
            return (await run_off_loop(work, make))[0]
        application_id = effective.application_id
        shape = (kind, options.project_id, options.hide_project_access, options.sections, options.prefix)
        key = (evaluation_input.facts.subject.user_id, shape)
        known = self._cache.get(application_id, key)
        if isinstance(known, CachedList) and known.effective is effective:
            return known.entries
        entries, weight = await run_off_loop(work, make)
        if self._is_cached(evaluation_input.models[application_id]):
            self._cache.put(application_id, key, CachedList(effective, entries), weight)
        return entries

    def _is_cached(self, model: ApplicationModel) -> bool:
        """Whether the model is cached: entries made from another one would keep that in memory."""
        known = self._cache.get(model.application.application_id, MODEL)
        return isinstance(known, CachedModel) and known.model is model

    async def _load_models_of(self, facts: Facts) -> Mapping[int, ApplicationModel] | None:
        states = facts.applications
        models = self._cached_models(states)
        if len(models) < len(states):
            async with AsyncExitStack() as stack:
                for number in sorted(states.keys() - models.keys()):  # concurrent requests load a model once
                    await stack.enter_async_context(self._load_locks.setdefault(number, asyncio.Lock()))
                models = self._cached_models(states)
                loaded = await self._load_models([number for number in states if number not in models])
            if any(state_of(model) != states[number] for number, model in loaded.items()):
                return None
            models |= loaded
        return models

    def _cached_models(self, states: Mapping[int, ApplicationState]) -> dict[int, ApplicationModel]:
        return {number: model for number, state in states.items() if (model := self._cached_model(state)) is not None}

    def _cached_model(self, state: ApplicationState) -> ApplicationModel | None:
        known = self._cache.get(state.application_id, MODEL)
        return known.model if isinstance(known, CachedModel) and known.state == state else None

    async def _load_models(self, missing: Collection[int]) -> Mapping[int, ApplicationModel]:
        loaded = await self._store.application_models(missing) if missing else {}
        for number, model in loaded.items():
            self._cache.drop_group(number)
            self._cache.put(number, MODEL, CachedModel(state_of(model), model), model.weight)
        return loaded

    async def _load_structure_of(self, facts: Facts) -> Structure | None:
        versions = facts.project_versions
        projects = {
            project_id: model
            for project_id, version in versions.items()
            if (model := self._cached_project(project_id, version))
        }
        missing = [project_id for project_id, version in versions.items() if version and project_id not in projects]
        if missing:
            loaded = await self._store.projects(missing)
            for model in loaded.values():
                self._put_project(model)
            projects |= loaded
            if any(
                project_id not in projects or projects[project_id].version != versions[project_id]
                for project_id in missing
            ):
                return None
        return Structure(projects=projects, connecting=facts.granting)

    def _cached_project(self, project_id: str, version: int) -> ProjectModel | None:
        known = self._cache.get(PROJECTS, project_id)
        return known if isinstance(known, ProjectModel) and known.version == version else None

    def _put_project(self, model: ProjectModel) -> None:
        weight = project_weight(model)
        if weight <= self._cache.limit // HEAVY_SHARE:
            self._cache.put(PROJECTS, model.project.project_id, model, weight)


def state_of(model: ApplicationModel) -> ApplicationState:
    application = model.application
    return ApplicationState(
        application_id=application.application_id,
        project_id=application.project_id,
        removed=application.removed,
        version=application.version,
        schema_version=model.schema.version,
    )


def render_with_weight(
    effective: EffectivePermissions, kind: Shape, options: ShapeOptions, now: int
) -> tuple[tuple[str, ...], int]:
    """The list, and its estimated bytes.

    At the root the texts are shared with the compiled model, in projects they are not: half of them are counted.
    """
    entries = render_shape(effective, kind, options, now)
    return entries, sys.getsizeof(entries) + sum(map(sys.getsizeof, entries)) // 2


def facts_weight(facts: Facts) -> int:
    """Estimated bytes of the facts that are cached with an evaluation."""
    who = facts.subject
    return EVALUATION_WEIGHT + NAME_WEIGHT * (
        len(who.tags) + len(who.purchases) + len(facts.groups) + len(facts.owns) + len(facts.project_versions)
    )


def project_weight(model: ProjectModel) -> int:
    """Return the weight of a project; each list of groups has an index over conditions."""
    project, groups = model.project, {key: group_weight(group) for key, group in model.groups.items()}
    grants = [grant for granted in project.settings.services.values() for grant in granted]
    return (
        PROJECT_WEIGHT
        + sum(groups.values())
        + sum(GRANT_WEIGHT + NAME_WEIGHT * len(grant.roles) for grant in grants)
        + sum(groups.get(group_id, 0) for group_id in (*project.allow, *project.disallow))
        + NAME_WEIGHT * (len(model.applications) + len(model.services))
    )


def group_weight(group: Group) -> int:
    conditions = sum(len(str(condition.condition.document)) for condition in group.conditions)
    return GROUP_WEIGHT + len(group.description) + CONDITION_WEIGHT * conditions
