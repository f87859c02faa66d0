"""What rules and roles were: each save, what it changed, any two side by side, and back to one of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.paging import Page
from gatehouse.admin.model.schema_versions import SchemaVersionStore
from gatehouse.admin.past_schemas import schema_at_version
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.permissions.commands.schema_documents import full_schema_document
from gatehouse.permissions.documents.differences import differences
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.schema_version import Difference, PastSchema, SchemaVersion
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head, application_path
from gatehouse.web.console.applications.reviews import ConfirmationPrompt, SchemaReview
from gatehouse.web.console.applications.rule_forms import ConfirmedForm, may_change_rules
from gatehouse.web.console.applications.schema_files import importable_part
from gatehouse.web.console.desk import AdminRequest, ConsoleView
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import csv_file, read_list_query
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.parse import read_query
from gatehouse.web.permissions.app_schemas import whole_schema
from gatehouse.web.permissions.schema_versions import schema_versions_page

VERSIONS_TAB: Final = "versions"
VERSION_COLUMNS: Final = {
    "version": lambda saved: saved.version,
    "saved_at": lambda saved: saved.saved_at,
    "by": lambda saved: saved.actor,
    "changes": lambda saved: [f"{one.count} {one.what} {one.how}" for one in saved.changes],
}


class CompareQuery(msgspec.Struct, frozen=True, kw_only=True):
    old: int = 0
    new: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsContext(PageContext):
    template = "console/applications/versions.html"

    head: ApplicationHead
    found: Page[SchemaVersion]
    current: int
    may_restore: bool
    call: ApiCall


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareContext(PageContext):
    template = "console/applications/compare.html"

    head: ApplicationHead
    old: SchemaVersion
    new: SchemaVersion
    current: int
    changes: Sequence[Difference]
    may_restore: bool
    call: ApiCall  # of the newer one


class VersionScreens:
    def __init__(
        self, *, schemas: SchemaCommands, versions: SchemaVersionStore, schema_review: SchemaReview, view: ConsoleView
    ) -> None:
        self._schemas = schemas
        self._versions = versions
        self._schema_review = schema_review
        self._view = view

    async def list(self, request: Request, admin: AdminRequest) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_GET)
        query = read_list_query(request)
        found = await self._versions.versions(model.application.application_id, query.page_request)
        if query.is_file:
            return csv_file(f"versions-{model.application.application_id}", VERSION_COLUMNS, found.rows)
        context = VersionsContext(
            head=application_head(admin, model, VERSIONS_TAB),
            found=found,
            current=model.schema.version,
            may_restore=may_change_rules(admin, model),
            call=versions_call(model, found),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def compare(self, request: Request, admin: AdminRequest) -> Response:
        """The older one first, however they were asked for."""
        model = admin.authenticated.require_application(Operation.SCHEMA_GET)
        query = read_query(request, CompareQuery)
        old = await self._load_version(admin, min(query.old, query.new))
        new = await self._load_version(admin, max(query.old, query.new))
        context = CompareContext(
            head=application_head(admin, model, VERSIONS_TAB),
            old=old.saved,
            new=new.saved,
            current=model.schema.version,
            changes=await run_off_loop(OFF_LOOP_WEIGHT, differences, old.model, new.model),
            may_restore=may_change_rules(admin, model),
            call=ApiCall(
                path="meta/schema",
                body={
                    "action": "get",
                    "application_id": model.application.application_id,
                    "options": {"version": new.saved.version},
                },
                record=whole_schema(new.model),
            ),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def confirm_restore(self, request: Request, admin: AdminRequest) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        past = await self._load_version(admin, request.path_params["version"])
        path = application_path(model.application.application_id, VERSIONS_TAB)
        question = ConfirmationPrompt(
            name="restore",
            tab=VERSIONS_TAB,
            action=f"{path}/{past.saved.version}/restore",
            back=path,
            fields=[("version", str(model.schema.version)), ("confirmed", "yes")],
            about=str(past.saved.version),
        )
        given = restored_document(past, admin.actor) | {"version": model.schema.version}
        return await self._schema_review.render(request, admin, model, given, question)

    async def restore(self, request: Request, admin: AdminRequest, form: ConfirmedForm) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        past = await self._load_version(admin, request.path_params["version"])
        await self._schemas.save(admin.actor, model, restored_document(past, admin.actor) | {"version": form.version})
        return self._view.redirect_with_flash(
            application_path(model.application.application_id, VERSIONS_TAB), "version_restored"
        )

    async def _load_version(self, admin: AdminRequest, version: int) -> PastSchema:
        """For whoever may read the schema: going back to it shows what it was as well."""
        return await schema_at_version(
            self._versions, admin.authenticated.require_application(Operation.SCHEMA_GET), version
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        desk, path = self._view, "/applications/{application_id:int}/versions"
        return [
            desk.page(path, self.list),
            desk.page(f"{path}/compare", self.compare),
            desk.page(f"{path}/{{version:int}}/restore", self.confirm_restore, fresh=True),
            desk.form(f"{path}/{{version:int}}/restore", ConfirmedForm, self.restore, fresh=True),
        ]


def versions_call(model: ApplicationModel, found: Page[SchemaVersion]) -> ApiCall:
    about = {"application_id": model.application.application_id, "data": {"page": found.number}}
    return ApiCall(path="meta/schema/versions", body={"action": "get", **about}, record=schema_versions_page(found))


def restored_document(past: PastSchema, actor: Actor) -> dict[str, object]:
    """The old document, whole, as an ordinary save."""
    roles = {key: replace(role, version=1) for key, role in past.model.roles.items()}
    return importable_part(full_schema_document(replace(past.model, roles=roles)), actor)
