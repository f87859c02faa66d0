"""The API documentation: a page of the OpenAPI document, from which a signed-in person sends the examples.

A script sends them, never with a cookie: an operation that needs a person gets a user JWT for ten minutes, which a
form of this page issues (docs/decisions/0062-try-the-api-with-your-session.md).
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.user_tokens import UserTokens
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.times import MINUTE
from gatehouse.web.http import openapi
from gatehouse.web.http.browser import BrowserSessions
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.operation_texts import PATH_PARAMETER, ExampleRequest, example_requests, operation_texts
from gatehouse.web.http.responses import json_response, see_other
from gatehouse.web.http.routing import Endpoint, RateClass, RequiredAuth
from gatehouse.web.pages.account_request import AccountRequest, AccountView
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer

TOKEN_SECONDS: Final = 10 * MINUTE
FACTOR_BYTES: Final = 16
MAX_DEPTH: Final = 2  # levels of an object whose fields are listed
READ_ACTIONS: Final = frozenset({"get", "list", "search", "plan", "deliveries"})
READ_OPERATIONS: Final = frozenset(
    f"permissions.{name}" for name in ("check", "explain", "members", "simulate", "user_info", "exchange_jwt")
)
# Fields that every body may have, and that headers are better for: listed where an example has them.
CREDENTIAL_FIELDS: Final = frozenset({"jwt", "factor", "service_jwt", "ip", "ts"})
PERSON_AUTH: Final = frozenset(
    {RequiredAuth.USER_JWT, RequiredAuth.USER_JWT_AND_FACTOR, RequiredAuth.USER_OR_APPLICATION}
)


class FieldRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    required: bool = False
    description: str = ""


class DocumentedExample(msgspec.Struct, frozen=True, kw_only=True):
    request: ExampleRequest
    curl: str
    response: str
    changes: bool  # something of the installation

    @property
    def headers(self) -> str:
        return msgspec.json.encode(self.request.headers).decode()


class DocumentedOperation(msgspec.Struct, frozen=True, kw_only=True):
    operation_id: str
    method: str
    path: str
    summary: str
    description: str
    auth: str  # the text is `docs.auth_<auth>`
    fields: Sequence[FieldRow]
    examples: Sequence[DocumentedExample]
    answers: Sequence[tuple[str, str]]  # status and meaning
    answer_fields: Sequence[FieldRow]  # of the first success


class DocumentedGroup(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str
    operations: Sequence[DocumentedOperation]

    @property
    def anchor(self) -> str:
        return f"group-{self.name.lower().replace(' ', '-')}"


class DocsContext(PageContext, frozen=True, kw_only=True):
    template = "docs.html"

    groups: Sequence[DocumentedGroup]
    placeholders: Mapping[str, str]
    variables: Mapping[str, str]
    api_version: str
    nick: str = ""  # this and the next two: of the signed-in person
    csrf: str = ""
    is_fresh: bool = False


class SessionToken(SecretRecord, frozen=True, kw_only=True):
    jwt: SecretText
    factor: str
    seconds: int


class DocsPage:
    def __init__(
        self,
        table: Sequence[Endpoint],
        *,
        view: AccountView,
        pages: PageRenderer,
        browsers: BrowserSessions,
        tokens: UserTokens,
        base_url: str,
        version: str,
    ) -> None:
        self._view = view
        self._pages = pages
        self._browsers = browsers
        self._tokens = tokens
        self._version = version
        self._document = partial(openapi.openapi_document, tuple(table), base_url=base_url, version=version)
        self._groups = cache(lambda: documented_groups(table, msgspec.json.decode(self._document()), base_url))

    async def show(self, request: Request) -> Response:
        account = self._view.request_of(request, await self._browsers.read(request))
        texts = operation_texts()
        return self._pages.render_off_loop(
            request,
            lambda: DocsContext(
                groups=self._groups(),
                placeholders=texts.placeholders,
                variables=texts.variables,
                api_version=self._version,
                nick=account.user.nick if account else "",
                csrf=self._view.csrf_token(account) if account else "",
                is_fresh=account is not None and self._view.is_fresh(account),
            ),
        )

    async def return_to_page(self, _request: Request, _account: AccountRequest) -> Response:
        """The way back from the sign-in that this address asks for."""
        return see_other(Path.DOCS)

    async def issue_token(self, _request: Request, account: AccountRequest, _form: CsrfForm) -> Response:
        """Issue a user JWT for the signed-in person, with a factor that only this answer has."""
        factor = secrets.token_urlsafe(FACTOR_BYTES)
        jwt = await self._tokens.issue_recorded(
            account.user.user_id, factor=factor, origin=account.origin, seconds=TOKEN_SECONDS
        )
        return json_response(SessionToken(jwt=jwt, factor=factor, seconds=TOKEN_SECONDS))

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of `/openapi.json` and of the page that shows it."""
        page = Endpoint(
            name="docs",
            path=Path.DOCS,
            methods=("GET",),
            handler=self.show,
            dialect=Dialect.PAGE,
            rate_class=RateClass.PUBLIC,
            section="operations",
            summary="API documentation page",
            hidden=True,
        )
        return [
            openapi.document_endpoint(self._document),
            page,
            self._view.page(
                Path.DOCS_SESSION,
                self.return_to_page,
                name="docs.sign_in",
                summary="Sign in and return to the API documentation",
                fresh=True,
            ),
            self._view.form(
                Path.DOCS_SESSION,
                CsrfForm,
                self.issue_token,
                name="docs.issue_token",
                summary="Issue a short user JWT for the API documentation",
                fresh=True,
                rate_class=RateClass.LOGIN,
            ),
        ]


