"""Whether a person can hold anything at all in a project: removed, disallow, allow, allowed_domains (R5)."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from gatehouse.permissions.evaluation.compiled import CompiledProject
from gatehouse.permissions.evaluation.matching import ConditionIndex, IndexKey, is_member
from gatehouse.permissions.model.facts import Facts
from gatehouse.permissions.model.rule import NO_END, End


class Barrier(StrEnum):
    PROJECT_UNKNOWN = "project_unknown"
    PROJECT_REMOVED = "project_removed"
    IN_DISALLOWED_GROUP = "in_disallowed_group"
    IN_NO_ALLOWED_GROUP = "in_no_allowed_group"
    DOMAIN_NOT_ALLOWED = "domain_not_allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectGate:
    barrier: Barrier | None = None
    groups: tuple[str, ...] = ()  # those that shut it, by id
    closes: End = NO_END  # when only being an owner holds it open

    @property
    def is_open(self) -> bool:
        return self.barrier is None


OPEN_GATE = ProjectGate()


def project_gate(
    project: CompiledProject | None, facts: Facts, index_keys: Iterable[IndexKey], now: int
) -> ProjectGate:
    """Owners pass whatever the lists say, but nobody gets into a project that was removed."""
    if project is None:
        return ProjectGate(barrier=Barrier.PROJECT_UNKNOWN)
    if project.project.removed:
        return ProjectGate(barrier=Barrier.PROJECT_REMOVED)
    found = gate_by_lists(project, facts, index_keys)
    ownership = facts.owns.get(project.project.project_id)
    if found.is_open or ownership is None or ownership.is_past(now):
        return found
    return ProjectGate(closes=ownership)


def gate_by_lists(project: CompiledProject, facts: Facts, index_keys: Iterable[IndexKey]) -> ProjectGate:
    barred = member_groups(project, project.disallow, facts, index_keys)
    if barred:
        return ProjectGate(barrier=Barrier.IN_DISALLOWED_GROUP, groups=barred)
    if project.project.allow and not member_groups(project, project.allow, facts, index_keys):
        return ProjectGate(barrier=Barrier.IN_NO_ALLOWED_GROUP, groups=project.project.allow)
    if project.allowed_domains and facts.subject.domain not in project.allowed_domains:
        return ProjectGate(barrier=Barrier.DOMAIN_NOT_ALLOWED)
    return OPEN_GATE


def member_groups(
    project: CompiledProject, groups: ConditionIndex[str], facts: Facts, index_keys: Iterable[IndexKey]
) -> tuple[str, ...]:
    """Those of the groups that the person belongs to, by id."""
    known = project.groups
    return tuple(sorted(one for one in groups.candidates(index_keys) if is_member(known[one], facts)))
