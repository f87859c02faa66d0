from typing import Any

import msgspec
from msgspec.structs import replace

from gatehouse.web.http import openapi
from gatehouse.web.http.operation_texts import OperationTexts
from gatehouse.web.http.routing import Endpoint
from tests.support.sample_asgi_app import SampleAsgiApp, call_app, sample_endpoints


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    text: str
    after: int = 0


NO_TEXTS = OperationTexts(operations={}, placeholders={}, variables={})


def document_of(endpoints: list[Endpoint]) -> Any:
    made = openapi.openapi_document(endpoints, base_url="https://id.example", version="1.2.3", texts=NO_TEXTS)
    return msgspec.json.decode(made)


def test_the_document_tells_every_endpoint_that_is_not_hidden() -> None:
    schema = document_of(sample_endpoints())
    assert (schema["openapi"], schema["info"]["version"]) == ("3.1.0", "1.2.3")
    assert schema["servers"] == [{"url": "https://id.example"}]
    assert list(schema["paths"]) == [
        "/proxy/oauth/token",
        "/proxy/oauth/keys",
        "/proxy/api/gameSession/getGsid",
        "/api/permissions/application/publicKey/{key_id}",
        "/api/permissions/roles",
    ]
    groups = [operation["tags"] for path in schema["paths"].values() for operation in path.values()]
    assert groups == [["Tokens"], ["Keys and discovery"], ["Game login"], ["Keys and discovery"], ["Permissions"]]
    described = {tag["name"] for tag in schema["tags"] if tag["description"]}
    assert {name for names in groups for name in names} <= described


def test_an_operation_says_what_goes_in_and_what_comes_out() -> None:
    schema = document_of(sample_endpoints())
    operation = schema["paths"]["/api/permissions/roles"]["post"]
    assert (operation["operationId"], operation["summary"]) == ("permissions.roles", "Read, save or delete a role")
    body = {"application/json": {"schema": {"$ref": "#/components/schemas/RoleSave"}}}
    assert operation["requestBody"] == {"content": body, "required": True}
    statuses = [200, 400, 401, 403, 404, 409, 413, 414, 415, 429, 431, 503]
    assert list(operation["responses"]) == list(map(str, statuses))
    failure = operation["responses"]["403"]["content"]["application/json"]["schema"]
    assert failure == {"$ref": "#/components/schemas/Failure"}
    assert operation["security"] == [{"userJwt": [], "factor": []}, {"userJwt": [], "serviceJwt": []}]
    assert schema["components"]["schemas"]["Role"]["additionalProperties"] is False


class Keep(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="action", tag="keep"):
    until: int


class Drop(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="action", tag="drop"):
    reason: str = ""


def test_each_action_of_an_endpoint_has_a_schema_of_its_own() -> None:
    [roles] = [one for one in sample_endpoints() if one.path == "/api/permissions/roles"]
    schema = document_of([replace(roles, request=Keep | Drop)])
    body = schema["paths"]["/api/permissions/roles"]["post"]["requestBody"]
    assert body["required"]
    choice = body["content"]["application/json"]["schema"]
    assert choice["discriminator"]["propertyName"] == "action"
    assert choice["discriminator"]["mapping"].keys() == {"keep", "drop"}
    keep = schema["components"]["schemas"]["Keep"]
    assert (keep["properties"]["action"], keep["required"]) == ({"enum": ["keep"]}, ["action", "until"])


def test_each_kind_of_body_an_endpoint_reads_is_listed() -> None:
    operation = document_of(sample_endpoints())["paths"]["/proxy/api/gameSession/getGsid"]["post"]
    assert list(operation["requestBody"]["content"]) == [
        "application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ]


def test_parameters_of_path_and_query_are_told() -> None:
    search = replace(sample_endpoints()[4], request=Search)
    operation = document_of([search])["paths"]["/api/permissions/application/publicKey/{key_id}"]["get"]
    assert "requestBody" not in operation
    assert [(item["name"], item["in"], item["required"]) for item in operation["parameters"]] == [
        ("key_id", "path", True),
        ("text", "query", True),
        ("after", "query", False),
    ]


def test_every_schema_reference_resolves() -> None:
    schema = document_of(sample_endpoints())
    text = msgspec.json.encode(schema["paths"]).decode() + msgspec.json.encode(schema["components"]).decode()
    names = {piece.partition('"')[0] for piece in text.split('"$ref":"#/components/schemas/')[1:]}
    assert names
    assert names <= set(schema["components"]["schemas"])
    schemes = {
        name for item in schema["paths"].values() for op in item.values() for one in op["security"] for name in one
    }
    assert schemes <= set(schema["components"]["securitySchemes"])


def test_the_same_table_gives_the_same_bytes() -> None:
    first = openapi.openapi_document(sample_endpoints(), base_url="https://id.example", version="1")
    assert first == openapi.openapi_document(sample_endpoints(), base_url="https://id.example", version="1")


async def test_the_document_is_served() -> None:
    table = sample_endpoints()
    made = openapi.openapi_document(table, base_url="https://id.example", version="1")
    app = SampleAsgiApp(endpoints=[*table, openapi.document_endpoint(lambda: made)]).app()
    document = await call_app(app, "GET", "/openapi.json")
    assert (document.status, document.headers["content-type"], document.body) == (200, "application/json", made)
