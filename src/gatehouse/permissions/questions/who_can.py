"""Who can do what, side by side: many people by several rules, each cell with its way and its end.

Candidates are found by index, a page at a time, as `members` does it for one rule.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from gatehouse.kernel.background import HEAVY, run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Unavailable
from gatehouse.permissions.evaluation.effective import ScopeHeld, evaluate
from gatehouse.permissions.evaluation.gathering import SourceKind
from gatehouse.permissions.evaluation.places import asked_places
from gatehouse.permissions.model.crowd import Candidates, Crowd, Outline
from gatehouse.permissions.model.facts import ApplicationModel, Facts
from gatehouse.permissions.model.rule import Rule
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.questions.candidates import holding_rule, joined, nobody
from gatehouse.permissions.questions.pieces import judged, person_weight
from gatehouse.permissions.store import CrowdStore

EXAMINED_MOST: Final = 5_000  # candidates of one page
GROWTH: Final = 4  # each look reads so many more than the one before, when that found too few
LOOK_MOST: Final = 1_000
TRIES: Final = 20
CELL_WEIGHT: Final = 20


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


class WhoCan:
    def __init__(self, *, crowds: CrowdStore, clock: Clock) -> None:
        self._crowds = crowds
        self._clock = clock

    async def page(self, known: ApplicationModel, ask: MatrixAsk) -> Matrix:
        """It may be short, and still be followed by another. Whoever may ask was decided before.

        `known`: the application as it was read already; it is not compiled again while it is the same.
        """
        page = _Page(after=ask.after)
        look = ask.limit + 1
        while page.after is not None and len(page.rows) < ask.limit and page.examined < EXAMINED_MOST:
            crowd = await self._crowd(known, ask, page.after, look)
            judge = partial(row_of, crowd.outline, ask, now=self._clock.now())
            async for facts, row in judged(crowd.people, judge, partial(row_weight, ask)):
                if row.cells or ask.with_nothing:
                    if len(page.rows) == ask.limit:
                        break
                    page.rows.append(row)
                page.after = facts.subject.user_id
                page.examined += 1
            else:
                page.after = crowd.last if crowd.more else None
            look = min(look * GROWTH, LOOK_MOST)
        return Matrix(rows=page.rows, after=page.after)

    async def _crowd(self, known: ApplicationModel, ask: MatrixAsk, after: str, limit: int) -> Crowd:
        """Read beside the very outline that tells who the candidates are."""
        projects = frozenset({ask.scope.project_id}) - {""}
        for _ in range(TRIES):
            outline = await self._crowds.outline(known.application.application_id, projects, known=known)
            among = await run_off_loop(HEAVY, candidates, outline, ask)
            crowd = await self._crowds.crowd(among, projects, after=after, limit=limit, known=outline.model)
            if crowd.outline.versions == outline.versions:
                return crowd
        raise Unavailable("the permission model changes too fast to be read")


def candidates(outline: Outline, ask: MatrixAsk) -> Candidates:
    found = nobody(outline)
    if ask.people is not None:
        return replace(found, user_ids=ask.people)
    application_id = outline.model.application.application_id
    for rule in ask.rules:
        places = asked_places(outline.structure, application_id, ask.scope, rule)
        found = joined(found, holding_rule(outline, places, rule))
    return found


def row_weight(ask: MatrixAsk, facts: Facts) -> int:
    return person_weight(facts) + CELL_WEIGHT * len(ask.rules)


def row_of(outline: Outline, ask: MatrixAsk, facts: Facts, *, now: int) -> PersonRow:
    held = evaluate(outline.model, facts, outline.structure, now=now, address=None)
    asked = frozenset(ask.rules)
    lefts: dict[Scope, Mapping[Rule, int]] = {}
    cells = {}
    for rule in ask.rules:
        where = list(held.holding(outline.structure, ask.scope, rule))
        if where:
            for place in where:
                if place not in lefts:
                    lefts[place] = held.rules(place).lefts(asked, now)
            ends = [lefts[place].get(rule, 0) for place in where]
            kinds = frozenset(kind for place in where for kind in deciding_kinds(held.rules(place), rule))
            cells[rule] = Cell(until=0 if 0 in ends else now + max(ends), kinds=kinds)
    return PersonRow(user_id=facts.subject.user_id, cells=cells)


def deciding_kinds(held: ScopeHeld, rule: Rule) -> Iterator[SourceKind]:
    """Where a rule that is held there comes from: in the highest tier that speaks of it all say yes."""
    for tier in reversed(held.gathered.tiers):
        speaking = [voice.source.kind for voice in tier if rule in voice.says.yes]
        if speaking:
            yield from speaking
            return
