"""POST /api/permissions/check, explain and members (R5, R6)."""

import csv
import io
from collections.abc import Iterable
from typing import Final, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.contributions import Contribution, Membership, NamedGroup
from gatehouse.permissions.credentials import ABOUT_APPLICATION, ABOUT_ONE_PERSON
from gatehouse.permissions.desk import Desk
from gatehouse.permissions.errors import ApplicationNotFound, Malformed
from gatehouse.permissions.missing import Missing
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.questions.asked import about_whom, read_rule, read_scope
from gatehouse.permissions.questions.check import Checks, ChecksDraft, Question, read_questions
from gatehouse.permissions.questions.explanations import ExplainDraft, Explanations
from gatehouse.permissions.questions.members import Member, Members, MembersDraft, MemberSearch, Way
from gatehouse.permissions.questions.sight import refuse_about_everybody
from gatehouse.permissions.reasons import Explanation
from gatehouse.permissions.shapes import short_prefixes
from gatehouse.permissions.wording import words
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import Asked, credentials_of
from gatehouse.web.permissions.envelope import answer, post, tagged
from gatehouse.web.permissions.moments import moment
from gatehouse.web.permissions.schemas import id_of
from gatehouse.web.responses import NO_STORE
from gatehouse.web.routes.table import Endpoint

SECTION: Final = "interface §4.14"
CSV: Final = "text/csv"
NEXT_AFTER: Final = "Next-After"
CALCULATED: Final = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would take for a formula


class CheckRequest(Asked, frozen=True, kw_only=True):
    application_id: int | str | None = None
    data: ChecksDraft


class CheckAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: tuple[bool, ...]  # in the order of the checks
    user_id: str
    expired: int  # the earliest end of anything in the scopes asked about, 0 for none
    max_age: int  # seconds it may be kept before asking again with If-None-Match


class ExplainRequest(Asked, frozen=True, kw_only=True):
    application_id: int | str | None = None
    data: ExplainDraft


class MembersOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: Literal["json", "csv"] = "json"


class MembersRequest(Asked, frozen=True, kw_only=True):
    application_id: int | str | None = None
    data: MembersDraft
    options: MembersOptions = MembersOptions()


