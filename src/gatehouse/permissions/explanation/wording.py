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
        *(f"- {'; '.join(map(_step, remedy.steps))}{_reach(remedy)}" for remedy in explanation.remedies),
    ]


def _step(step: RemedyStep) -> str:
    return STEPS[step.kind](step)


def _reach(remedy: Remedy) -> str:
    return f" (also for {remedy.others} other users of the role)" if remedy.others else ""


def _needs(step: RemedyStep) -> str:
    needs = "; ".join(f"{TEST_SUBJECTS[need.member]} must be {need.wanted}" for need in step.needs)
    return f"meet the condition of the role {step.role}: {needs}" if step.role else f"open the project: {needs}"


def _step_group(step: RemedyStep) -> str:
    return _group(step.group) if step.group else "a group"


def _ban_scope(step: RemedyStep) -> str:
    if step.application_id:
        return f"application {step.application_id}"
    return f"project {step.project_id}" if step.project_id else "everything"


STEPS: Final[Mapping[StepKind, Callable[[RemedyStep], str]]] = {
    StepKind.LIFT_BAN: lambda step: f"lift the ban from {_ban_scope(step)}",
    StepKind.ADD_TO_GROUP: lambda step: f"add the user to {_step_group(step)} {scope_phrase(step.scope)}",
    StepKind.REMOVE_FROM_GROUP: lambda step: f"remove the user from {_step_group(step)} {scope_phrase(step.scope)}",
    StepKind.RAISE_LIMIT: lambda step: f"raise the limit of the role {step.role} to {step.limit}",
    StepKind.ASSIGN_ROLE: lambda step: f"assign the role {step.role} {scope_phrase(step.scope)}",
    StepKind.REMOVE_ROLE: lambda step: f"remove the role {step.role} {scope_phrase(step.scope)}",
    StepKind.MEET_CONDITION: _needs,
    StepKind.ALLOW_IN_ROLE: lambda step: f"allow it in the role {step.role}",
    StepKind.UNSET_IN_ROLE: lambda step: f"take it out of the role {step.role}",
    StepKind.REMOVE_ENTRY: lambda step: f"remove the user's own entry {scope_phrase(step.scope)}",
}


def _verdict(explanation: Explanation) -> Iterator[str]:
    verdict = "Allowed" if explanation.allowed else "Denied"
    limit = f", for {explanation.seconds_left} more seconds" if explanation.seconds_left else ""
    yield f"{verdict}: {explanation.rule} {scope_phrase(explanation.scope)}{limit}."
    if not explanation.in_schema:
        yield "The rule is not in the schema of the application."


def _contribution(contribution: ExplainedContribution) -> str:
    said = "yes" if contribution.value else "no"
    params = f" with {', '.join(contribution.params)}" if contribution.params else ""
    decides = ", which decides" if contribution.decides else ", which is overridden"
    return f"{_source_phrase(contribution)} says {said}{params}{decides}{_until(contribution)}."


def _source_phrase(contribution: ExplainedContribution) -> str:
    where = scope_phrase(contribution.scope)
    phrases: Mapping[SourceKind, Callable[[], str]] = {
        SourceKind.SCHEMA: lambda: "The default in the schema",
        SourceKind.DEFAULT_ROLE: lambda: f"The role {contribution.role}, which everyone has,",
        SourceKind.ASSIGNED_ROLE: lambda: f"The role {contribution.role}, assigned {where},",
        SourceKind.GROUP_GRANT: lambda: (
            f"The role {contribution.role}, assigned {where} {_through(contribution.membership)},"
        ),
        SourceKind.CONDITION: lambda: f"The role {contribution.role}, whose condition is met,",
        SourceKind.DIRECT: lambda: f"The user's own entry {where}",
    }
    return phrases[contribution.kind]()


def _through(membership: Membership | None) -> str:
    if membership is None:
        return "through a group"
    how = f"by meeting “{membership.condition}”" if membership.condition else "by being listed in it"
    return f"through {_group(membership.group)}, a member {how}"


def _until(contribution: ExplainedContribution) -> str:
    if contribution.end.ttl:
        return f", for {contribution.end.ttl} seconds from each answer"
    return f", until {time_text(contribution.end.expired)}" if contribution.end.expired else ""


def _missing(fact: MissingRequirement) -> str:
    return SENTENCES[fact.kind](fact)


def _denial_sentence(fact: MissingRequirement) -> str:
    if fact.groups:
        return f"The role {fact.role}, assigned {scope_phrase(fact.scope)} through {_groups(fact.groups)}, says no."
    source = f"The role {fact.role}" if fact.role else "The user's own entry"
    return f"{source} {scope_phrase(fact.scope)} says no."


