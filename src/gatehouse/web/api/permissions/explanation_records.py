"""Explanations and members as JSON and as CSV."""

import csv
import io
from collections.abc import Iterable

import msgspec

from gatehouse.fields.derive import copy_as
from gatehouse.kernel.text import spreadsheet_cell
from gatehouse.kernel.times import iso8601
from gatehouse.permissions.evaluation.shapes import short_prefix
from gatehouse.permissions.explanation.contributions import ExplainedContribution, GroupReference, Membership
from gatehouse.permissions.explanation.failed_tests import FailedTest
from gatehouse.permissions.explanation.reasons import Explanation, MissingRequirement
from gatehouse.permissions.explanation.remedies import Remedy, RemedyStep
from gatehouse.permissions.explanation.wording import explanation_sentences
from gatehouse.permissions.model.rules import Scope
from gatehouse.permissions.questions.explain_objects import ObjectExplanation, ObjectSource
from gatehouse.permissions.questions.members import FoundMember, GrantSource


class GroupName(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    title: str


class FailedCondition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition that is not met, with the expected and actual value."""

    member: str
    wanted: str
    actual: str


class ScopeName(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Scope; empty at the root."""

    project_id: str = ""
    kind: str = ""
    id: str = ""


class PathStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What grants or denies the rule, its source and expiry."""

    source: str
    scope: ScopeName
    value: bool | None = None
    role: str = ""
    group: GroupName | None = None
    group_condition: str = ""  # title of the condition that makes the user a member
    params: tuple[str, ...] = ()
    expired: int = 0
    ttl: int = 0


class MissingFact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: str
    scope: ScopeName
    role: str = ""
    groups: tuple[GroupName, ...] = ()
    since: int = 0  # when it expired
    limit: int = 0  # how many users the role may have
    failed: tuple[FailedCondition, ...] = ()


class RemedyStepRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change. `by` names the people with the least rights who can make it, `may` tells whether the caller can."""

    kind: str
    scope: ScopeName
    by: str
    role: str = ""
    group: GroupName | None = None
    application_id: int = 0  # of a ban; neither this nor project_id for a ban from everything
    project_id: str = ""
    until: int = 0
    limit: int = 0  # users that the role must be allowed to have
    needs: tuple[FailedCondition, ...] = ()  # what has to become true
    may: bool = False


class RemedyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Steps that reverse the answer together, and what else they change in the application."""

    steps: tuple[RemedyStepRecord, ...]
    may: bool  # whether the caller can make all steps
    gains: int  # permissions of the user, with the one asked about
    loses: int
    others: int  # other users of roles that it changes


class ObjectScope(msgspec.Struct, frozen=True, kw_only=True):
    """The object, or one above it, and what is held there; `value` is null when nothing there names the rule."""

    object: str
    value: bool | None
    path: tuple[PathStep, ...]


class ObjectPart(msgspec.Struct, frozen=True, kw_only=True):
    """How the decision about an object was made, from the object up to the scope that decides."""

    object: str
    known: bool
    scopes: tuple[ObjectScope, ...]


class ExplanationRecord(msgspec.Struct, frozen=True, kw_only=True):
    allowed: bool
    rule: str
    scope: ScopeName
    in_schema: bool
    left: int  # seconds until it is no longer allowed, 0 for no end
    sentences: tuple[str, ...]
    path: tuple[PathStep, ...]  # the deciding steps
    overridden: tuple[PathStep, ...]
    missing: tuple[MissingFact, ...]  # the nearest first
    remedies: tuple[RemedyRecord, ...]  # each reverses the answer; the smallest first
    object: ObjectPart | msgspec.UnsetType = (
        msgspec.UNSET
    )  # of a question about an object; the rest is about its place


class ExplainResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: ExplanationRecord
    user_id: str


class MemberRecord(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    until: int  # Unix seconds, 0 for no end
    path: tuple[PathStep, ...]


class MembersPage(msgspec.Struct, frozen=True, kw_only=True):
    members: tuple[MemberRecord, ...]
    after: str | None  # for the next page; null when there is none


class MembersResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: MembersPage


def explanation_record(explanation: Explanation) -> ExplanationRecord:
    return ExplanationRecord(
        allowed=explanation.allowed,
        rule=str(explanation.rule),
        scope=scope_name(explanation.scope),
        in_schema=explanation.in_schema,
        left=explanation.seconds_left,
        sentences=tuple(explanation_sentences(explanation)),
        path=tuple(
            contribution_step(contribution) for contribution in explanation.contributions if contribution.decides
        ),
        overridden=tuple(contribution_step(each) for each in explanation.contributions if not each.decides),
        missing=tuple(map(missing_fact, explanation.missing)),
        remedies=tuple(map(remedy_record, explanation.remedies)),
    )


def object_explanation_record(explained: ObjectExplanation) -> ExplanationRecord:
    around = explanation_record(explained.around)
    object_part = ObjectPart(
        object=explained.object_key,
        known=explained.known,
        scopes=tuple(
            ObjectScope(
                object=scope.object_key, value=scope.value, path=tuple(map(object_source_step, scope.sources))
            )
            for scope in explained.scopes
        ),
    )
    rests_on_place = explained.known and not explained.is_decided_by_object
    return msgspec.structs.replace(
        around,
        allowed=explained.allowed,
        object=object_part,
        sentences=(explained.sentence, *(around.sentences if rests_on_place else ())),
        path=around.path if rests_on_place else (),
        overridden=around.overridden if rests_on_place else (*around.path, *around.overridden),
        missing=around.missing if rests_on_place else (),
        remedies=(),
        left=0 if explained.is_decided_by_object else around.left,
    )


def object_source_step(source: ObjectSource) -> PathStep:
    return PathStep(
        source=source.kind.value,
        scope=ScopeName(),
        value=source.value,
        role=source.role,
        group=membership_group(source.membership),
        group_condition=membership_condition(source.membership),
        expired=source.end.expired,
    )


def remedy_record(remedy: Remedy) -> RemedyRecord:
    return copy_as(RemedyRecord, remedy, steps=tuple(map(remedy_step_record, remedy.steps)), may=remedy.may)


def remedy_step_record(step: RemedyStep) -> RemedyStepRecord:
    return copy_as(
        RemedyStepRecord,
        step,
        kind=step.kind.value,
        scope=scope_name(step.scope),
        by=step.by.value,
        group=None if step.group is None else group_name(step.group),
        needs=tuple(map(failed_condition, step.needs)),
    )


def failed_condition(test: FailedTest) -> FailedCondition:
    return FailedCondition(member=test.member, wanted=test.wanted, actual=test.actual)


def contribution_step(contribution: ExplainedContribution) -> PathStep:
    return copy_as(
        PathStep,
        contribution,
        source=contribution.kind.value,
        scope=scope_name(contribution.scope),
        group=membership_group(contribution.membership),
        group_condition=membership_condition(contribution.membership),
        expired=contribution.end.expired,
        ttl=contribution.end.ttl,
    )


def missing_fact(requirement: MissingRequirement) -> MissingFact:
    return MissingFact(
        kind=requirement.kind.value,
        scope=scope_name(requirement.scope),
        role=requirement.role,
        groups=tuple(map(group_name, requirement.groups)),
        since=requirement.since,
        limit=requirement.limit,
        failed=tuple(map(failed_condition, requirement.failed)),
    )


def member_record(member: FoundMember) -> MemberRecord:
    return MemberRecord(user_id=member.user_id, until=member.until, path=tuple(map(path_step, member.path)))


def path_step(source: GrantSource) -> PathStep:
    return PathStep(
        source=source.kind.value,
        scope=scope_name(source.scope),
        role=source.role,
        group=membership_group(source.membership),
        group_condition=membership_condition(source.membership),
        expired=source.end.expired,
        ttl=source.end.ttl,
    )


def membership_group(membership: Membership | None) -> GroupName | None:
    return None if membership is None else group_name(membership.group)


def membership_condition(membership: Membership | None) -> str:
    return "" if membership is None else membership.condition


def group_name(group: GroupReference) -> GroupName:
    return GroupName(id=group.group_id, title=group.title)


def scope_name(scope: Scope) -> ScopeName:
    return ScopeName(
        project_id=scope.project_id, kind="" if scope.kind is None else scope.kind.value, id=scope.resource_id
    )


def members_csv(members: Iterable[FoundMember]) -> str:
    """Return one CSV line per path by which a member has the rule."""
    body = io.StringIO()
    writer = csv.writer(body)
    writer.writerow(("user_id", "until", "source", "scope", "role", "group_id", "group"))
    for member in members:
        writer.writerows(csv_rows(member))
    return body.getvalue()


def csv_rows(member: FoundMember) -> Iterable[tuple[str, ...]]:
    for each in member.path:
        group = each.membership.group if each.membership else GroupReference(group_id="")
        cells = (
            *(member.user_id, iso8601(member.until), each.kind.value, short_prefix(each.scope)),
            *(each.role, group.group_id, group.title),
        )
        yield tuple(map(escape_formula, cells))


def escape_formula(cell: str) -> str:
    """Prefix a text that a spreadsheet would run as a formula."""
    return spreadsheet_cell(cell)