class GroupName(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    title: str


class FailedCondition(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a condition that does not hold, and what is the case instead."""

    member: str
    wanted: str
    actual: str


class ScopeName(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Nothing at all at the root."""

    project_id: str = ""
    kind: str = ""
    id: str = ""


class PathStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What gives or takes the rule: where it comes from, and when it ends."""

    source: str
    scope: ScopeName
    value: bool | None = None
    role: str = ""
    group: GroupName | None = None
    group_condition: str = ""  # title of the condition by which he belongs to the group
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


class ExplanationRecord(msgspec.Struct, frozen=True, kw_only=True):
    allowed: bool
    rule: str
    scope: ScopeName
    in_schema: bool
    left: int  # seconds until it is no longer allowed, 0 for ever
    sentences: tuple[str, ...]
    path: tuple[PathStep, ...]  # what decides
    overridden: tuple[PathStep, ...]
    missing: tuple[MissingFact, ...]  # the nearest first


class ExplainAnswer(msgspec.Struct, frozen=True, kw_only=True):
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


class MembersAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: MembersPage


class QuestionEndpoints:
    def __init__(
        self, *, checks: Checks, explanations: Explanations, members: MemberSearch, desk: Desk, max_age: int
    ) -> None:
        self._checks = checks
        self._explanations = explanations
        self._members = members
        self._desk = desk
        self._max_age = max_age

    async def check(self, request: Request) -> Response:
        ask = await read_json(request, CheckRequest)
        caller = await self._desk.caller(
            await credentials_of(request, ask), ABOUT_ONE_PERSON, application_id=id_of(ask.application_id)
        )
        user_id = about_whom(ask.data.user_id, caller.user_id)
        checked = await self._checks.check(caller, user_id, read_questions(ask.data.checks))
        return tagged(
            request,
            CheckAnswer(
                status="OK",
                data=checked.allowed,
                user_id=checked.user_id,
                expired=checked.expired,
                max_age=self._max_age,
            ),
        )

    async def explain(self, request: Request) -> Response:
        ask = await read_json(request, ExplainRequest)
        caller = await self._desk.caller(
            await credentials_of(request, ask), ABOUT_ONE_PERSON, application_id=id_of(ask.application_id)
        )
        user_id = about_whom(ask.data.user_id, caller.user_id)
        question = Question(
            rule=read_rule(ask.data.rule, "data.rule"),
            scope=read_scope(ask.data.project_id, ask.data.resource, "data"),
        )
        explanation = await self._explanations.explain(caller, user_id, question, ask.data.ip)
        return tagged(request, ExplainAnswer(status="OK", data=explained(explanation), user_id=user_id))

    async def members(self, request: Request) -> Response:
        ask = await read_json(request, MembersRequest)
        visit = await self._desk.receive(
            await credentials_of(request, ask), ABOUT_APPLICATION, application_id=id_of(ask.application_id)
        )
        if visit.application_id is None:
            raise Malformed("application_id: which application?")
        refuse_about_everybody(visit)
        if visit.model is None:
            raise ApplicationNotFound
        found = await self._members.find(visit.application_id, await self._members.wanted(ask.data))
        if ask.options.format == "csv" or CSV in request.headers.get("accept", ""):
            return as_csv(found)
        return answer(MembersPage(members=tuple(map(member, found.found)), after=found.after))

    def endpoints(self) -> list[Endpoint]:
        return [
            post(
                "check",
                self.check,
                name="check",
                request=CheckRequest,
                section=SECTION,
                summary="Whether a user holds rules: up to 100 questions at once",
                answers=CheckAnswer,
            ),
            post(
                "explain",
                self.explain,
                name="explain",
                request=ExplainRequest,
                section=SECTION,
                summary="Why a user holds a rule or not",
                answers=ExplainAnswer,
            ),
            post(
                "members",
                self.members,
                name="members",
                request=MembersRequest,
                section=SECTION,
                summary="Who has a rule or a role, by what path, until when; JSON or CSV",
                answers=MembersAnswer,
            ),
        ]


def explained(one: Explanation) -> ExplanationRecord:
    return ExplanationRecord(
        allowed=one.allowed,
        rule=str(one.rule),
        scope=scope_name(one.scope),
        in_schema=one.in_schema,
        left=one.left,
        sentences=tuple(words(one)),
        path=tuple(contribution(each) for each in one.contributions if each.decides),
        overridden=tuple(contribution(each) for each in one.contributions if not each.decides),
        missing=tuple(map(missing, one.missing)),
    )


def contribution(one: Contribution) -> PathStep:
    return PathStep(
        source=one.kind.value,
        scope=scope_name(one.scope),
        value=one.value,
        role=one.role,
        group=group_of(one.membership),
        group_condition=condition_of(one.membership),
        params=one.params,
        expired=one.end.expired,
        ttl=one.end.ttl,
    )


def missing(one: Missing) -> MissingFact:
    return MissingFact(
        kind=one.kind.value,
        scope=scope_name(one.scope),
        role=one.role,
        groups=tuple(map(group_name, one.groups)),
        since=one.since,
        limit=one.limit,
        failed=tuple(
            FailedCondition(member=test.member, wanted=test.wanted, actual=test.actual) for test in one.failed
        ),
    )


def member(one: Member) -> MemberRecord:
    return MemberRecord(user_id=one.user_id, until=one.until, path=tuple(map(way, one.path)))


def way(one: Way) -> PathStep:
    return PathStep(
        source=one.kind.value,
        scope=scope_name(one.scope),
        role=one.role,
        group=group_of(one.membership),
        group_condition=condition_of(one.membership),
        expired=one.end.expired,
        ttl=one.end.ttl,
    )


def group_of(membership: Membership | None) -> GroupName | None:
    return None if membership is None else group_name(membership.group)


def condition_of(membership: Membership | None) -> str:
    return "" if membership is None else membership.condition


def group_name(group: NamedGroup) -> GroupName:
    return GroupName(id=group.group_id, title=group.title)


def scope_name(scope: Scope) -> ScopeName:
    return ScopeName(
        project_id=scope.project_id, kind="" if scope.kind is None else scope.kind.value, id=scope.resource_id
    )


def as_csv(page: Members) -> Response:
    """One line for each way; where to go on is told in a header."""
    body = io.StringIO()
    writer = csv.writer(body)
    writer.writerow(("user_id", "until", "source", "scope", "role", "group_id", "group"))
    for one in page.found:
        writer.writerows(lines(one))
    headers = {**NO_STORE, "Content-Disposition": 'attachment; filename="members.csv"'}
    if page.after is not None:
        headers[NEXT_AFTER] = page.after
    return Response(body.getvalue(), 200, headers, media_type=CSV)


def lines(one: Member) -> Iterable[tuple[str, ...]]:
    for each in one.path:
        group = each.membership.group if each.membership else NamedGroup(group_id="")
        cells = (
            *(one.user_id, moment(one.until), each.kind.value, short_prefixes(each.scope)[0]),
            *(each.role, group.group_id, group.title),
        )
        yield tuple(map(plain, cells))


def plain(cell: str) -> str:
    """Other people's words never become a formula in whoever's spreadsheet opens them."""
    return f"'{cell}" if cell.startswith(CALCULATED) else cell