def _not_a_member(fact: MissingRequirement) -> str:
    sentence = f"The role {fact.role} is assigned {scope_phrase(fact.scope)} to members of {_groups(fact.groups)}"
    return f"{sentence}, but the user is not a member{_reason_phrase(fact.failed)}."


SENTENCES: Final[Mapping[MissingKind, Callable[[MissingRequirement], str]]] = {
    MissingKind.APPLICATION_REMOVED: lambda _: "The application was removed, so it grants nothing.",
    MissingKind.ACCOUNT_ENDED: lambda _: "The service account was revoked, so it has no permissions.",
    MissingKind.BANNED: lambda _: "The user is banned, so they have no permissions.",
    MissingKind.BANNED_FROM_PROJECT: lambda fact: f"The user is banned from the project {fact.scope.project_id}.",
    MissingKind.PROJECT_UNKNOWN: lambda fact: f"There is no project {fact.scope.project_id}.",
    MissingKind.PROJECT_REMOVED: lambda fact: (
        f"The project {fact.scope.project_id} was removed, so it grants nothing."
    ),
    MissingKind.RESOURCE_UNKNOWN: lambda fact: (
        f"Nothing is granted {scope_phrase(fact.scope)}: the project has no such resource."
    ),
    MissingKind.IN_DISALLOWED_GROUP: lambda fact: (
        f"The project {fact.scope.project_id} disallows members of {_groups(fact.groups)}, and the user is a member."
    ),
    MissingKind.IN_NO_ALLOWED_GROUP: lambda fact: (
        f"The project {fact.scope.project_id} allows only members of {_groups(fact.groups)}, and the user is not "
        "a member."
    ),
    MissingKind.DOMAIN_NOT_ALLOWED: lambda fact: (
        f"The project {fact.scope.project_id} allows only certain login domains{_reason_phrase(fact.failed)}."
    ),
    MissingKind.PROJECT_CLOSED: lambda fact: f"The project {fact.scope.project_id} does not allow the user.",
    MissingKind.SAID_NO: _denial_sentence,
    MissingKind.ENTRY_EXPIRED: lambda fact: (
        f"The user's own entry {scope_phrase(fact.scope)} expired at {time_text(fact.since)}."
    ),
    MissingKind.ROLE_EXPIRED: lambda fact: (
        f"The role {fact.role} would grant it, but its assignment {scope_phrase(fact.scope)}"
        f" expired at {time_text(fact.since)}."
    ),
    MissingKind.CONDITION_FAILED: lambda fact: (
        f"The role {fact.role} would grant it, but its condition is not met{_reason_phrase(fact.failed)}."
    ),
    MissingKind.REVOKED_BY_GROUP: lambda fact: (
        f"The role {fact.role} is revoked {scope_phrase(fact.scope)} from members of {_groups(fact.groups)}."
    ),
    MissingKind.ROLE_PROTECTED: lambda fact: (
        f"The role {fact.role} is assigned {scope_phrase(fact.scope)}, but protected roles apply only at the root,"
        " and not to guests."
    ),
    MissingKind.NOT_A_MEMBER: _not_a_member,
    MissingKind.ROLE_NOT_ASSIGNED: lambda fact: (
        f"The role {fact.role} would grant it, but it is not assigned {scope_phrase(fact.scope)}"
        f"{', and its condition is not met' + _reason_phrase(fact.failed) if fact.failed else ''}."
    ),
    MissingKind.ROLE_FULL: lambda fact: (
        f"The role {fact.role} would grant it, but it is not assigned {scope_phrase(fact.scope)}, and it has reached "
        f"its limit of {fact.limit} users."
    ),
    MissingKind.NOT_GIVEN: lambda fact: f"No role or entry grants it {scope_phrase(fact.scope)}.",
    MissingKind.HELD_ELSEWHERE: lambda fact: f"It is granted {scope_phrase(fact.scope)}, which does not apply here.",
}


def _reason_phrase(failed: Iterable[FailedTest]) -> str:
    """`: the tags are staff, not vip`; empty when no test failed."""
    phrases = "; ".join(_failed_test_phrase(test) for test in failed)
    return f": {phrases}" if phrases else ""


def _failed_test_phrase(test: FailedTest) -> str:
    if test.member == "everyone":
        return "it applies to no one"
    what = TEST_SUBJECTS[test.member]
    if not test.actual:
        nothing = "no address is verified" if test.member == "domain" else "there is none"  # R1
        return f"{what} must be {test.wanted}, and {nothing}"
    return f"{what} must be {test.wanted}, not {test.actual}"


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