# The document as the page shows it.


def documented_groups(
    table: Sequence[Endpoint], document: Mapping[str, Any], base_url: str
) -> Sequence[DocumentedGroup]:
    operations: dict[str, list[DocumentedOperation]] = {group.name: [] for group in openapi.GROUPS}
    for endpoint in table:
        if not endpoint.hidden:
            item = document["paths"][PATH_PARAMETER.sub(r"{\1}", endpoint.path)]
            for method in endpoint.methods:
                operation = item[method.lower()]
                shown = documented_operation(endpoint, method, operation, document["components"]["schemas"], base_url)
                operations[operation["tags"][0]].append(shown)
    return tuple(
        DocumentedGroup(name=group.name, description=group.description, operations=tuple(operations[group.name]))
        for group in openapi.GROUPS
        if operations[group.name]
    )


def documented_operation(
    endpoint: Endpoint, method: str, operation: Mapping[str, Any], schemas: Mapping[str, Any], base_url: str
) -> DocumentedOperation:
    text = operation_texts().about(endpoint)
    requests = example_requests(endpoint, method, text)
    used = {name for request in requests for name in request.fields}
    success = next(answer for status, answer in operation["responses"].items() if status < "400")
    return DocumentedOperation(
        operation_id=operation["operationId"],
        method=method,
        path=endpoint.path,
        summary=operation["summary"],
        description=operation.get("description", ""),
        auth="person" if endpoint.auth in PERSON_AUTH else endpoint.auth.value,
        fields=[
            row for row in request_rows(operation, schemas) if row.name in used or row.name not in CREDENTIAL_FIELDS
        ],
        examples=[
            DocumentedExample(
                request=request,
                curl=request.curl(base_url),
                response=text.responses[request.title].text,
                changes=changes_something(endpoint, method, request.fields),
            )
            for request in requests
        ],
        answers=[(status, answer["description"]) for status, answer in operation["responses"].items()],
        answer_fields=list(content_rows(success, schemas)),
    )


def changes_something(endpoint: Endpoint, method: str, fields: Mapping[str, object]) -> bool:
    return (
        endpoint.dialect is Dialect.PERMISSIONS
        and method == "POST"
        and endpoint.name not in READ_OPERATIONS
        and fields.get("action") not in READ_ACTIONS
    )


def request_rows(operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[FieldRow]:
    for parameter in operation.get("parameters", ()):
        place = {"path": "path", "header": "header"}.get(parameter["in"], "")
        kind = kind_of(parameter["schema"], schemas)
        yield FieldRow(
            name=parameter["name"],
            kind=f"{kind}, {place}" if place else kind,
            required=parameter["required"],
            description=parameter.get("description", ""),
        )
    yield from content_rows(operation.get("requestBody", {}), schemas)


def content_rows(part: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[FieldRow]:
    """Yield the fields of a body, each once with all its kinds; bodies of several shapes share some."""
    rows: dict[str, list[FieldRow]] = {}
    for content in part.get("content", {}).values():
        for row in schema_rows(content["schema"], schemas):
            rows.setdefault(row.name, []).append(row)
    for name, same in rows.items():
        kinds = dict.fromkeys(row.kind for row in same)
        yield FieldRow(name=name, kind=" | ".join(kinds), required=all(row.required for row in same))


def schema_rows(
    schema: Mapping[str, Any], schemas: Mapping[str, Any], prefix: str = "", depth: int = 0
) -> Iterator[FieldRow]:
    for shape in object_shapes(schema, schemas):
        for name, member in shape["properties"].items():
            yield FieldRow(
                name=f"{prefix}{name}", kind=kind_of(member, schemas), required=name in shape.get("required", ())
            )
            if depth < MAX_DEPTH:
                yield from schema_rows(member, schemas, f"{prefix}{name}.", depth + 1)


def object_shapes(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects with named fields that a value, or an entry of a list, may be."""
    if "$ref" in schema:
        yield from object_shapes(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    elif schema.get("properties"):
        yield schema
    elif isinstance(schema.get("items"), dict):
        yield from object_shapes(schema["items"], schemas)
    for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from object_shapes(choice, schemas)


def kind_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """Return the type in a few words."""
    if "$ref" in schema:
        return kind_of(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if choices := [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
        kinds = dict.fromkeys(kind_of(choice, schemas) for choice in choices)
        return " or ".join(kind for kind in kinds if kind != "null")
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"] if value != "")
    if schema.get("type") == "array":
        items = schema.get("items")
        return f"list of {kind_of(items, schemas)}" if isinstance(items, dict) and items else "list"
    return str(schema.get("type", "any"))
