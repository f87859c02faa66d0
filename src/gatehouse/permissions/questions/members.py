"""`members`: who has a rule or a role, by what path, until when (R6)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct

from gatehouse.kernel.clock import Clock
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed, RoleNotFound
from gatehouse.permissions.evaluation.contributions import (
    EvaluationContext,
    ScopeContributions,
    SourceKind,
    evaluation_context,
    gather_below_root,
    gather_root,
    holds_nothing,
)
from gatehouse.permissions.evaluation.effective import evaluate, existing_lookup_scopes
from gatehouse.permissions.explanation.contributions import Membership, explain_contributions, membership_of
from gatehouse.permissions.model.candidates import ApplicationSnapshot, CandidateFilter
from gatehouse.permissions.model.facts import NO_HOLDINGS, ApplicationModel, Facts, Structure
from gatehouse.permissions.model.rules import End, Rule, Scope
from gatehouse.permissions.questions.batches import judge_in_batches
from gatehouse.permissions.questions.candidates import (
    candidates_holding_role,
    candidates_holding_rule,
    load_candidate_page,
    union,
)
from gatehouse.permissions.questions.parsing import (
    ResourceDraft,
    RuleReference,
    find_project_id,
    read_rule,
    read_scope,
)
from gatehouse.permissions.store import CandidateStore, ProjectStore

MAX_LIMIT: Final = 1_000
MAX_EXAMINED: Final = 5_000  # candidates of one answer
MAX_SOURCES: Final = 10_000  # of all members of one answer together: a few megabytes
FIRST_PAGE_FACTOR: Final = 4  # candidates read first, per requested member


class MembersDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rule: str | None = None
    role: str | None = None
    project_id: str | None = None
    resource: ResourceDraft | None = None
    after: str = ""
    limit: int = MAX_LIMIT


class MemberQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Exactly one of rule and role."""

    rule: RuleReference | None = None
    role: str = ""  # its key
    scope: Scope
    after: str = ""
    limit: int = MAX_LIMIT
    with_idle: bool = False  # of a role: also people who are assigned it there without effect


class GrantSource(msgspec.Struct, frozen=True, kw_only=True):
    """One source by which a person has the rule or role."""

    kind: SourceKind
    scope: Scope
    role: str = ""  # its name
    membership: Membership | None = None
    end: End


