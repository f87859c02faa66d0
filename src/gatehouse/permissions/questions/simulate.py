"""`simulate`: who would gain and who would lose what by a change, before it is saved (R6).

The save itself is carried out and undone, so what it refuses is refused here, and what it makes is what is
compared. People are then evaluated before and after, away from the event loop.
"""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Final

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Unavailable
from gatehouse.permissions.evaluation.compiled import compiled_model
from gatehouse.permissions.evaluation.effective import Effective, evaluate
from gatehouse.permissions.evaluation.shapes import DEFAULT_OPTIONS, PROJECT_ACCESS, Shape, render
from gatehouse.permissions.model.crowd import Candidates, Crowd, Outline, Rehearsed
from gatehouse.permissions.model.facts import Facts, Structure
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.questions.candidates import in_project, joined, nobody, touched_by_roles
from gatehouse.permissions.questions.proposals import AnyProposal, Proposer, Reach, Rehearsals
from gatehouse.permissions.store import CrowdStore

CANDIDATES_MOST: Final = 10_000  # of one answer
PAGE: Final = 1_000
TRIES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What the change does to one person in the application."""

    user_id: str
    gains: tuple[str, ...]  # as the shape `list` writes rules
    loses: tuple[str, ...]
    gains_roles: tuple[str, ...]
    loses_roles: tuple[str, ...]

    @property
    def is_none(self) -> bool:
        return not (self.gains or self.loses or self.gains_roles or self.loses_roles)


@dataclass(slots=True, kw_only=True)
class Forecast:
    effects: list[Effect] = field(default_factory=list)
    examined: int = 0
    after: str | None = None  # there may be more people beyond this one


class Simulation:
    def __init__(self, *, rehearsals: Rehearsals, crowds: CrowdStore, clock: Clock) -> None:
        self._rehearsals = rehearsals
        self._crowds = crowds
        self._clock = clock

    async def run(self, proposal: AnyProposal, by: Proposer, *, after: str, limit: int) -> Forecast:
        """Whoever may ask was decided before; the right of the save is asked for by the save. `limit`: of effects."""
        application_id = by.model.application.application_id
        for _ in range(TRIES):
            reach = await self._rehearsals.reach(proposal, by)
            before = await self._crowds.outline(application_id, reach.projects)
            rehearsed = await self._rehearsals.rehearse(proposal, by, reach)
            forecast = await self._forecast(before, rehearsed, reach, after=after, limit=limit)
            if forecast is not None:
                return forecast
        raise Unavailable("the permission model changes faster than it can be read")

    async def _forecast(
        self, before: Outline, rehearsed: Rehearsed, reach: Reach, *, after: str, limit: int
    ) -> Forecast | None:
        """None when somebody saved something meanwhile."""
        among = concerned(before, rehearsed.outline, reach)
        forecast = Forecast(after=after)
        while forecast.after is not None and forecast.examined < CANDIDATES_MOST and len(forecast.effects) < limit:
            crowd = await self._crowds.crowd(among, reach.projects, after=forecast.after, limit=PAGE)
            if crowd.outline.versions != before.versions:
                return None
            found = await asyncio.to_thread(effects, crowd, rehearsed, self._clock.now())
            room = limit - len(forecast.effects)
            forecast.effects += found[:room]
            forecast.examined += len(crowd.people)
            if len(found) > room:
                forecast.after = forecast.effects[-1].user_id
            else:
                forecast.after = crowd.last if crowd.more else None
        return forecast


def concerned(before: Outline, after: Outline, reach: Reach) -> Candidates:
    """Everybody for whom something may be different."""
    found = replace(nobody(before), user_ids=reach.user_ids)
    if reach.project_id:
        return joined(found, joined(in_project(before, reach.project_id), in_project(after, reach.project_id)))
    if is_same(before, after):
        return found
    keys = changed_roles(before, after)
    found = joined(found, joined(touched_by_roles(before, keys), touched_by_roles(after, keys)))
    defaults = compiled_model(before.model).schema.yes != compiled_model(after.model).schema.yes
    return replace(found, everyone=found.everyone or defaults)


def is_same(before: Outline, after: Outline) -> bool:
    """Whether the application is as it was: every save of its schema or of a role is a version (R6)."""
    return before.versions[:2] == after.versions[:2]


def changed_roles(before: Outline, after: Outline) -> set[str]:
    old, new = before.model.roles, after.model.roles
    return {key for key in old.keys() | new.keys() if as_it_counts(old.get(key)) != as_it_counts(new.get(key))}


def as_it_counts(role: Role | None) -> Role | None:
    return None if role is None else replace(role, version=0, description="", user_limit=0)


def effects(crowd: Crowd, rehearsed: Rehearsed, now: int) -> list[Effect]:
    structure = overlaid(crowd.outline.structure, rehearsed.outline.structure)
    after = crowd.outline if is_same(crowd.outline, rehearsed.outline) else rehearsed.outline  # compiled once
    found = (
        effect(
            facts.subject.user_id,
            evaluate(crowd.outline.model, facts, crowd.outline.structure, now=now, address=None),
            evaluate(after.model, facts_after(facts, rehearsed), structure, now=now, address=None),
            now,
        )
        for facts in crowd.people
    )
    return [one for one in found if not one.is_none]


def effect(user_id: str, before: Effective, after: Effective, now: int) -> Effect:
    gains, loses = difference(before, after, Shape.LIST, now)
    gains_roles, loses_roles = difference(before, after, Shape.ROLES, now)
    return Effect(user_id=user_id, gains=gains, loses=loses, gains_roles=gains_roles, loses_roles=loses_roles)


def difference(
    before: Effective, after: Effective, shape: Shape, now: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    old = set(render(before, shape, DEFAULT_OPTIONS, now))
    new = set(render(after, shape, DEFAULT_OPTIONS, now))
    return tuple(sorted(new - old)), tuple(sorted(old - new))


def inside(forecast: Forecast, project_id: str) -> Forecast:
    """The same for eyes that see no further than one project and what is in it."""
    effects = [effect_inside(one, project_id) for one in forecast.effects]
    return replace(forecast, effects=[one for one in effects if not one.is_none])


def effect_inside(one: Effect, project_id: str) -> Effect:
    """Places are told as the shapes write them (evaluation/shapes.py)."""

    def rules(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text for text in texts if text.startswith(f"{PROJECT_ACCESS}.{project_id}."))

    def roles(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text for text in texts if text.rpartition("/")[0].partition(".")[0] == project_id)

    return Effect(
        user_id=one.user_id,
        gains=rules(one.gains),
        loses=rules(one.loses),
        gains_roles=roles(one.gains_roles),
        loses_roles=roles(one.loses_roles),
    )


def overlaid(before: Structure, after: Structure) -> Structure:
    """All projects of the people at hand, those that the change was about as it leaves them."""
    return Structure(
        version=after.version, projects={**before.projects, **after.projects}, connecting=after.connecting
    )


def facts_after(facts: Facts, rehearsed: Rehearsed) -> Facts:
    """What goes from everyone with a role or group is still in it: the models lack it, which comes to the same."""
    return rehearsed.people.get(facts.subject.user_id, facts)
