"""AuthZEN 1.0: questions about permissions as other products ask them (R11)."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.addresses import Address, parse_address
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import BadInput
from gatehouse.oauth.vocabulary import AUTHZEN
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.authentication.credentials import CredentialPolicy, RequestCredentials
from gatehouse.permissions.questions.access_requests import (
    MAY_SIGN_ADDRESSES,
    AccessEntity,
    AccessQuestion,
    AccessRequests,
    Decisions,
    EntityPage,
    object_key_of,
    target_of,
)
from gatehouse.permissions.questions.check import request_weight
from gatehouse.tokens.claims import InvalidToken
from gatehouse.web.api.permissions.authentication import CredentialFields, credentials_of
from gatehouse.web.api.permissions.listing import Cursors
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.responses import NOT_MODIFIED, cacheable_response, json_response
from gatehouse.web.http.routing import Endpoint, Handler, RateClass, RequiredAuth

SECTION: Final = "interface §4.18"
CONFIGURATION_PATH: Final = "/.well-known/authzen-configuration"
CACHE_CONTROL: Final = "public, max-age=3600"
MAX_EVALUATIONS: Final = 1_000
MANY_SUBJECTS: Final = 100  # of one call, which counts ten times with more of them
MANY_APPLICATIONS: Final = 10
DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000
# An access key, a service JWT or a token of the application: no person is needed.
BY_APPLICATION: Final = CredentialPolicy(audience=True, key=True, no_jwt=True, scope=AUTHZEN)

Name = Annotated[str, Meta(min_length=1, max_length=1_024)]
SomeName = Annotated[str, Meta(max_length=1_024)]


class SubjectFields(Struct, frozen=True, kw_only=True):
    type: Name
    id: Name


class SubjectType(Struct, frozen=True, kw_only=True):
    type: Name


class ActionFields(Struct, frozen=True, kw_only=True):
    name: Name


class ResourceProperties(Struct, frozen=True, kw_only=True):
    application_id: int | str = ""


class ResourceFields(Struct, frozen=True, kw_only=True):
    type: Name
    id: Name
    properties: ResourceProperties | None = None


class ResourceType(Struct, frozen=True, kw_only=True):
    type: Name
    properties: ResourceProperties | None = None


class QuestionContext(Struct, frozen=True, kw_only=True):
    """The other members of a context are ignored; `ip` too unless it is an address that the caller may sign."""

    ip: Annotated[Any, Meta(description="IP address of the subject, from a caller that may sign it (R6).")] = None


class Semantic(StrEnum):
    EXECUTE_ALL = "execute_all"
    DENY_ON_FIRST_DENY = "deny_on_first_deny"
    PERMIT_ON_FIRST_PERMIT = "permit_on_first_permit"

    def ends_with(self, decision: bool) -> bool:  # noqa: FBT001 - the decision itself
        return self is (Semantic.PERMIT_ON_FIRST_PERMIT if decision else Semantic.DENY_ON_FIRST_DENY)


class EvaluationRequest(Struct, frozen=True, kw_only=True):
    subject: SubjectFields
    action: ActionFields
    resource: ResourceFields
    context: QuestionContext | None = None


class SomeSubject(Struct, frozen=True, kw_only=True):
    type: SomeName = ""
    id: SomeName = ""


class SomeAction(Struct, frozen=True, kw_only=True):
    name: SomeName = ""


class SomeResource(Struct, frozen=True, kw_only=True):
    type: SomeName = ""
    id: SomeName = ""
    properties: ResourceProperties | None = None


NO_SUBJECT: Final = SomeSubject()
NO_ACTION: Final = SomeAction()
NO_RESOURCE: Final = SomeResource()


class EvaluationFields(Struct, frozen=True, kw_only=True):
    """One of several: what it leaves out, or sends as `{}`, is that of the whole request."""

    subject: SomeSubject = NO_SUBJECT
    action: SomeAction = NO_ACTION
    resource: SomeResource = NO_RESOURCE
    context: QuestionContext | None = None


class EvaluationsOptions(Struct, frozen=True, kw_only=True):
    evaluations_semantic: Semantic = Semantic.EXECUTE_ALL


class EvaluationsRequest(EvaluationFields, frozen=True, kw_only=True):
    evaluations: Annotated[list[EvaluationFields], Meta(max_length=MAX_EVALUATIONS)] = []
    options: EvaluationsOptions = EvaluationsOptions()


class Decision(Struct, frozen=True, kw_only=True):
    decision: bool


class DecisionList(Struct, frozen=True, kw_only=True):
    evaluations: Sequence[Decision]


class PageFields(Struct, frozen=True, kw_only=True):
    token: Annotated[str, Meta(max_length=1_024)] = ""
    limit: Annotated[int, Meta(ge=0, description=f"0 for {DEFAULT_LIMIT}; at most {MAX_LIMIT:,} are given.")] = 0

    @property
    def size(self) -> int:
        return min(self.limit or DEFAULT_LIMIT, MAX_LIMIT)


FIRST_PAGE: Final = PageFields()


class SubjectSearchRequest(Struct, frozen=True, kw_only=True):
    subject: SubjectType
    action: ActionFields
    resource: ResourceFields
    page: PageFields = FIRST_PAGE


class ActionSearchRequest(Struct, frozen=True, kw_only=True):
    subject: SubjectFields
    resource: ResourceFields
    context: QuestionContext | None = None
    page: PageFields = FIRST_PAGE


class ResourceSearchRequest(Struct, frozen=True, kw_only=True):
    subject: SubjectFields
    action: ActionFields
    resource: ResourceType
    context: QuestionContext | None = None
    page: PageFields = FIRST_PAGE


class NextPage(Struct, frozen=True, kw_only=True):
    next_token: str  # empty at the end


class FoundEntity(Struct, frozen=True, kw_only=True):
    type: str
    id: str


class FoundAction(Struct, frozen=True, kw_only=True):
    name: str


class EntityResults(Struct, frozen=True, kw_only=True):
    page: NextPage
    results: Sequence[FoundEntity]


class ActionResults(Struct, frozen=True, kw_only=True):
    page: NextPage
    results: Sequence[FoundAction]


class AuthzenConfiguration(Struct, frozen=True, kw_only=True):
    policy_decision_point: str
    access_evaluation_endpoint: str
    access_evaluations_endpoint: str
    search_subject_endpoint: str
    search_action_endpoint: str
    search_resource_endpoint: str


class AccessRequestEndpoints:
    def __init__(
        self, *, requests: AccessRequests, authenticator: Authenticator, cursors: Cursors, base_url: str
    ) -> None:
        self._requests = requests
        self._authenticator = authenticator
        self._cursors = cursors
        self._configuration = msgspec.json.encode(configuration_of(base_url))

    async def evaluation(self, request: Request) -> Response:
        body = await read_json(request, EvaluationRequest)
        caller = await self._identify(request)
        return json_response(await self._decide(caller, body))

    async def evaluations(self, request: Request) -> Response:
        body = await read_json(request, EvaluationsRequest)
        caller = await self._identify(request)
        if not body.evaluations:
            return json_response(await self._decide(caller, complete(body, EvaluationFields(), "")))
        questions = [
            question_of(caller, complete(body, one, f"evaluations[{index}]."))
            for index, one in enumerate(body.evaluations)
        ]
        self._authenticator.charge(caller, evaluations_weight(caller, questions))
        decisions = Decisions(
            requests=self._requests, caller=caller, loaded={}, object_keys=object_keys_of(questions)
        )
        made: list[Decision] = []
        for question in questions:
            made.append(Decision(decision=await decisions.decide(question)))
            if body.options.evaluations_semantic.ends_with(made[-1].decision):
                break
        return json_response(DecisionList(evaluations=made))

    async def search_subjects(self, request: Request) -> Response:
        body = await read_json(request, SubjectSearchRequest)
        caller = await self._identify(request)
        question = make_question(caller, AccessEntity(body.subject.type, ""), body.action.name, body.resource)
        binding, after = self._position(caller, question, body.page)
        page = await self._requests.subjects(caller, question, after=after, limit=body.page.size)
        return json_response(entity_results(page, self._next(binding, page.after)))

    async def search_actions(self, request: Request) -> Response:
        body = await read_json(request, ActionSearchRequest)
        caller = await self._identify(request)
        question = make_question(caller, entity_of(body.subject), "", body.resource, body.context)
        binding, after = self._position(caller, question, body.page)
        page = await self._requests.actions(caller, question, after=after, limit=body.page.size)
        names = [FoundAction(name=name) for name in page.names]
        return json_response(ActionResults(page=self._next(binding, page.after), results=names))

    async def search_resources(self, request: Request) -> Response:
        body = await read_json(request, ResourceSearchRequest)
        caller = await self._identify(request)
        resource = ResourceFields(type=body.resource.type, id="", properties=body.resource.properties)
        question = make_question(caller, entity_of(body.subject), body.action.name, resource, body.context)
        binding, after = self._position(caller, question, body.page)
        page = await self._requests.resources(caller, question, after=after, limit=body.page.size)
        return json_response(entity_results(page, self._next(binding, page.after)))

    async def configuration(self, request: Request) -> Response:
        return cacheable_response(
            request, self._configuration, media_type="application/json", cache_control=CACHE_CONTROL
        )

    async def _identify(self, request: Request) -> Caller:
        return await self._authenticator.identify(
            application_credentials(credentials_of(request, CredentialFields())), BY_APPLICATION
        )

    async def _decide(self, caller: Caller, body: EvaluationRequest) -> Decision:
        question = question_of(caller, body)
        keys = object_keys_of([question])
        decisions = Decisions(requests=self._requests, caller=caller, loaded={}, object_keys=keys)
        return Decision(decision=await decisions.decide(question))

    def _position(self, caller: Caller, question: AccessQuestion, page: PageFields) -> tuple[str, str]:
        """Return what cursors of this caller and question are bound to, and where the page begins."""
        binding = f"access:{caller.name}:{question_key(question)}"
        return binding, str(self._cursors.open(binding, page.token, place="page.token")) if page.token else ""

    def _next(self, binding: str, after: str | None) -> NextPage:
        return NextPage(next_token="" if after is None else self._cursors.issue(binding, after))

    def endpoints(self) -> list[Endpoint]:
        return [
            access_endpoint("evaluation", self.evaluation, EvaluationRequest, Decision, "Decide about an access"),
            access_endpoint(
                "evaluations", self.evaluations, EvaluationsRequest, DecisionList, "Decide about up to 1,000 accesses"
            ),
            access_endpoint(
                "search/subject",
                self.search_subjects,
                SubjectSearchRequest,
                EntityResults,
                "Find who may do an action on a resource",
            ),
            access_endpoint(
                "search/action",
                self.search_actions,
                ActionSearchRequest,
                ActionResults,
                "Find what a subject may do on a resource",
            ),
            access_endpoint(
                "search/resource",
                self.search_resources,
                ResourceSearchRequest,
                EntityResults,
                "Find where a subject may do an action",
            ),
            Endpoint(
                name="access.configuration",
                path=CONFIGURATION_PATH,
                methods=("GET",),
                handler=self.configuration,
                dialect=Dialect.PLAIN,
                rate_class=RateClass.KEYS,
                section=SECTION,
                summary="AuthZEN configuration",
                answers={200: AuthzenConfiguration, NOT_MODIFIED: None},
            ),
        ]


def configuration_of(base_url: str) -> AuthzenConfiguration:
    endpoints = f"{base_url}/access/v1"
    return AuthzenConfiguration(
        policy_decision_point=base_url,
        access_evaluation_endpoint=f"{endpoints}/evaluation",
        access_evaluations_endpoint=f"{endpoints}/evaluations",
        search_subject_endpoint=f"{endpoints}/search/subject",
        search_action_endpoint=f"{endpoints}/search/action",
        search_resource_endpoint=f"{endpoints}/search/resource",
    )


def access_endpoint(
    path: str, handler: Handler, request: type[Struct], answer: type[Struct], summary: str
) -> Endpoint:
    return Endpoint(
        name=f"access.{path.replace('/', '_')}",
        path=f"/access/v1/{path}",
        methods=("POST",),
        handler=handler,
        dialect=Dialect.PLAIN,
        rate_class=RateClass.ADMIN,
        section=SECTION,
        summary=summary,
        request=request,
        answers={200: answer},
        auth=RequiredAuth.ACCESS_KEY,
    )


def application_credentials(received: RequestCredentials) -> RequestCredentials:
    """Read the Bearer as the application's own: an access key, or with dots its service JWT."""
    if not received.user_jwt:
        return received
    if received.service_jwt:
        raise InvalidToken("two service JWTs")
    return replace(received, bearer="", service_jwt=received.bearer)


