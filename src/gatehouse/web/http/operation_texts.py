"""Descriptions and examples of the operations (operations.toml), and an example as the request that is sent.

The responses of the examples are in operation_responses.json, shortened: "…" stands for any text.
tests/wire/test_openapi_examples.py compares them with what the service answers, and writes them anew.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from shlex import quote as shell_quote
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import BodyKind
from gatehouse.web.http.routing import Endpoint, RequiredAuth

TEXTS_FILE: Final = "operations.toml"
RESPONSES_FILE: Final = "operation_responses.json"
WORD_SECTIONS: Final = ("placeholders", "variables")
NO_BODY: Final = frozenset({"GET", "HEAD"})
PATH_PARAMETER: Final = re.compile(r"\{([a-zA-Z_]+)(:[a-z]+)?\}")
QUOTED_PLACEHOLDER: Final = re.compile(r"%7B([a-z_]+)%7D")
BEARER_VARIABLES: Final[Mapping[RequiredAuth, str]] = {
    RequiredAuth.ACCESS_TOKEN: "ACCESS_TOKEN",
    RequiredAuth.USER_JWT: "JWT",
    RequiredAuth.USER_JWT_AND_FACTOR: "JWT",
    RequiredAuth.USER_OR_APPLICATION: "JWT",
    RequiredAuth.ACCESS_KEY: "ACCESS_KEY",
}
NEEDS_FACTOR: Final = frozenset({RequiredAuth.USER_JWT_AND_FACTOR, RequiredAuth.USER_OR_APPLICATION})

Fields = Mapping[str, Any]


class ExampleResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The response to an example, shortened."""

    status: int
    location: str = ""
    body: Any = msgspec.UNSET  # where it is JSON

    @property
    def text(self) -> str:
        """The response as a person reads it."""
        lines = [f"{self.status} {HTTPStatus(self.status).phrase}"]
        if self.location:
            lines.append(f"Location: {self.location}")
        if self.body is not msgspec.UNSET:
            lines += ["", msgspec.json.format(msgspec.json.encode(self.body), indent=2).decode()]
        return "\n".join(lines)


class OperationText(msgspec.Struct, frozen=True, kw_only=True):
    description: str = ""
    examples: Mapping[str, Fields] = msgspec.field(default_factory=dict)
    responses: Mapping[str, ExampleResponse] = msgspec.field(default_factory=dict)  # by the title of the example


class OperationTexts(msgspec.Struct, frozen=True, kw_only=True):
    operations: Mapping[str, OperationText]  # by the name of the endpoint
    placeholders: Mapping[str, str]  # what an example has in braces, and where the value comes from
    variables: Mapping[str, str]  # the credentials in the lines for a shell

    def about(self, endpoint: Endpoint) -> OperationText:
        return self.operations.get(endpoint.name, OperationText())


@cache
def operation_texts() -> OperationTexts:
    """Read the file, once per process and not before a document is asked for."""
    content = tomllib.loads((files("gatehouse.web.http") / TEXTS_FILE).read_text("utf-8"))
    placeholders, variables = (content.pop(section) for section in WORD_SECTIONS)
    responses = example_responses()
    return OperationTexts(
        operations={
            name: OperationText(
                description=text["description"],
                examples={title: msgspec.json.decode(fields) for title, fields in text["examples"].items()},
                responses=responses.get(name, {}),
            )
            for name, text in content.items()
        },
        placeholders=placeholders,
        variables=variables,
    )


def example_responses() -> Mapping[str, Mapping[str, ExampleResponse]]:
    """The responses by the name of the endpoint and the title of the example."""
    content = (files("gatehouse.web.http") / RESPONSES_FILE).read_bytes()
    return msgspec.json.decode(content, type=dict[str, dict[str, ExampleResponse]])


class ExampleRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One example of an operation, as it is sent."""

    title: str
    method: str
    target: str  # the path and the query
    headers: Mapping[str, str]
    auth: RequiredAuth
    body_kind: BodyKind | None = None
    fields: Fields = msgspec.field(default_factory=dict)  # of the body

    @property
    def body(self) -> str:
        """The body as a person edits it: JSON, or one field of a form per line."""
        if self.body_kind is BodyKind.JSON:
            return msgspec.json.format(msgspec.json.encode(self.fields), indent=2).decode()
        return "\n".join(f"{name}={value}" for name, value in self.fields.items())

    def curl(self, base_url: str) -> str:
        """The line for a shell that has the credentials in variables."""
        options = [*credential_options(self.auth), *(f"-H '{name}: {self.headers[name]}'" for name in self.headers)]
        if self.body_kind is BodyKind.JSON:
            options += [f"-H 'Content-Type: {BodyKind.JSON.value}'", f"-d {shell_quote(self.body)}"]
        elif self.body_kind is not None:
            options += [f"--data-urlencode {shell_quote(f'{name}={value}')}" for name, value in self.fields.items()]
        sent = "" if self.method == "GET" else f"-X {self.method} "
        return " \\\n  ".join([f"curl {sent}'{base_url}{self.target}'", *options])


def credential_options(auth: RequiredAuth) -> Iterator[str]:
    if auth is RequiredAuth.CLIENT:
        yield '-u "$CLIENT_ID:$CLIENT_SECRET"'
    if variable := BEARER_VARIABLES.get(auth):
        yield f'-H "Authorization: Bearer ${variable}"'
    if auth in NEEDS_FACTOR:
        yield '-H "Factor: $FACTOR"'


def example_requests(endpoint: Endpoint, method: str, text: OperationText) -> list[ExampleRequest]:
    return [example_request(endpoint, method, title, fields) for title, fields in text.examples.items()]


def example_request(endpoint: Endpoint, method: str, title: str, fields: Fields) -> ExampleRequest:
    in_path = {found[1] for found in PATH_PARAMETER.finditer(endpoint.path)}
    path = PATH_PARAMETER.sub(lambda found: percent_encode(fields[found[1]]), endpoint.path)
    headers = {name: value for name, value in fields.items() if name in endpoint.headers}
    rest = {name: value for name, value in fields.items() if name not in in_path and name not in endpoint.headers}
    has_body = endpoint.request is not None and method not in NO_BODY
    query = "" if has_body else QUOTED_PLACEHOLDER.sub(r"{\1}", urlencode(rest, doseq=True))
    return ExampleRequest(
        title=title,
        method=method,
        target=f"{path}?{query}" if query else path,
        headers=headers,
        auth=endpoint.auth,
        body_kind=body_kind(endpoint) if has_body else None,
        fields=rest if has_body else {},
    )


def body_kind(endpoint: Endpoint) -> BodyKind:
    """JSON, unless the standard says a form (RFC 6749 §3.2)."""
    has_json = BodyKind.JSON in endpoint.accepts and endpoint.dialect is not Dialect.OAUTH
    return BodyKind.JSON if has_json else BodyKind.FORM


def percent_encode(value: object) -> str:
    return QUOTED_PLACEHOLDER.sub(r"{\1}", quote(str(value), safe=""))
