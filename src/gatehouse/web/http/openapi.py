"""The OpenAPI 3.1 document, made from the same table that routes the requests."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from operator import itemgetter
from types import UnionType
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.web.http.errors import Dialect, Failure, OAuthFailure, PlainFailure
from gatehouse.web.http.operation_texts import (
    NO_BODY,
    PATH_PARAMETER,
    OperationText,
    OperationTexts,
    example_requests,
    operation_texts,
)
from gatehouse.web.http.parse import ANY_BODY
from gatehouse.web.http.responses import cacheable_response
from gatehouse.web.http.routing import Endpoint, HtmlPage, HtmlPageOrFailure, RateClass, RequiredAuth

OPENAPI_VERSION: Final = "3.1.0"
OPENAPI_PATH: Final = "/openapi.json"
JSON: Final = "application/json"
HTML: Final = "text/html"
EVENT_STREAM: Final = "text/event-stream"
COMPONENT_REFERENCE: Final = "#/components/schemas/{name}"

# How a request may fail: at any endpoint, by its authentication, and by its subject. A 500 is a bug, so no endpoint
# lists it.
COMMON_FAILURES: Final = (400, 413, 414, 429, 431, 503)
AUTH_FAILURES: Final = (401, 403)
RECORD_FAILURES: Final = (404, 409)

Json = dict[str, Any]


class OperationGroup(msgspec.Struct, frozen=True):
    """A heading of the API documentation, with the paths below it; the longest matching beginning decides."""

    name: str
    description: str
    paths: tuple[str, ...]


GROUPS: Final = (
    OperationGroup(
        "Sign-in",
        "Sign people in to websites, apps, devices and protected sites.",
        (
            *("/proxy/oauth/authorize", "/proxy/oauth/par", "/proxy/oauth/logout"),
            *("/proxy/oauth/device_authorization", "/proxy/api/login", "/proxy/auth"),
        ),
    ),
    OperationGroup(
        "Tokens", "Get, check, exchange and revoke tokens (OAuth 2.0, OpenID Connect).", ("/proxy/oauth/",)
    ),
    OperationGroup(
        "Game login",
        "Sign players in from a game: through the browser, with a platform's ticket, or as guests.",
        ("/proxy/api/gameSession/", "/proxy/api/platformLogin", "/proxy/api/guest", "/api/permissions/gameSession"),
    ),
    OperationGroup(
        "Keys and discovery",
        "Public keys and metadata, to verify tokens offline.",
        (
            *("/.well-known/", "/proxy/oauth/keys", "/api/permissions/keys"),
            *("/api/permissions/application/publicKey", "/api/permissions/application/publicKeys"),
        ),
    ),
    OperationGroup(
        "Permissions",
        "Ask who may do what and why; describe permissions and roles.",
        (
            *("/api/permissions/check", "/api/permissions/explain", "/api/permissions/members"),
            *("/api/permissions/simulate", "/api/permissions/meta/", "/api/permissions/roles"),
            "/api/permissions/object",
            *("/api/permissions/exchangeJwt", "/api/permissions/changes", "/access/v1/"),
        ),
    ),
    OperationGroup(
        "Applications",
        "Applications, their OAuth clients, keys and service tokens.",
        (
            *("/api/permissions/application", "/api/permissions/client", "/api/permissions/accessKey"),
            *("/api/permissions/serviceToken", "/api/permissions/emailSecret"),
        ),
    ),
    OperationGroup(
        "Projects",
        "Projects, their members, groups and service accounts.",
        (
            *("/api/permissions/publish", "/api/permissions/project", "/api/permissions/group"),
            "/api/permissions/serviceAccount",
        ),
    ),
    OperationGroup("People", "Accounts, sessions, bans and imports.", ("/api/permissions/user",)),
    OperationGroup(
        "Installation",
        "Settings, webhooks and the audit log.",
        ("/api/permissions/settings", "/api/permissions/webhook", "/api/permissions/activity"),
    ),
    OperationGroup("Operations", "Health checks and metrics, for monitoring.", ("/healthz", "/readyz", "/metrics")),
)


def group_of(path: str) -> OperationGroup:
    """Return the group of an operation. Raises LookupError for a path that belongs to none."""
    beginnings = [(len(begin), one) for one in GROUPS for begin in one.paths if path.startswith(begin)]
    if not beginnings:
        raise LookupError(f"no group of the API documentation has {path}")
    return max(beginnings, key=itemgetter(0))[1]


IDEMPOTENCY_PARAMETER: Final[Json] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Of a create: sent again within a day it gets the same answer, and nothing is created twice",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}

FAILURE_TYPES: Final[Mapping[Dialect, type]] = {
    Dialect.PAGE: HtmlPage,
    Dialect.OAUTH: OAuthFailure,
    Dialect.PERMISSIONS: Failure,
    Dialect.GAME: Failure,
    Dialect.PLAIN: PlainFailure,
}

BEARER_SCHEMES: Final[Mapping[str, str]] = {
    "clientProof": "Hex SHA-1 of redirect_uri + client_secret, or the client's own method (interface §5.1, R3)",
    "accessToken": "Access token from the token endpoint",
    "userJwt": "User JWT",
    "accessKey": "Access key of the application (interface §4.8)",
    "operationsToken": "Operations token",
}
HEADER_SCHEMES: Final[Mapping[str, tuple[str, str]]] = {
    "factor": ("Factor", "Device factor the user JWT was issued for"),
    "serviceJwt": ("Service-Jwt", "Service JWT, instead of the factor"),
}
# The members of one entry are needed together; the entries are alternatives.
AUTH_SCHEMES: Final[Mapping[RequiredAuth, tuple[tuple[str, ...], ...]]] = {
    RequiredAuth.NONE: (),
    RequiredAuth.SESSION: (),
    RequiredAuth.CLIENT: (("clientProof",),),
    RequiredAuth.ACCESS_TOKEN: (("accessToken",),),
    RequiredAuth.USER_JWT: (("userJwt",),),
    RequiredAuth.USER_JWT_AND_FACTOR: (("userJwt", "factor"), ("userJwt", "serviceJwt")),
    RequiredAuth.ACCESS_KEY: (("accessKey",),),
    RequiredAuth.USER_OR_APPLICATION: (
        ("userJwt", "factor"),
        ("userJwt", "serviceJwt"),
        ("serviceJwt",),
        ("accessKey",),
    ),
    RequiredAuth.OPERATIONS: (("operationsToken",),),
}


def openapi_document(
    endpoints: Sequence[Endpoint], *, base_url: str, version: str, texts: OperationTexts | None = None
) -> bytes:
    """Render the document; the same table gives the same bytes."""
    texts = texts or operation_texts()
    visible_endpoints = [endpoint for endpoint in endpoints if not endpoint.hidden]
    schemas = Schemas(visible_endpoints)
    paths: dict[str, Json] = {}
    for endpoint in visible_endpoints:
        item = paths.setdefault(PATH_PARAMETER.sub(r"{\1}", endpoint.path), {})
        item.update(
            {
                method.lower(): _operation(endpoint, method, schemas, texts.about(endpoint), base_url)
                for method in endpoint.methods
            }
        )
    whole = {
        "openapi": OPENAPI_VERSION,
        "info": {"title": "Gatehouse", "version": version},
        "servers": [{"url": base_url}],
        "tags": [{"name": one.name, "description": one.description} for one in GROUPS],
        "paths": paths,
        "components": {"schemas": schemas.components, "securitySchemes": _security_schemes()},
    }
    return msgspec.json.encode(whole)


def document_endpoint(make: Callable[[], bytes]) -> Endpoint:
    """Return the endpoint of the document, which is built at the first request and then cached."""
    made = cache(make)

    async def serve(request: Request) -> Response:
        return cacheable_response(request, made(), media_type=JSON, cache_control="no-cache")

    return Endpoint(
        name="openapi",
        path=OPENAPI_PATH,
        methods=("GET",),
        handler=serve,
        dialect=Dialect.PLAIN,
        rate_class=RateClass.PUBLIC,
        section="operations",
        summary="OpenAPI document",
        hidden=True,
    )


def _any_json_schema(kind: type) -> Json:
    """Return the schema of a field that accepts any JSON.

    It is checked member by member, with errors that name the place.
    """
    if kind is object:
        return {"description": "any JSON value"}
    raise TypeError(f"{kind} has no JSON schema")


class Schemas:
    """The JSON schemas of every type the table names."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        types = list(dict.fromkeys(kind for endpoint in endpoints for kind in _types_of(endpoint)))
        references, self.components = msgspec.json.schema_components(
            types, schema_hook=_any_json_schema, ref_template=COMPONENT_REFERENCE
        )
        self._references = dict(zip(types, references, strict=True))

    def reference(self, kind: type | UnionType) -> Json:
        return self._references[kind]

    def has_required_fields(self, kind: type | UnionType) -> bool:
        return isinstance(kind, UnionType) or bool(self._component(kind).get("required"))

    def fields(self, kind: type | UnionType) -> Iterator[tuple[str, bool, object]]:
        """Name, whether it is required, and schema of each field of a type that is read from a query."""
        schema = self._component(kind)
        for name, member in schema["properties"].items():
            yield name, name in schema.get("required", ()), member

    def _component(self, kind: type | UnionType) -> Json:
        """Return the component of a type; types of the same name in several modules get longer names."""
        found: Json = self.components[self._references[kind]["$ref"].rpartition("/")[2]]
        return found