def complete(common: EvaluationFields, own: EvaluationFields, place: str) -> EvaluationRequest:
    """Return one of several questions with what it leaves out. Raises BadInput."""
    subject = common.subject if own.subject == NO_SUBJECT else own.subject
    action = common.action if own.action == NO_ACTION else own.action
    resource = common.resource if own.resource == NO_RESOURCE else own.resource
    for name, values in (
        ("subject", (subject.type, subject.id)),
        ("action", (action.name,)),
        ("resource", (resource.type, resource.id)),
    ):
        if not all(values):
            raise BadInput(f"{place}{name}: required")
    return EvaluationRequest(
        subject=SubjectFields(type=subject.type, id=subject.id),
        action=ActionFields(name=action.name),
        resource=ResourceFields(type=resource.type, id=resource.id, properties=resource.properties),
        context=own.context or common.context,
    )


def evaluations_weight(caller: Caller, questions: Sequence[AccessQuestion]) -> int:
    """Return as how many requests these questions count: one for each read, or some decisions.

    Many subjects, addresses or applications are much more to read than many questions about one.
    """
    subjects = {(question.subject, question.ip) for question in questions}
    targets = {target for question in questions if (target := target_of(caller, question)) is not None}
    applications = {target.application_id for target in targets}
    looked_up = sum(target.is_central_project for target in targets)
    has_many = len(subjects) > MANY_SUBJECTS or len(applications) > MANY_APPLICATIONS
    return max(len(subjects) + looked_up, request_weight(len(questions)) * (10 if has_many else 1))