class FoundMember(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    until: int  # Unix seconds, 0 for no end
    path: tuple[GrantSource, ...]
    is_idle: bool = False  # assigned without effect: they do not have the role
    is_service_account: bool = False


class MemberResults(msgspec.Struct, frozen=True, kw_only=True):
    members: Sequence[FoundMember]
    idle: Mapping[str, Facts] = msgspec.field(default_factory=dict)  # of people who are, by user ID
    structure: Structure | None = None  # that these were judged by
    after: str | None  # the start of the next page; None at the end


class _MemberPage(msgspec.Struct):
    query: MemberQuery
    found: list[FoundMember] = msgspec.field(default_factory=list)
    idle: dict[str, Facts] = msgspec.field(default_factory=dict)
    structure: Structure | None = None
    after: str = ""
    examined: int = 0
    sources: int = 0
    is_overfull: bool = False
    more: bool = True

    @property
    def next_size(self) -> int:
        """Return the next page size: a small page first, because most candidates match, then the largest."""
        return MAX_LIMIT if self.examined else min(MAX_LIMIT, FIRST_PAGE_FACTOR * self.query.limit)

    @property
    def is_full(self) -> bool:
        enough = len(self.found) >= self.query.limit or self.examined >= MAX_EXAMINED
        return enough or self.is_overfull or not self.more

    def add(self, facts: Facts, member: FoundMember | None) -> None:
        """Add the next candidate, unless it is a member and the page is full."""
        user_id = facts.subject.user_id
        if member is not None:
            self.sources += len(member.path)
            self.is_overfull = bool(self.found) and (
                len(self.found) >= self.query.limit or self.sources > MAX_SOURCES
            )
            if self.is_overfull:
                return
            self.found.append(member)
            if member.is_idle:
                self.idle[user_id] = facts
        self.after = user_id
        self.examined += 1


class MemberSearch(Struct, kw_only=True, eq=False):
    candidate_store: CandidateStore
    projects: ProjectStore
    clock: Clock

    async def read_query(self, draft: MembersDraft, *, may_see_missing: bool) -> MemberQuery:
        """Raises Malformed. `may_see_missing`: whether a missing project raises ProjectNotFound."""
        scope = read_scope(draft.project_id, draft.resource, "data").scope
        if (draft.rule is None) == (draft.role is None):
            raise Malformed("data: give either rule or role").on_screen("rule_or_role")
        if not 1 <= draft.limit <= MAX_LIMIT:
            raise Malformed(f"data.limit: must be 1 to {MAX_LIMIT}")
        after = grammar.check_user_id(draft.after, "data.after") if draft.after else ""
        if scope.project_id:
            # Without that right a missing project looks like one in which no one holds anything (checklist PA-13).
            default = None if may_see_missing else scope.project_id
            project_id = await find_project_id(self.projects, scope.project_id, default=default)
            scope = Scope(project_id, scope.kind, scope.resource_id)
        if draft.rule is not None:
            rule = read_rule(draft.rule, "data.rule")
            return MemberQuery(rule=rule, scope=scope, after=after, limit=draft.limit)
        role = grammar.check_role_name(draft.role, "data.role").lower()
        return MemberQuery(role=role, scope=scope, after=after, limit=draft.limit)

    async def find_page(
        self, application_id: int, query: MemberQuery, *, known: ApplicationModel | None = None
    ) -> MemberResults:
        """A page of members; a short page may be followed by another.

        `known`: the application as it was read before; it is not compiled again while it is unchanged.
        """
        page = _MemberPage(query, after=query.after)
        while not page.is_full:
            candidates = await load_candidate_page(
                self.candidate_store,
                application_id,
                query.scope.project_id,
                partial(member_candidates, query=query),
                after=page.after,
                limit=page.next_size,
                known=known,
            )
            page.structure = candidates.snapshot.structure
            judge = partial(match_role if query.rule is None else match_rule, candidates.snapshot, query)
            async for facts, member in judge_in_batches(candidates.people, partial(judge, now=self.clock.now())):
                page.add(facts, member)
                if page.is_overfull:
                    break
            else:
                page.after, page.more = candidates.last, candidates.more
        after = page.after if page.more else None
        return MemberResults(members=page.found, idle=page.idle, structure=page.structure, after=after)


def member_candidates(snapshot: ApplicationSnapshot, query: MemberQuery) -> CandidateFilter:
    if query.rule is None:
        if query.role not in snapshot.model.roles:
            raise RoleNotFound
        return candidates_holding_role(snapshot, query.scope, query.role)
    application_id = snapshot.model.application.application_id
    first, *others = (
        candidates_holding_rule(
            snapshot, existing_lookup_scopes(snapshot.structure, application_id, query.scope, rule), rule
        )
        for rule in query.rule.rules
    )
    for other in others:
        first = union(first, other)
    return first


def match_rule(snapshot: ApplicationSnapshot, query: MemberQuery, facts: Facts, *, now: int) -> FoundMember | None:
    """Return the sources of a rule: every deciding contribution.

    A rule held in two places lasts until the later end.
    """
    effective = evaluate(snapshot.model, facts, snapshot.structure, now=now, address=None)
    pairs = [
        (holding_scope, rule)
        for rule in (query.rule.rules if query.rule else ())
        for holding_scope in effective.scopes_holding(snapshot.structure, query.scope, rule)
    ]
    if not pairs:
        return None
    this = evaluation_context(snapshot.model, facts, snapshot.structure, now=now, address=None)
    lefts = [effective.rules(holding_scope)[rule].seconds_left(now) for holding_scope, rule in pairs]
    return FoundMember(
        user_id=facts.subject.user_id,
        until=0 if 0 in lefts else now + max(lefts),
        path=tuple(source for holding_scope, rule in pairs for source in sources_of_rule(this, holding_scope, rule)),
        is_service_account=facts.service_account is not None,
    )


def sources_of_rule(context: EvaluationContext, scope: Scope, rule: Rule) -> Iterator[GrantSource]:
    for contribution in explain_contributions(context, scope, rule):
        if contribution.decides:
            yield GrantSource(
                kind=contribution.kind,
                scope=scope,
                role=contribution.role,
                membership=contribution.membership,
                end=contribution.end,
            )


def match_role(snapshot: ApplicationSnapshot, query: MemberQuery, facts: Facts, *, now: int) -> FoundMember | None:
    """Return the sources of a role: assigned there, or at the root by default or by its condition.

    The latest end counts.
    """
    this = evaluation_context(snapshot.model, facts, snapshot.structure, now=now, address=None)
    ended = holds_nothing(snapshot.model, facts, snapshot.structure, now)
    gathered = None if ended else gather_in_scope(this, query.scope)
    path = () if gathered is None else tuple(sources_of_role(this, query, gathered))
    if gathered is None or not path:
        return idle_member(this, query) if query.with_idle else None
    return FoundMember(user_id=facts.subject.user_id, until=last_end(path, gathered.closes, now), path=path)


def idle_member(context: EvaluationContext, query: MemberQuery) -> FoundMember | None:
    """Return the person if they are assigned the role there, though without effect."""
    held = context.holdings.get(query.scope, NO_HOLDINGS).roles
    end = next((one.end for one in held if one.role == query.role and not one.end.is_past(context.now)), None)
    if end is None:
        return None
    name = context.model.roles[query.role].role.name
    source = GrantSource(kind=SourceKind.ASSIGNED_ROLE, scope=query.scope, role=name, end=end)
    user_id, until = context.facts.subject.user_id, end.ends_at(context.now)
    return FoundMember(user_id=user_id, until=until, path=(source,), is_idle=True)


def gather_in_scope(context: EvaluationContext, scope: Scope) -> ScopeContributions | None:
    if scope.is_root:
        return gather_root(context)
    gate = context.gate(scope.project_id)
    return gather_below_root(context, scope, gate.closes) if gate.is_open else None


def sources_of_role(
    context: EvaluationContext, query: MemberQuery, contributions: ScopeContributions
) -> Iterator[GrantSource]:
    for contribution in contributions:
        source = contribution.source
        if source.role is not None and source.role.key == query.role:
            through = membership_of(context, query.scope, source.group_id) if source.group_id else None
            yield GrantSource(
                kind=source.kind, scope=query.scope, role=source.role.name, membership=through, end=contribution.end
            )


def last_end(path: Iterable[GrantSource], closes: End, now: int) -> int:
    ends = [source.end.ends_at(now) for source in path]
    last = 0 if 0 in ends else max(ends)
    shut = closes.ends_at(now)
    return min((end for end in (last, shut) if end), default=0)
