"""POST /api/permissions/meta/schema/versions: what each save of a schema changed, by whom (interface §4.14)."""

from typing import Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.paging import Page, page_request
from gatehouse.admin.schema_versions import SchemaVersionStore
from gatehouse.kernel.times import iso8601
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import ABOUT_APPLICATION
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.model.schema_version import SchemaVersion
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.api.permissions.authentication import CredentialFields, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, permission_endpoint
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import Endpoint


class SchemaVersionsData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    page: int = 1


class SchemaVersionsRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get"]
    application_id: ApplicationId | None = None
    data: SchemaVersionsData = SchemaVersionsData()


class SchemaChangesEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of one kind since the previous version, with examples."""

    what: str
    how: str
    count: int
    names: tuple[str, ...]


class SchemaVersionEntry(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    saved: str
    by: str  # the actor as in the audit log; empty where it is no longer known
    nick: str | None
    changes: tuple[SchemaChangesEntry, ...]


class SchemaVersionsPage(msgspec.Struct, frozen=True, kw_only=True):
    versions: tuple[SchemaVersionEntry, ...]  # the newest first
    page: int
    total: int


class SchemaVersionsResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: SchemaVersionsPage


class SchemaVersionsEndpoint(Struct, kw_only=True, eq=False):
    versions: SchemaVersionStore
    authenticator: Authenticator

    async def get(self, request: Request) -> Response:
        body = await read_json(request, SchemaVersionsRequest)
        authenticated = await self.authenticator.authenticate(
            credentials_of(request, body),
            ABOUT_APPLICATION,
            application_id=parse_optional_application_id(body.application_id),
        )
        application = authenticated.require_application(Operation.SCHEMA_GET).application
        return data_response(
            schema_versions_page(
                await self.versions.versions(application.application_id, page_request("", body.data.page))
            )
        )

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "meta/schema/versions",
            self.get,
            name="schema_versions",
            request=SchemaVersionsRequest,
            section="interface §4.14",
            summary="List stored versions of an application's schema: get",
            answers=SchemaVersionsResponse,
        )


def schema_versions_page(versions: Page[SchemaVersion]) -> SchemaVersionsPage:
    return SchemaVersionsPage(
        versions=tuple(map(schema_version_entry, versions.rows)), page=versions.number, total=versions.total
    )


def schema_version_entry(saved: SchemaVersion) -> SchemaVersionEntry:
    return SchemaVersionEntry(
        version=saved.version,
        saved=iso8601(saved.saved_at),
        by=saved.actor,
        nick=saved.nick,
        changes=tuple(
            SchemaChangesEntry(what=change.what.value, how=change.how.value, count=change.count, names=change.names)
            for change in saved.changes
        ),
    )
