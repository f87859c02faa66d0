"""POST /api/permissions/meta/schema/versions: what each save of a schema changed, by whom (interface §4.14)."""

from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.paging import Page, wanted
from gatehouse.admin.model.schema_versions import SchemaVersionStore
from gatehouse.permissions.callers.credentials import ABOUT_APPLICATION
from gatehouse.permissions.documents.spelling import ApplicationId
from gatehouse.permissions.model.schema_version import SchemaVersion
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.app_schemas import id_of
from gatehouse.web.permissions.credentials import Asked
from gatehouse.web.permissions.envelope import answer, post
from gatehouse.web.permissions.front_desk import FrontDesk
from gatehouse.web.permissions.moments import moment
from gatehouse.web.routes.table import Endpoint


class VersionsData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    page: int = 1


class VersionsRequest(Asked, frozen=True, kw_only=True):
    action: Literal["get"]
    application_id: ApplicationId | None = None
    data: VersionsData = VersionsData()


class ChangesEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of one kind since the previous version, with examples."""

    what: str
    how: str
    count: int
    names: tuple[str, ...]


class VersionEntry(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    saved: str
    by: str  # as the audit log names him; empty where nobody knows any more
    nick: str | None
    changes: tuple[ChangesEntry, ...]


class VersionsPage(msgspec.Struct, frozen=True, kw_only=True):
    versions: tuple[VersionEntry, ...]  # the newest first
    page: int
    total: int


class VersionsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: VersionsPage


class SchemaVersionsEndpoint:
    def __init__(self, *, versions: SchemaVersionStore, desk: FrontDesk) -> None:
        self._versions = versions
        self._desk = desk

    async def get(self, request: Request) -> Response:
        ask = await read_json(request, VersionsRequest)
        visit = await self._desk.visit(request, ask, ABOUT_APPLICATION, application_id=id_of(ask.application_id))
        application = visit.opened(Operation.SCHEMA_GET).application
        return answer(
            versions_page(await self._versions.versions(application.application_id, wanted("", ask.data.page)))
        )

    def endpoint(self) -> Endpoint:
        return post(
            "meta/schema/versions",
            self.get,
            name="schema_versions",
            request=VersionsRequest,
            section="interface §4.14",
            summary="List stored versions of an application's schema: get",
            answers=VersionsAnswer,
        )


def versions_page(found: Page[SchemaVersion]) -> VersionsPage:
    return VersionsPage(versions=tuple(map(version_entry, found.rows)), page=found.number, total=found.total)


def version_entry(saved: SchemaVersion) -> VersionEntry:
    return VersionEntry(
        version=saved.version,
        saved=moment(saved.saved_at),
        by=saved.actor,
        nick=saved.nick,
        changes=tuple(
            ChangesEntry(what=one.what.value, how=one.how.value, count=one.count, names=one.names)
            for one in saved.changes
        ),
    )