def _types_of(endpoint: Endpoint) -> Iterator[type | UnionType]:
    for kind in (
        endpoint.request,
        endpoint.also_request,
        endpoint.also_answer,
        *endpoint.answers.values(),
        FAILURE_TYPES[endpoint.dialect],
    ):
        if kind not in (None, HtmlPage, HtmlPageOrFailure):
            yield kind


def _operation(endpoint: Endpoint, method: str, schemas: Schemas, text: OperationText, base_url: str) -> Json:
    name = endpoint.name if len(endpoint.methods) == 1 else f"{endpoint.name}.{method.lower()}"
    operation: Json = {"operationId": name, "summary": endpoint.summary, "tags": [group_of(endpoint.path).name]}
    if text.description:
        operation["description"] = text.description
    if parameters := list(_parameters(endpoint, method, schemas, text)):
        operation["parameters"] = parameters
    if endpoint.request is not None and method not in NO_BODY:
        kinds = sorted(kind.value for kind in endpoint.accepts)
        schema = _request_schema(endpoint.request, endpoint.also_request, schemas)
        examples = {title: {"value": body} for title, body in text.examples.items()}
        content = {"schema": schema, "examples": examples} if examples else {"schema": schema}
        operation["requestBody"] = {
            "content": dict.fromkeys(kinds, content),
            "required": endpoint.accepts != ANY_BODY or schemas.has_required_fields(endpoint.request),
        }
    operation["responses"] = _responses(endpoint, schemas, text)
    operation["security"] = [{name: [] for name in together} for together in AUTH_SCHEMES[endpoint.auth]]
    if requests := example_requests(endpoint, method, text):
        operation["x-codeSamples"] = [
            {"lang": "Shell", "label": request.title, "source": request.curl(base_url)} for request in requests
        ]
    return operation


