"""A matrix of people by rules, each cell with its sources and its end.

Candidates are found by index, a page at a time, as `members` does it for one rule.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from gatehouse.kernel.clock import Clock
from gatehouse.permissions.evaluation.contributions import ContributionSource, SourceKind
from gatehouse.permissions.evaluation.effective import ScopePermissions, evaluate, existing_lookup_scopes
from gatehouse.permissions.model.candidates import ApplicationSnapshot, CandidateFilter
from gatehouse.permissions.model.facts import ApplicationModel, Facts
from gatehouse.permissions.model.rules import Rule, Scope
from gatehouse.permissions.questions.batches import judge_in_batches, person_weight
from gatehouse.permissions.questions.candidates import (
    candidates_holding_rule,
    load_candidate_page,
    no_candidates,
    union,
)
from gatehouse.permissions.store import CandidateStore

MAX_EXAMINED: Final = 5_000  # candidates of one page
PAGE_GROWTH: Final = 4  # the factor by which pages grow when too few people are found
MAX_PAGE_SIZE: Final = 1_000
CELL_WEIGHT: Final = 20


class HolderCell(Struct, frozen=True, kw_only=True):
    """A rule that a person holds."""

    until: int  # Unix seconds, 0 for no end
    kinds: frozenset[SourceKind]
    roles: tuple[str, ...] = ()  # names of the roles that decide

    @property
    def assigned_role(self) -> str:
        """The role whose removal takes the rule away; empty if it takes more than that."""
        is_one = len(self.roles) == 1 and self.kinds == {SourceKind.ASSIGNED_ROLE}
        return self.roles[0] if is_one else ""


class HolderRow(Struct, frozen=True, kw_only=True):
    user_id: str
    cells: Mapping[Rule, HolderCell]


class HolderMatrixQuery(Struct, frozen=True, kw_only=True):
    rules: tuple[Rule, ...]
    scope: Scope
    after: str = ""
    limit: int
    people: frozenset[str] | None = None  # only these people; otherwise everyone with one of the rules
    include_without_rules: bool = False  # these people, even if they have none of the rules


class HolderMatrix(Struct, frozen=True, kw_only=True):
    rows: Sequence[HolderRow]
    after: str | None  # where to go on; None when these were all


class _MatrixPage(Struct):
    rows: list[HolderRow] = field(default_factory=list)
    examined: int = 0
    after: str | None = ""


class WhoCan(Struct, kw_only=True, eq=False):
    candidate_store: CandidateStore
    clock: Clock

    async def page(self, known: ApplicationModel, query: HolderMatrixQuery) -> HolderMatrix:
        """A page of rows; a short page may be followed by another. The caller has checked who may ask.

        `known`: the application as it was read before; it is not compiled again while it is unchanged.
        """
        page = _MatrixPage(after=query.after)
        size = query.limit + 1
        while page.after is not None and len(page.rows) < query.limit and page.examined < MAX_EXAMINED:
            candidates = await load_candidate_page(
                self.candidate_store,
                known.application.application_id,
                query.scope.project_id,
                partial(matrix_candidates, query=query),
                after=page.after,
                limit=size,
                known=known,
            )
            judge = partial(row_of, candidates.snapshot, query, now=self.clock.now())
            async for facts, row in judge_in_batches(candidates.people, judge, partial(row_weight, query)):
                if row.cells or query.include_without_rules:
                    if len(page.rows) == query.limit:
                        break
                    page.rows.append(row)
                page.after = facts.subject.user_id
                page.examined += 1
            else:
                page.after = candidates.last if candidates.more else None
            size = min(size * PAGE_GROWTH, MAX_PAGE_SIZE)
        return HolderMatrix(rows=page.rows, after=page.after)


def matrix_candidates(snapshot: ApplicationSnapshot, query: HolderMatrixQuery) -> CandidateFilter:
    candidates = no_candidates(snapshot)
    if query.people is not None:
        return replace(candidates, user_ids=query.people)
    application_id = snapshot.model.application.application_id
    for rule in query.rules:
        holding_scopes = existing_lookup_scopes(snapshot.structure, application_id, query.scope, rule)
        candidates = union(candidates, candidates_holding_rule(snapshot, holding_scopes, rule))
    return candidates


def row_weight(query: HolderMatrixQuery, facts: Facts) -> int:
    return person_weight(facts) + CELL_WEIGHT * len(query.rules)


def row_of(snapshot: ApplicationSnapshot, query: HolderMatrixQuery, facts: Facts, *, now: int) -> HolderRow:
    effective = evaluate(snapshot.model, facts, snapshot.structure, now=now, address=None)
    asked = frozenset(query.rules)
    lefts: dict[Scope, Mapping[Rule, int]] = {}
    cells = {}
    for rule in query.rules:
        where = list(effective.scopes_holding(snapshot.structure, query.scope, rule))
        if where:
            for holding_scope in where:
                if holding_scope not in lefts:
                    lefts[holding_scope] = effective.rules(holding_scope).seconds_left(asked, now)
            ends = [lefts[holding_scope].get(rule, 0) for holding_scope in where]
            sources = [
                source for holding_scope in where for source in deciding_sources(effective.rules(holding_scope), rule)
            ]
            cells[rule] = HolderCell(
                until=0 if 0 in ends else now + max(ends),
                kinds=frozenset(source.kind for source in sources),
                roles=tuple(dict.fromkeys(source.role.name for source in sources if source.role)),
            )
    return HolderRow(user_id=facts.subject.user_id, cells=cells)


def deciding_sources(permissions: ScopePermissions, rule: Rule) -> Iterator[ContributionSource]:
    """The sources of a held rule: all contributions of the highest tier that allow it."""
    for tier in reversed(permissions.contributions.tiers):
        sources = [contribution.source for contribution in tier if rule in contribution.verdicts.yes]
        if sources:
            yield from sources
            return
