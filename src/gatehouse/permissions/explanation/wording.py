"""An explanation in plain sentences."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from gatehouse.permissions.evaluation.gathering import SourceKind
from gatehouse.permissions.explanation.contributions import Contribution, Membership, NamedGroup
from gatehouse.permissions.explanation.failures import FailedTest
from gatehouse.permissions.explanation.missing import Lack, Missing
from gatehouse.permissions.explanation.reasons import Explanation
from gatehouse.permissions.model.scope import ResourceKind, Scope

RESOURCES: Final[Mapping[ResourceKind, str]] = {
    ResourceKind.APPLICATION: "application",
    ResourceKind.SERVICE: "service",
    ResourceKind.GROUP: "group",
}
WHAT_IT_IS: Final[Mapping[str, str]] = {
    "domain": "the login domain",
    "uid": "the user id",
    "tag": "the tags",
    "ip": "the address",
    "purchase": "the purchases",
    "everyone": "the user id",
}


def words(explanation: Explanation) -> list[str]:
    """The verdict first, then what speaks for and against it, then what is missing."""
    return [
        *_verdict(explanation),
        *map(_contribution, explanation.contributions),
        *map(_missing, explanation.missing),
    ]


def _verdict(explanation: Explanation) -> Iterator[str]:
    verdict = "Allowed" if explanation.allowed else "Denied"
    limit = f", for {explanation.left} more seconds" if explanation.left else ""
    yield f"{verdict}: {explanation.rule} {where(explanation.scope)}{limit}."
    if not explanation.in_schema:
        yield "The rule is not in the schema of the application."


def _contribution(one: Contribution) -> str:
    said = "yes" if one.value else "no"
    params = f" with {', '.join(one.params)}" if one.params else ""
    decides = ", which decides" if one.decides else ", which is overridden"
    return f"{_sources(one)} says {said}{params}{decides}{_until(one)}."


def _sources(one: Contribution) -> str:
    place = where(one.scope)
    told: Mapping[SourceKind, Callable[[], str]] = {
        SourceKind.SCHEMA: lambda: "The default in the schema",
        SourceKind.DEFAULT_ROLE: lambda: f"The role {one.role}, which everyone has,",
        SourceKind.ASSIGNED_ROLE: lambda: f"The role {one.role}, assigned {place},",
        SourceKind.GROUP_GRANT: lambda: f"The role {one.role}, assigned {place} {_through(one.membership)},",
        SourceKind.CONDITION: lambda: f"The role {one.role}, whose condition is met,",
        SourceKind.DIRECT: lambda: f"The user's own entry {place}",
    }
    return told[one.kind]()


def _through(membership: Membership | None) -> str:
    if membership is None:
        return "through a group"
    how = f"by meeting “{membership.condition}”" if membership.condition else "by being listed in it"
    return f"through {_group(membership.group)}, a member {how}"


def _until(one: Contribution) -> str:
    if one.end.ttl:
        return f", for {one.end.ttl} seconds from each answer"
    return f", until {moment(one.end.expired)}" if one.end.expired else ""


def _missing(one: Missing) -> str:
    return SENTENCES[one.kind](one)


def _said_no(one: Missing) -> str:
    if one.groups:
        return f"The role {one.role}, assigned {where(one.scope)} through {_groups(one.groups)}, says no."
    source = f"The role {one.role}" if one.role else "The user's own entry"
    return f"{source} {where(one.scope)} says no."


def _not_a_member(one: Missing) -> str:
    given = f"The role {one.role} is assigned {where(one.scope)} to members of {_groups(one.groups)}"
    return f"{given}, but the user is not a member{_because(one.failed)}."


SENTENCES: Final[Mapping[Lack, Callable[[Missing], str]]] = {
    Lack.APPLICATION_REMOVED: lambda _: "The application was removed, so it grants nothing.",
    Lack.ACCOUNT_ENDED: lambda _: "The service account was revoked, so it has no permissions.",
    Lack.PROJECT_UNKNOWN: lambda one: f"There is no project {one.scope.project_id}.",
    Lack.PROJECT_REMOVED: lambda one: f"The project {one.scope.project_id} was removed, so it grants nothing.",
    Lack.RESOURCE_UNKNOWN: lambda one: f"Nothing is granted {where(one.scope)}: the project has no such resource.",
    Lack.IN_DISALLOWED_GROUP: lambda one: (
        f"The project {one.scope.project_id} disallows members of {_groups(one.groups)}, and the user is a member."
    ),
    Lack.IN_NO_ALLOWED_GROUP: lambda one: (
        f"The project {one.scope.project_id} allows only members of {_groups(one.groups)}, and the user is not "
        "a member."
    ),
    Lack.DOMAIN_NOT_ALLOWED: lambda one: (
        f"The project {one.scope.project_id} allows only certain login domains{_because(one.failed)}."
    ),
    Lack.PROJECT_CLOSED: lambda one: f"The project {one.scope.project_id} does not allow the user.",
    Lack.SAID_NO: _said_no,
    Lack.ENTRY_EXPIRED: lambda one: f"The user's own entry {where(one.scope)} expired at {moment(one.since)}.",
    Lack.ROLE_EXPIRED: lambda one: (
        f"The role {one.role} would grant it, but its assignment {where(one.scope)} expired at {moment(one.since)}."
    ),
    Lack.CONDITION_FAILED: lambda one: (
        f"The role {one.role} would grant it, but its condition is not met{_because(one.failed)}."
    ),
    Lack.REVOKED_BY_GROUP: lambda one: (
        f"The role {one.role} is revoked {where(one.scope)} from members of {_groups(one.groups)}."
    ),
    Lack.ROLE_PROTECTED: lambda one: (
        f"The role {one.role} is assigned {where(one.scope)}, but protected roles apply only at the root."
    ),
    Lack.NOT_A_MEMBER: _not_a_member,
    Lack.ROLE_NOT_ASSIGNED: lambda one: (
        f"The role {one.role} would grant it, but it is not assigned "
        f"{where(one.scope)}{', and its condition is not met' + _because(one.failed) if one.failed else ''}."
    ),
    Lack.ROLE_FULL: lambda one: (
        f"The role {one.role} would grant it, but it is not assigned {where(one.scope)}, and it has reached "
        f"its limit of {one.limit} users."
    ),
    Lack.NOT_GIVEN: lambda one: f"No role or entry grants it {where(one.scope)}.",
    Lack.HELD_ELSEWHERE: lambda one: f"It is granted {where(one.scope)}, which does not apply here.",
}


def _because(failed: Iterable[FailedTest]) -> str:
    """`: the tags are staff, not vip`; nothing when there is nothing to tell."""
    told = "; ".join(_failure(one) for one in failed)
    return f": {told}" if told else ""


def _failure(one: FailedTest) -> str:
    if one.member == "everyone":
        return "it applies to no one"
    what = WHAT_IT_IS[one.member]
    if not one.actual:
        nothing = "no address is verified" if one.member == "domain" else "there is none"  # R1
        return f"{what} must be {one.wanted}, and {nothing}"
    return f"{what} must be {one.wanted}, not {one.actual}"


def _groups(groups: Iterable[NamedGroup]) -> str:
    return " and ".join(_group(one) for one in groups) or "a group"


def _group(group: NamedGroup) -> str:
    return f"the group {group.title or group.group_id}"


def where(scope: Scope) -> str:
    if scope.is_root:
        return "at the root"
    if scope.kind is None:
        return f"in project {scope.project_id}"
    return f"on {RESOURCES[scope.kind]} {scope.resource_id} of project {scope.project_id}"


def moment(seconds: int) -> str:
    """Ends may lie further away than a calendar reaches."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{seconds} seconds after 1970"