def _request_schema(kind: type | UnionType, other: type | None, schemas: Schemas) -> Json:
    if other is None:
        return schemas.reference(kind)
    return {"oneOf": [schemas.reference(kind), schemas.reference(other)]}


def _parameters(endpoint: Endpoint, method: str, schemas: Schemas, text: OperationText) -> Iterator[Json]:
    for found in PATH_PARAMETER.finditer(endpoint.path):
        yield _parameter(found[1], "path", {"type": "string"}, text, required=True)
    if endpoint.request is not None and method in NO_BODY:
        for name, required, schema in schemas.fields(endpoint.request):
            yield _parameter(name, "query", schema, text, required=required)
    for name, description in endpoint.headers.items():
        yield {**_parameter(name, "header", {"type": "string"}, text), "description": description}
    if endpoint.idempotent:
        yield IDEMPOTENCY_PARAMETER


def _parameter(name: str, place: str, schema: object, text: OperationText, *, required: bool = False) -> Json:
    """Return a parameter with each of its example values once, under the title of the first that has it."""
    parameter: Json = {"name": name, "in": place, "required": required, "schema": schema}
    examples: Json = {}
    for title, given in text.examples.items():
        if name in given and {"value": given[name]} not in examples.values():
            examples[title] = {"value": given[name]}
    return {**parameter, "examples": examples} if examples else parameter


