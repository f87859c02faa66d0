"""An explanation in plain sentences."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from gatehouse.permissions.evaluation.contributions import SourceKind
from gatehouse.permissions.explanation.contributions import ExplainedContribution, GroupReference, Membership
from gatehouse.permissions.explanation.failed_tests import FailedTest
from gatehouse.permissions.explanation.reasons import Explanation, MissingKind, MissingRequirement
from gatehouse.permissions.explanation.remedies import Remedy, RemedyStep, StepKind
from gatehouse.permissions.model.rules import ResourceKind, Scope

RESOURCES: Final[Mapping[ResourceKind, str]] = {
    ResourceKind.APPLICATION: "application",
    ResourceKind.SERVICE: "service",
    ResourceKind.GROUP: "group",
}
TEST_SUBJECTS: Final[Mapping[str, str]] = {
    "domain": "the login domain",
    "uid": "the user id",
    "tag": "the tags",
    "ip": "the address",
    "purchase": "the purchases",
    "everyone": "the user id",
}


def explanation_sentences(explanation: Explanation) -> list[str]:
    """The verdict, then the contributions for and against it, then what is missing."""
    return [
        *_verdict(explanation),
        *map(_contribution, explanation.contributions),
        *map(_missing, explanation.missing),
    ]


def remedy_sentences(explanation: Explanation) -> list[str]:
    """How to reverse the answer: one line for each remedy, its steps in order."""
    if not explanation.remedies:
        return []
    asked = "deny" if explanation.allowed else "allow"
    return [
        f"To {asked} it:",
        *(f"- {'; '.join(map(_step, one.steps))}{_reach(one)}" for one in explanation.remedies),
    ]


def _step(one: RemedyStep) -> str:
    return STEPS[one.kind](one)


def _reach(one: Remedy) -> str:
    return f" (also for {one.others} other users of the role)" if one.others else ""


def _needs(one: RemedyStep) -> str:
    needs = "; ".join(f"{TEST_SUBJECTS[need.member]} must be {need.wanted}" for need in one.needs)
    return f"meet the condition of the role {one.role}: {needs}" if one.role else f"open the project: {needs}"


def _step_group(one: RemedyStep) -> str:
    return _group(one.group) if one.group else "a group"


def _ban_scope(one: RemedyStep) -> str:
    if one.application_id:
        return f"application {one.application_id}"
    return f"project {one.project_id}" if one.project_id else "everything"


STEPS: Final[Mapping[StepKind, Callable[[RemedyStep], str]]] = {
    StepKind.LIFT_BAN: lambda one: f"lift the ban from {_ban_scope(one)}",
    StepKind.ADD_TO_GROUP: lambda one: f"add the user to {_step_group(one)} {scope_phrase(one.scope)}",
    StepKind.REMOVE_FROM_GROUP: lambda one: f"remove the user from {_step_group(one)} {scope_phrase(one.scope)}",
    StepKind.RAISE_LIMIT: lambda one: f"raise the limit of the role {one.role} to {one.limit}",
    StepKind.ASSIGN_ROLE: lambda one: f"assign the role {one.role} {scope_phrase(one.scope)}",
    StepKind.REMOVE_ROLE: lambda one: f"remove the role {one.role} {scope_phrase(one.scope)}",
    StepKind.MEET_CONDITION: _needs,
    StepKind.ALLOW_IN_ROLE: lambda one: f"allow it in the role {one.role}",
    StepKind.UNSET_IN_ROLE: lambda one: f"take it out of the role {one.role}",
    StepKind.REMOVE_ENTRY: lambda one: f"remove the user's own entry {scope_phrase(one.scope)}",
}


def _verdict(explanation: Explanation) -> Iterator[str]:
    verdict = "Allowed" if explanation.allowed else "Denied"
    limit = f", for {explanation.seconds_left} more seconds" if explanation.seconds_left else ""
    yield f"{verdict}: {explanation.rule} {scope_phrase(explanation.scope)}{limit}."
    if not explanation.in_schema:
        yield "The rule is not in the schema of the application."


def _contribution(one: ExplainedContribution) -> str:
    said = "yes" if one.value else "no"
    params = f" with {', '.join(one.params)}" if one.params else ""
    decides = ", which decides" if one.decides else ", which is overridden"
    return f"{_source_phrase(one)} says {said}{params}{decides}{_until(one)}."


def _source_phrase(one: ExplainedContribution) -> str:
    where = scope_phrase(one.scope)
    phrases: Mapping[SourceKind, Callable[[], str]] = {
        SourceKind.SCHEMA: lambda: "The default in the schema",
        SourceKind.DEFAULT_ROLE: lambda: f"The role {one.role}, which everyone has,",
        SourceKind.ASSIGNED_ROLE: lambda: f"The role {one.role}, assigned {where},",
        SourceKind.GROUP_GRANT: lambda: f"The role {one.role}, assigned {where} {_through(one.membership)},",
        SourceKind.CONDITION: lambda: f"The role {one.role}, whose condition is met,",
        SourceKind.DIRECT: lambda: f"The user's own entry {where}",
    }
    return phrases[one.kind]()


def _through(membership: Membership | None) -> str:
    if membership is None:
        return "through a group"
    how = f"by meeting “{membership.condition}”" if membership.condition else "by being listed in it"
    return f"through {_group(membership.group)}, a member {how}"


def _until(one: ExplainedContribution) -> str:
    if one.end.ttl:
        return f", for {one.end.ttl} seconds from each answer"
    return f", until {time_text(one.end.expired)}" if one.end.expired else ""


def _missing(one: MissingRequirement) -> str:
    return SENTENCES[one.kind](one)


def _denial_sentence(one: MissingRequirement) -> str:
    if one.groups:
        return f"The role {one.role}, assigned {scope_phrase(one.scope)} through {_groups(one.groups)}, says no."
    source = f"The role {one.role}" if one.role else "The user's own entry"
    return f"{source} {scope_phrase(one.scope)} says no."


def _not_a_member(one: MissingRequirement) -> str:
    given = f"The role {one.role} is assigned {scope_phrase(one.scope)} to members of {_groups(one.groups)}"
    return f"{given}, but the user is not a member{_reason_phrase(one.failed)}."


SENTENCES: Final[Mapping[MissingKind, Callable[[MissingRequirement], str]]] = {
    MissingKind.APPLICATION_REMOVED: lambda _: "The application was removed, so it grants nothing.",
    MissingKind.ACCOUNT_ENDED: lambda _: "The service account was revoked, so it has no permissions.",
    MissingKind.BANNED: lambda _: "The user is banned, so they have no permissions.",
    MissingKind.BANNED_FROM_PROJECT: lambda one: f"The user is banned from the project {one.scope.project_id}.",
    MissingKind.PROJECT_UNKNOWN: lambda one: f"There is no project {one.scope.project_id}.",
    MissingKind.PROJECT_REMOVED: lambda one: f"The project {one.scope.project_id} was removed, so it grants nothing.",
    MissingKind.RESOURCE_UNKNOWN: lambda one: (
        f"Nothing is granted {scope_phrase(one.scope)}: the project has no such resource."
    ),
    MissingKind.IN_DISALLOWED_GROUP: lambda one: (
        f"The project {one.scope.project_id} disallows members of {_groups(one.groups)}, and the user is a member."
    ),
    MissingKind.IN_NO_ALLOWED_GROUP: lambda one: (
        f"The project {one.scope.project_id} allows only members of {_groups(one.groups)}, and the user is not "
        "a member."
    ),
    MissingKind.DOMAIN_NOT_ALLOWED: lambda one: (
        f"The project {one.scope.project_id} allows only certain login domains{_reason_phrase(one.failed)}."
    ),
    MissingKind.PROJECT_CLOSED: lambda one: f"The project {one.scope.project_id} does not allow the user.",
    MissingKind.SAID_NO: _denial_sentence,
    MissingKind.ENTRY_EXPIRED: lambda one: (
        f"The user's own entry {scope_phrase(one.scope)} expired at {time_text(one.since)}."
    ),
    MissingKind.ROLE_EXPIRED: lambda one: (
        f"The role {one.role} would grant it, but its assignment {scope_phrase(one.scope)}"
        f" expired at {time_text(one.since)}."
    ),
    MissingKind.CONDITION_FAILED: lambda one: (
        f"The role {one.role} would grant it, but its condition is not met{_reason_phrase(one.failed)}."
    ),
    MissingKind.REVOKED_BY_GROUP: lambda one: (
        f"The role {one.role} is revoked {scope_phrase(one.scope)} from members of {_groups(one.groups)}."
    ),
    MissingKind.ROLE_PROTECTED: lambda one: (
        f"The role {one.role} is assigned {scope_phrase(one.scope)}, but protected roles apply only at the root,"
        " and not to guests."
    ),
    MissingKind.NOT_A_MEMBER: _not_a_member,
    MissingKind.ROLE_NOT_ASSIGNED: lambda one: (
        f"The role {one.role} would grant it, but it is not assigned {scope_phrase(one.scope)}"
        f"{', and its condition is not met' + _reason_phrase(one.failed) if one.failed else ''}."
    ),
    MissingKind.ROLE_FULL: lambda one: (
        f"The role {one.role} would grant it, but it is not assigned {scope_phrase(one.scope)}, and it has reached "
        f"its limit of {one.limit} users."
    ),
    MissingKind.NOT_GIVEN: lambda one: f"No role or entry grants it {scope_phrase(one.scope)}.",
    MissingKind.HELD_ELSEWHERE: lambda one: f"It is granted {scope_phrase(one.scope)}, which does not apply here.",
}


def _reason_phrase(failed: Iterable[FailedTest]) -> str:
    """`: the tags are staff, not vip`; empty when no test failed."""
    phrases = "; ".join(_failed_test_phrase(one) for one in failed)
    return f": {phrases}" if phrases else ""


def _failed_test_phrase(one: FailedTest) -> str:
    if one.member == "everyone":
        return "it applies to no one"
    what = TEST_SUBJECTS[one.member]
    if not one.actual:
        nothing = "no address is verified" if one.member == "domain" else "there is none"  # R1
        return f"{what} must be {one.wanted}, and {nothing}"
    return f"{what} must be {one.wanted}, not {one.actual}"


def _groups(groups: Iterable[GroupReference]) -> str:
    return " and ".join(_group(group) for group in groups) or "a group"


def _group(group: GroupReference) -> str:
    return f"the group {group.title or group.group_id}"


def scope_phrase(scope: Scope) -> str:
    if scope.is_root:
        return "at the root"
    if scope.kind is None:
        return f"in project {scope.project_id}"
    return f"on {RESOURCES[scope.kind]} {scope.resource_id} of project {scope.project_id}"


def time_text(seconds: int) -> str:
    """Ends may lie further away than a calendar reaches."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{seconds} seconds after 1970"
