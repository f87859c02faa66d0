"""`members`: who has a rule or a role, by what path, until when (R6)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import msgspec

from gatehouse.kernel.background import HEAVY, run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Unavailable
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed, ProjectNotFound, RoleNotFound
from gatehouse.permissions.evaluation.effective import evaluate
from gatehouse.permissions.evaluation.gathering import (
    Gathered,
    Situation,
    SourceKind,
    gather_below,
    gather_root,
    is_ended,
    is_removed,
    situation,
)
from gatehouse.permissions.evaluation.places import asked_places
from gatehouse.permissions.explanation.contributions import Membership, contributions, membership
from gatehouse.permissions.model.crowd import Candidates, Crowd, Outline
from gatehouse.permissions.model.facts import ApplicationModel, Facts
from gatehouse.permissions.model.rule import End, Rule
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.questions.asked import AskedRule, ResourceDraft, read_rule, read_scope
from gatehouse.permissions.questions.candidates import holding_role, holding_rule, joined
from gatehouse.permissions.questions.pieces import judged
from gatehouse.permissions.store import CrowdStore, ProjectStore

LIMIT_MOST: Final = 1_000
EXAMINED_MOST: Final = 5_000  # candidates of one answer
WAYS_MOST: Final = 10_000  # of all members of one answer together: a few megabytes
FEW: Final = 4  # candidates looked at first, for each member that is wanted
TRIES: Final = 20


class MembersDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rule: str | None = None
    role: str | None = None
    project_id: str | None = None
    resource: ResourceDraft | None = None
    after: str = ""
    limit: int = LIMIT_MOST


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Exactly one of rule and role."""

    rule: AskedRule | None = None
    role: str = ""  # its key
    scope: Scope
    after: str = ""
    limit: int = LIMIT_MOST


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One of the ways by which somebody has it."""

    kind: SourceKind
    scope: Scope
    role: str = ""  # its name
    membership: Membership | None = None
    end: End


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    user_id: str
    until: int  # Unix seconds, 0 for no end
    path: tuple[Way, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    found: Sequence[Member]
    after: str | None  # where to go on; None when that were all


@dataclass(slots=True)
class _Page:
    wanted: Wanted
    found: list[Member] = field(default_factory=list)
    after: str = ""
    examined: int = 0
    ways: int = 0
    is_overfull: bool = False
    more: bool = True

    @property
    def next_size(self) -> int:
        """Most candidates have it: for a few of them a few are looked at first, then as many as at once can be."""
        return LIMIT_MOST if self.examined else min(LIMIT_MOST, FEW * self.wanted.limit)

    @property
    def is_full(self) -> bool:
        enough = len(self.found) >= self.wanted.limit or self.examined >= EXAMINED_MOST
        return enough or self.is_overfull or not self.more

    def add(self, user_id: str, member: Member | None) -> None:
        """Note what is known of the next candidate, unless it is a member for whom there is no room left."""
        if member is not None:
            self.ways += len(member.path)
            self.is_overfull = bool(self.found) and (len(self.found) >= self.wanted.limit or self.ways > WAYS_MOST)
            if self.is_overfull:
                return
            self.found.append(member)
        self.after = user_id
        self.examined += 1


class MemberSearch:
    def __init__(self, *, crowds: CrowdStore, projects: ProjectStore, clock: Clock) -> None:
        self._crowds = crowds
        self._projects = projects
        self._clock = clock

    async def wanted(self, draft: MembersDraft, *, tells: bool) -> Wanted:
        """Raises Malformed. `tells`: whether the caller may hear that there is no such project (ProjectNotFound)."""
        scope = read_scope(draft.project_id, draft.resource, "data").scope
        if (draft.rule is None) == (draft.role is None):
            raise Malformed("data: give either rule or role")
        if not 1 <= draft.limit <= LIMIT_MOST:
            raise Malformed(f"data.limit: must be 1 to {LIMIT_MOST}")
        after = grammar.check_user_id(draft.after, "data.after") if draft.after else ""
        if scope.project_id:
            scope = Scope(await self._project_id(scope.project_id, tells=tells), scope.kind, scope.resource_id)
        if draft.rule is not None:
            rule = read_rule(draft.rule, "data.rule")
            return Wanted(rule=rule, scope=scope, after=after, limit=draft.limit)
        role = grammar.check_role_name(draft.role, "data.role").lower()
        return Wanted(role=role, scope=scope, after=after, limit=draft.limit)

    async def find(self, application_id: int, wanted: Wanted, *, known: ApplicationModel | None = None) -> Members:
        """A page of members; it may be short, and still be followed by another.

        `known`: the application as somebody has read it already; it is not compiled again while it is the same.
        """
        page = _Page(wanted, after=wanted.after)
        while not page.is_full:
            crowd = await self._crowd(application_id, wanted, page, known)
            judge = partial(having_role if wanted.rule is None else having_rule, crowd.outline, wanted)
            async for facts, member in judged(crowd.people, partial(judge, now=self._clock.now())):
                page.add(facts.subject.user_id, member)
                if page.is_overfull:
                    break
            else:
                page.after, page.more = crowd.last, crowd.more
        return Members(found=page.found, after=page.after if page.more else None)

    async def _crowd(self, application_id: int, wanted: Wanted, page: _Page, known: ApplicationModel | None) -> Crowd:
        """Read beside the very outline that tells who the candidates are."""
        projects = frozenset({wanted.scope.project_id}) - {""}
        for _ in range(TRIES):
            outline = await self._crowds.outline(application_id, projects, known=known)
            among = await run_off_loop(HEAVY, candidates, outline, wanted)
            crowd = await self._crowds.crowd(
                among, projects, after=page.after, limit=page.next_size, known=outline.model
            )
            if crowd.outline.versions == outline.versions:
                return crowd
        raise Unavailable("the permission model changes too fast to be read")

    async def _project_id(self, name: str, *, tells: bool) -> str:
        """In one that is not there nobody has anything, and that is all that others hear (checklist PA-13)."""
        try:
            return (await self._projects.project(name)).project.project_id
        except ProjectNotFound:
            if tells:
                raise
            return name


def candidates(outline: Outline, wanted: Wanted) -> Candidates:
    if wanted.rule is None:
        if wanted.role not in outline.model.roles:
            raise RoleNotFound
        return holding_role(outline, wanted.scope, wanted.role)
    application_id = outline.model.application.application_id
    first, *others = (
        holding_rule(outline, asked_places(outline.structure, application_id, wanted.scope, rule), rule)
        for rule in wanted.rule.rules
    )
    for other in others:
        first = joined(first, other)
    return first


def having_rule(outline: Outline, wanted: Wanted, facts: Facts, *, now: int) -> Member | None:
    """By every contribution that decides where the rule is held; in two places it lasts until the later end."""
    held = evaluate(outline.model, facts, outline.structure, now=now, address=None)
    places = [
        (place, rule)
        for rule in (wanted.rule.rules if wanted.rule else ())
        for place in held.holding(outline.structure, wanted.scope, rule)
    ]
    if not places:
        return None
    this = situation(outline.model, facts, outline.structure, now=now, address=None)
    lefts = [held.rules(place)[rule].left(now) for place, rule in places]
    return Member(
        user_id=facts.subject.user_id,
        until=0 if 0 in lefts else now + max(lefts),
        path=tuple(way for place, rule in places for way in ways_to_rule(this, place, rule)),
    )


def ways_to_rule(this: Situation, place: Scope, rule: Rule) -> Iterator[Way]:
    for one in contributions(this, place, rule):
        if one.decides:
            yield Way(kind=one.kind, scope=place, role=one.role, membership=one.membership, end=one.end)


def having_role(outline: Outline, wanted: Wanted, facts: Facts, *, now: int) -> Member | None:
    """Given there, or at the root by default or by its condition; it lasts until the latest end."""
    this = situation(outline.model, facts, outline.structure, now=now, address=None)
    ended = is_removed(outline.model, facts) or is_ended(facts, outline.structure)
    gathered = None if ended else gathered_in(this, wanted.scope)
    if gathered is None:
        return None
    path = tuple(ways_to_role(this, wanted, gathered))
    if not path:
        return None
    return Member(user_id=facts.subject.user_id, until=last_end(path, gathered.closes, now), path=path)


def gathered_in(this: Situation, scope: Scope) -> Gathered | None:
    if scope.is_root:
        return gather_root(this)
    gate = this.gate(scope.project_id)
    return gather_below(this, scope, gate.closes) if gate.is_open else None


def ways_to_role(this: Situation, wanted: Wanted, gathered: Gathered) -> Iterator[Way]:
    for voice in (voice for tier in gathered.tiers for voice in tier):
        source = voice.source
        if source.role is not None and source.role.key == wanted.role:
            through = membership(this, wanted.scope, source.group_id) if source.group_id else None
            yield Way(kind=source.kind, scope=wanted.scope, role=source.role.name, membership=through, end=voice.end)


def last_end(path: Iterable[Way], closes: End, now: int) -> int:
    ends = [way.end.shown(now) for way in path]
    last = 0 if 0 in ends else max(ends)
    shut = closes.shown(now)
    return min((end for end in (last, shut) if end), default=0)
