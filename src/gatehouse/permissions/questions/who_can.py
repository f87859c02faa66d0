"""Who can do what, side by side: many people by several rules, each cell with its way and its end.

Candidates are found by index, a page at a time, as `members` does it for one rule.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Unavailable
from gatehouse.permissions.evaluation.effective import evaluate
from gatehouse.permissions.evaluation.gathering import SourceKind, situation
from gatehouse.permissions.evaluation.places import asked_places
from gatehouse.permissions.evaluation.reading import state_of
from gatehouse.permissions.model.crowd import Candidates, Crowd, Outline
from gatehouse.permissions.model.facts import ApplicationModel, Facts
from gatehouse.permissions.model.rule import Rule
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.questions.candidates import holding_rule, joined, nobody
from gatehouse.permissions.questions.members import ways_to_rule
from gatehouse.permissions.store import CrowdStore

EXAMINED_MOST: Final = 5_000  # candidates of one page
GROWTH: Final = 4  # each look reads so many more than the one before, when that found too few
LOOK_MOST: Final = 1_000
TRIES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A rule that somebody holds."""

    until: int  # Unix seconds, 0 for no end
    kinds: frozenset[SourceKind]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRow:
    user_id: str
    cells: Mapping[Rule, Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixAsk:
    rules: tuple[Rule, ...]
    scope: Scope
    after: str = ""
    limit: int
    people: frozenset[str] | None = None  # only these; else whoever has one of the rules
    with_nothing: bool = False  # these, though they have none of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    rows: Sequence[PersonRow]
    after: str | None  # where to go on; None when these were all


@dataclass(slots=True)
class _Page:
    rows: list[PersonRow] = field(default_factory=list)
    examined: int = 0
    after: str | None = ""
    model: ApplicationModel | None = None  # which is compiled already

    def compiled(self, outline: Outline) -> Outline:
        """With the model that was read first, for as long as it is the same one."""
        if self.model is None or state_of(self.model) != state_of(outline.model):
            self.model = outline.model
        return replace(outline, model=self.model)


class WhoCan:
    def __init__(self, *, crowds: CrowdStore, clock: Clock) -> None:
        self._crowds = crowds
        self._clock = clock

    async def page(self, application_id: int, ask: MatrixAsk) -> Matrix:
        """It may be short, and still be followed by another. Whoever may ask was decided before."""
        page = _Page(after=ask.after)
        look = ask.limit + 1
        while page.after is not None and len(page.rows) < ask.limit and page.examined < EXAMINED_MOST:
            crowd = await self._crowd(application_id, ask, page, look)
            found = await asyncio.to_thread(rows_among, crowd, ask, self._clock.now())
            room = ask.limit - len(page.rows)
            page.rows += found[:room]
            page.examined += len(crowd.people)
            if len(found) > room:
                page.after = page.rows[-1].user_id
            else:
                page.after = crowd.last if crowd.more else None
            look = min(look * GROWTH, LOOK_MOST)
        return Matrix(rows=page.rows, after=page.after)

    async def _crowd(self, application_id: int, ask: MatrixAsk, page: _Page, limit: int) -> Crowd:
        """Read beside the very outline that tells who the candidates are."""
        projects = frozenset({ask.scope.project_id}) - {""}
        for _ in range(TRIES):
            outline = page.compiled(await self._crowds.outline(application_id, projects))
            crowd = await self._crowds.crowd(candidates(outline, ask), projects, after=page.after or "", limit=limit)
            if crowd.outline.versions == outline.versions:
                return replace(crowd, outline=page.compiled(crowd.outline))
        raise Unavailable("the permission model changes faster than it can be read")


def candidates(outline: Outline, ask: MatrixAsk) -> Candidates:
    found = nobody(outline)
    if ask.people is not None:
        return replace(found, user_ids=ask.people)
    application_id = outline.model.application.application_id
    for rule in ask.rules:
        places = asked_places(outline.structure, application_id, ask.scope, rule)
        found = joined(found, holding_rule(outline, places, rule))
    return found


def rows_among(crowd: Crowd, ask: MatrixAsk, now: int) -> list[PersonRow]:
    found = (row_of(crowd.outline, facts, ask, now) for facts in crowd.people)
    return [row for row in found if row.cells or ask.with_nothing]


def row_of(outline: Outline, facts: Facts, ask: MatrixAsk, now: int) -> PersonRow:
    held = evaluate(outline.model, facts, outline.structure, now=now, address=None)
    places = {rule: list(held.holding(outline.structure, ask.scope, rule)) for rule in ask.rules}
    this = situation(outline.model, facts, outline.structure, now=now, address=None)
    cells = {}
    for rule, where in places.items():
        if where:
            lefts = [held.rules(place)[rule].left(now) for place in where]
            kinds = frozenset(way.kind for place in where for way in ways_to_rule(this, place, rule))
            cells[rule] = Cell(until=0 if 0 in lefts else now + max(lefts), kinds=kinds)
    return PersonRow(user_id=facts.subject.user_id, cells=cells)
