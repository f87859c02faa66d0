"""POST /api/permissions/check, explain and members (R5, R6)."""

from typing import Final, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.background import run_off_loop
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import ABOUT_APPLICATION, ABOUT_ONE_PERSON, CHECK
from gatehouse.permissions.documents.grammar import ApplicationId, check_object_key
from gatehouse.permissions.errors import ApplicationNotFound, Malformed
from gatehouse.permissions.questions.check import (
    Checks,
    ChecksDraft,
    PermissionQuestion,
    read_questions,
    refuse_about_everyone,
    request_weight,
)
from gatehouse.permissions.questions.explain import ExplainDraft, GuardedExplainer
from gatehouse.permissions.questions.explain_objects import ObjectExplainer
from gatehouse.permissions.questions.members import MemberResults, MembersDraft, MemberSearch
from gatehouse.permissions.questions.parsing import read_rule, read_scope, target_user_id
from gatehouse.tokens.claims import InvalidToken
from gatehouse.web.api.permissions.authentication import CredentialFields, credentials_of
from gatehouse.web.api.permissions.envelope import data_response_off_loop, etag_response, permission_endpoint
from gatehouse.web.api.permissions.explanation_records import (
    ExplainResponse,
    MembersPage,
    MembersResponse,
    explanation_record,
    member_record,
    members_csv,
    object_explanation_record,
)
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.responses import NO_STORE
from gatehouse.web.http.routing import Endpoint

SECTION: Final = "interface §4.14"
CSV: Final = "text/csv"
JSON: Final = "application/json"
NEXT_AFTER_HEADER: Final = "Next-After"
PATH_WEIGHT: Final = 10


class CheckRequest(CredentialFields, frozen=True, kw_only=True):
    application_id: ApplicationId | None = None
    data: ChecksDraft


class CheckResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: tuple[bool, ...]  # in the order of the checks
    user_id: str
    expired: int  # the earliest end of anything in the scopes asked about, 0 for none
    max_age: int  # seconds it may be cached before revalidation with If-None-Match
    known: tuple[bool | None, ...] | msgspec.UnsetType = msgspec.UNSET  # whether each object exists, if any was named


class ExplainRequest(CredentialFields, frozen=True, kw_only=True):
    application_id: ApplicationId | None = None
    data: ExplainDraft


class MembersOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: Literal["json", "csv"] = "json"


class MembersRequest(CredentialFields, frozen=True, kw_only=True):
    application_id: ApplicationId | None = None
    data: MembersDraft
    options: MembersOptions = MembersOptions()


class QuestionEndpoints:
    def __init__(
        self,
        *,
        checks: Checks,
        explanations: GuardedExplainer,
        object_explanations: ObjectExplainer,
        members: MemberSearch,
        authenticator: Authenticator,
        max_age: int,
    ) -> None:
        self._checks = checks
        self._explanations = explanations
        self._object_explanations = object_explanations
        self._members = members
        self._authenticator = authenticator
        self._max_age = max_age

    async def check(self, request: Request) -> Response:
        body = await read_json(request, CheckRequest)
        caller = await self._authenticator.identify(
            credentials_of(request, body),
            CHECK,
            application_id=parse_optional_application_id(body.application_id),
        )
        user_id = target_user_id(body.data.user_id, caller.user_id)
        questions = read_questions(body.data.checks)
        if caller.facts is None and not all(question.object_key for question in questions):
            raise InvalidToken("user JWT is missing")  # without one, an application asks only about objects (R12)
        self._authenticator.charge(caller, request_weight(len(questions)))
        checked = await self._checks.check(caller, user_id, questions)
        return etag_response(
            request,
            CheckResponse(
                status="OK",
                data=checked.allowed,
                user_id=checked.user_id,
                expired=checked.expired,
                max_age=self._max_age,
                known=checked.known or msgspec.UNSET,
            ),
        )

    async def explain(self, request: Request) -> Response:
        body = await read_json(request, ExplainRequest)
        caller = await self._authenticator.identify(
            credentials_of(request, body),
            ABOUT_ONE_PERSON,
            application_id=parse_optional_application_id(body.application_id),
        )
        user_id = target_user_id(body.data.user_id, caller.user_id)
        question = PermissionQuestion(
            rule=read_rule(body.data.rule, "data.rule"),
            scope=read_scope(body.data.project_id, body.data.resource, "data"),
        )
        if body.data.object is not None:
            if body.data.resource is not None:
                raise Malformed("data: use either resource or object")
            key = check_object_key(body.data.object, "data.object")
            about = msgspec.structs.replace(question, object_key=key)
            explained = await self._object_explanations.explain(caller, user_id, about, body.data.ip)
            return etag_response(
                request, ExplainResponse(status="OK", data=object_explanation_record(explained), user_id=user_id)
            )
        explanation = await self._explanations.explain(caller, user_id, question, body.data.ip)
        return etag_response(
            request, ExplainResponse(status="OK", data=explanation_record(explanation), user_id=user_id)
        )

    async def members(self, request: Request) -> Response:
        body = await read_json(request, MembersRequest)
        authenticated = await self._authenticator.authenticate(
            credentials_of(request, body),
            ABOUT_APPLICATION,
            application_id=parse_optional_application_id(body.application_id),
        )
        if authenticated.application_id is None:
            raise Malformed("application_id: required")
        refuse_about_everyone(authenticated)
        if authenticated.model is None:
            raise ApplicationNotFound
        query = await self._members.read_query(body.data, may_see_missing=authenticated.rights.administers)
        results = await self._members.find_page(authenticated.application_id, query, known=authenticated.model)
        if body.options.format == "csv" or accepts_only_csv(request):
            return await run_off_loop(members_weight(results), csv_response, results)
        weight = members_weight(results)
        page = await run_off_loop(weight, members_page, results)
        return await data_response_off_loop(weight, page, narrower="ask for fewer at a time with data.limit")

    def endpoints(self) -> list[Endpoint]:
        return [
            permission_endpoint(
                "check",
                self.check,
                name="check",
                request=CheckRequest,
                section=SECTION,
                summary="Check up to 1,000 permissions of a user",
                answers=CheckResponse,
                has_tag=True,
            ),
            permission_endpoint(
                "explain",
                self.explain,
                name="explain",
                request=ExplainRequest,
                section=SECTION,
                summary="Explain why a user has a permission or not",
                answers=ExplainResponse,
                has_tag=True,
            ),
            permission_endpoint(
                "members",
                self.members,
                name="members",
                request=MembersRequest,
                section=SECTION,
                summary="List everyone with a permission or role, with source and expiry; JSON or CSV",
                answers=MembersResponse,
                also_as=CSV,
            ),
        ]


def members_page(results: MemberResults) -> MembersPage:
    return MembersPage(members=tuple(map(member_record, results.members)), after=results.after)


def members_weight(results: MemberResults) -> int:
    return PATH_WEIGHT * sum(len(member.path) for member in results.members)


def accepts_only_csv(request: Request) -> bool:
    """Whether Accept names CSV and not JSON; weights are ignored."""
    accepted = request.headers.get("accept", "").lower()
    return CSV in accepted and JSON not in accepted


def csv_response(page: MemberResults) -> Response:
    """Return the CSV; a header has the start of the next page."""
    headers = {**NO_STORE, "Content-Disposition": 'attachment; filename="members.csv"'}
    if page.after is not None:
        headers[NEXT_AFTER_HEADER] = page.after
    return Response(members_csv(page.members), 200, headers, media_type=CSV)