def object_keys_of(questions: Sequence[AccessQuestion]) -> frozenset[str]:
    return frozenset(object_key_of(question.resource) for question in questions) - {""}


def question_of(caller: Caller, body: EvaluationRequest) -> AccessQuestion:
    return make_question(caller, entity_of(body.subject), body.action.name, body.resource, body.context)


def make_question(
    caller: Caller,
    subject: AccessEntity,
    action: str,
    resource: ResourceFields,
    context: QuestionContext | None = None,
) -> AccessQuestion:
    properties = resource.properties
    return AccessQuestion(
        subject=subject,
        action=action,
        resource=AccessEntity(resource.type, resource.id),
        application_id="" if properties is None else str(properties.application_id),
        ip=None if context is None else signed_address(caller, context.ip),
    )


def signed_address(caller: Caller, given: object) -> Address | None:
    """Return the address that the caller signed; None if it may not, or signed something else."""
    return parse_address(given) if caller.by in MAY_SIGN_ADDRESSES and isinstance(given, str) else None


def entity_of(fields: SubjectFields) -> AccessEntity:
    return AccessEntity(fields.type, fields.id)


def entity_results(page: EntityPage, next_page: NextPage) -> EntityResults:
    found = [FoundEntity(type=entity.type, id=entity.id) for entity in page.entities]
    return EntityResults(page=next_page, results=found)


def question_key(question: AccessQuestion) -> str:
    parts = (question.subject, question.action, question.resource, question.application_id, str(question.ip))
    return sha256(msgspec.json.encode(parts)).hex()
