"""Brings together what a decision is made from, all of one moment.

Facts are read for every request and name the versions of everything else. What is kept here under exactly those
versions is true; anything newer that had to be loaded sends us back to read the facts again. So a right that was
taken away never comes back through a cache, and never in the shape of old facts beside a new grant
(docs/decisions/0013-nothing-decided-from-memory.md).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from cachetools import LRUCache

from gatehouse.kernel.addresses import Address
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Unavailable
from gatehouse.permissions.evaluation.compiled import compiled_model
from gatehouse.permissions.evaluation.effective import Effective, evaluate
from gatehouse.permissions.model.facts import ApplicationModel, ApplicationState, Facts, ProjectModel, Structure
from gatehouse.permissions.store import PermissionStore

TRIES: Final = 20  # each is lost only to an administrator who saves in that very moment
EFFECTIVE_MOST: Final = 10_000
MODELS_MOST: Final = 1_000
CASES_MOST: Final = 1_000
KNOWN_MOST: Final = 16  # of one case: by application, and by address where a condition asks for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One person before the bench: his facts, and the models and structure they were read beside."""

    facts: Facts
    models: Mapping[int, ApplicationModel]
    structure: Structure
    known: dict[tuple[int, Address | None], Effective] = field(default_factory=dict, compare=False, repr=False)


class Reading:
    def __init__(self, *, store: PermissionStore, clock: Clock, cached: bool = True) -> None:
        self._store = store
        self._clock = clock
        self._cached = cached
        self._structure = KnownStructure(-1)
        self._models: LRUCache[ApplicationState, ApplicationModel] = LRUCache(MODELS_MOST)
        self._cases: dict[int, Case] = {}
        self._effective: LRUCache[tuple[object, ...], Effective] = LRUCache(EFFECTIVE_MOST)

    async def facts(self, user_id: str, application_ids: Collection[int]) -> Facts | None:
        return await self._store.facts(user_id, application_ids)

    async def case(self, facts: Facts, *, projects: Collection[str] = ()) -> Case:
        """What these facts are to be judged with; they are read again when something changed meanwhile.

        `projects`: ids of more that the structure is to tell about.
        """
        known = self._cases.get(id(facts)) if self._cached else None
        if known is not None and known.facts is facts and not projects:  # the same facts: nothing was written since
            return known
        if len(self._cases) >= CASES_MOST:
            self._cases.clear()
        self._cases[id(facts)] = case = await self._new_case(facts, projects)
        return case

    async def _new_case(self, facts: Facts, projects: Collection[str]) -> Case:
        wanted = frozenset(facts.records)
        for _ in range(TRIES):
            models = await self._models_of(facts)
            structure = await self._structure_of(facts, projects)
            if models is not None and structure is not None:
                return Case(facts=facts, models=models, structure=structure)
            again = await self._store.facts(facts.subject.user_id, wanted)
            if again is None:
                break
            facts = again
        raise Unavailable("the permission model changes faster than it can be read")

    def effective(self, case: Case, application_id: int, address: Address | None) -> Effective:
        """What the person holds in one of the applications of the case."""
        now = self._clock.now()
        held = case.known.get((application_id, address))
        if held is None or 0 < held.until <= now:
            if len(case.known) >= KNOWN_MOST:
                case.known.clear()
            held = case.known[application_id, address] = self._evaluated(case, application_id, address, now)
        return held

    def _evaluated(self, case: Case, application_id: int, address: Address | None, now: int) -> Effective:
        facts, model = case.facts, case.models[application_id]
        seen = address if compiled_model(model).looks_at_address else None
        key = (
            *(facts.applications[application_id], facts.structure),
            *(
                facts.subject,
                facts.records[application_id].version,
                facts.groups,
                frozenset(facts.owns.items()),
                seen,
            ),
        )
        known = self._effective.get(key) if self._cached else None
        if known is None or 0 < known.until <= now:
            known = evaluate(model, facts, case.structure, now=now, address=seen)
            self._effective[key] = known
        return known

    async def _models_of(self, facts: Facts) -> Mapping[int, ApplicationModel] | None:
        states = facts.applications
        found = {number: self._models.get(state) for number, state in states.items()} if self._cached else {}
        missing = [number for number in states if found.get(number) is None]
        if missing:
            loaded = await self._store.application_models(missing)
            if any(state_of(model) != states[number] for number, model in loaded.items()):
                return None
            found |= loaded
            self._models.update({states[number]: model for number, model in loaded.items()})
        return {number: model for number, model in found.items() if model is not None}

    async def _structure_of(self, facts: Facts, also: Collection[str]) -> Structure | None:
        if self._structure.version != facts.structure or not self._cached:
            self._structure = KnownStructure(facts.structure)
        known = self._structure
        projects, applications = known.lacking({*facts.projects, *also}, facts.applications)
        if projects or applications:
            loaded = await self._store.structure(projects, applications)
            if loaded.version != facts.structure:
                return None
            known.learn(loaded, projects)
        return known.structure


class KnownStructure:
    """The projects and connections of one version that somebody asked for so far."""

    def __init__(self, version: int) -> None:
        self.version = version
        self._projects: dict[str, ProjectModel] = {}
        self._connecting: dict[int, tuple[str, ...]] = {}
        self._absent: set[str] = set()
        self.structure = Structure(version=version, projects=self._projects, connecting=self._connecting)

    def lacking(self, projects: Collection[str], applications: Collection[int]) -> tuple[list[str], list[int]]:
        return (
            [one for one in projects if one not in self._projects and one not in self._absent],
            [one for one in applications if one not in self._connecting],
        )

    def learn(self, loaded: Structure, asked_for: Collection[str]) -> None:
        self._projects.update(loaded.projects)
        self._connecting.update(loaded.connecting)
        self._absent.update(set(asked_for) - loaded.projects.keys())
        self.structure = Structure(
            version=self.version, projects=dict(self._projects), connecting=dict(self._connecting)
        )


def state_of(model: ApplicationModel) -> ApplicationState:
    application = model.application
    return ApplicationState(
        application_id=application.application_id,
        project_id=application.project_id,
        removed=application.removed,
        version=application.version,
        schema_version=model.schema.version,
    )