def _responses(endpoint: Endpoint, schemas: Schemas, text: OperationText) -> Json:
    failed = dict.fromkeys(_failures(endpoint), FAILURE_TYPES[endpoint.dialect])
    answers: Mapping[int, type | None] = {**failed, **endpoint.answers}
    responses = {
        status: _response(HTTPStatus(status).phrase, kind, schemas) for status, kind in sorted(answers.items())
    }
    if endpoint.also_answer is not None:
        content = responses[HTTPStatus.OK]["content"][JSON]
        content["schema"] = {"anyOf": [content["schema"], schemas.reference(endpoint.also_answer)]}
    if endpoint.also_as:
        responses[HTTPStatus.OK]["content"][endpoint.also_as] = {"schema": {"type": "string"}}
    if endpoint.event_stream:
        [schema] = [content["schema"] for content in responses[HTTPStatus.OK]["content"].values()]
        stream = {"schema": {"type": "string"}, "x-event-data": schema, "example": endpoint.event_stream}
        responses[HTTPStatus.OK]["content"] = {EVENT_STREAM: stream}
    for title, example in text.responses.items():
        if example.body is not msgspec.UNSET:
            content = responses[example.status]["content"][JSON]
            content.setdefault("examples", {})[title] = {"value": example.body}
    return {str(status): response for status, response in responses.items()}


def _failures(endpoint: Endpoint) -> Iterator[int]:
    yield from COMMON_FAILURES
    has_body = endpoint.request is not None and not NO_BODY.issuperset(endpoint.methods)
    if has_body and endpoint.dialect is not Dialect.OAUTH:  # there it is a 400 (R3)
        yield HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    if AUTH_SCHEMES[endpoint.auth]:
        yield from AUTH_FAILURES
    if endpoint.dialect is Dialect.PERMISSIONS and endpoint.request is not None:
        yield from RECORD_FAILURES
    if PATH_PARAMETER.search(endpoint.path):
        yield HTTPStatus.NOT_FOUND


def _response(description: str, kind: type | None, schemas: Schemas) -> Json:
    if kind is None:
        return {"description": description}
    if kind is HtmlPage:
        return {"description": description, "content": {HTML: {"schema": {"type": "string"}}}}
    if kind is HtmlPageOrFailure:
        failure = schemas.reference(PlainFailure)
        return {
            "description": description,
            "content": {HTML: {"schema": {"type": "string"}}, JSON: {"schema": failure}},
        }
    return {"description": description, "content": {JSON: {"schema": schemas.reference(kind)}}}


def _security_schemes() -> Json:
    bearers: Json = {
        name: {"type": "http", "scheme": "bearer", "description": text} for name, text in BEARER_SCHEMES.items()
    }
    headers: Json = {
        name: {"type": "apiKey", "in": "header", "name": header, "description": text}
        for name, (header, text) in HEADER_SCHEMES.items()
    }
    return {**bearers, **headers}
