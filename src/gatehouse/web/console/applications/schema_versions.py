"""All rules and roles as one JSON document: export, and import after a review of its changes."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gatehouse.admin.paging import Page
from gatehouse.admin.schema_versions import SchemaVersionStore, schema_at_version
from gatehouse.kernel.background import MAX_INLINE_WEIGHT, OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.permissions.commands.app_schemas import SchemaCommands, full_schema_document
from gatehouse.permissions.documents.differences import differences
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.work import model_work
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.schema_version import Difference, PastSchema, SchemaVersion
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.api.permissions.envelope import iter_json_chunks
from gatehouse.web.api.permissions.schema_versions import schema_versions_page
from gatehouse.web.api.permissions.schemas import whole_schema
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head, application_path
from gatehouse.web.console.applications.schema_changes import (
    ConfirmationPrompt,
    ConfirmedForm,
    SchemaReview,
    may_change_rules,
)
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved, named_application
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import NO_STORE
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

RULES_TAB: Final = "rules"
PIECE_LENGTH: Final = 15_000  # characters: a field holds 64 KiB, and none of them is longer than four bytes
IGNORED_FIELDS: Final = frozenset({"application_id", "version", "updated_at"})


class ImportSchemaForm(CsrfForm, frozen=True, kw_only=True):
    document: tuple[str, ...] = ()  # in pieces, where it is too long for one field
    version: int = 0
    confirmed: str = ""

    @property
    def text(self) -> str:
        return "".join(self.document)


class ImportSchemaContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/import.html"

    head: ApplicationHead
    version: int


class SchemaFileScreens:
    def __init__(self, *, schemas: SchemaCommands, schema_review: SchemaReview, view: ConsoleView) -> None:
        self._schemas = schemas
        self._schema_review = schema_review
        self._view = view

    async def export(self, request: Request, admin: AdminRequest) -> Response:  # noqa: ARG002
        model = admin.authenticated.require_application(Operation.SCHEMA_GET)
        name = f"schema-{model.application.application_id}-{model.schema.version}.json"
        headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="{name}"'}
        if await model_work(model) > MAX_INLINE_WEIGHT:
            body = iter_json_chunks(partial(full_schema_document, model))
            return StreamingResponse(body, 200, headers, media_type="application/json")
        return Response(format_document(full_schema_document(model)), 200, headers, media_type="application/json")

    async def _import(
        self, request: Request, admin: AdminRequest, model: ApplicationModel, form: ImportSchemaForm
    ) -> Saved | Response:
        given = importable_part(await run_off_loop(OFF_LOOP_WEIGHT, parse_document, form.text), admin.actor) | {
            "version": form.version
        }
        path = application_path(model.application.application_id, RULES_TAB)
        if form.confirmed:
            await self._schemas.save(admin.actor, model, given)
            return Saved(address=path, message="imported")
        question = ConfirmationPrompt(
            name="import",
            tab=RULES_TAB,
            action=f"{path}/import",
            back=path,
            fields=[
                *(("document", piece) for piece in split_text(form.text)),
                ("version", str(form.version)),
                ("confirmed", "yes"),
            ],
        )
        return await self._schema_review.render(request, admin, model, given, question)

    async def _import_page(
        self, _request: Request, admin: AdminRequest, model: ApplicationModel, _draft: FormDraft[ImportSchemaForm]
    ) -> ImportSchemaContext:
        """After a conflict the next try is about what is stored now: its differences are shown before it is saved."""
        return ImportSchemaContext(head=application_head(admin, model, RULES_TAB), version=model.schema.version)

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/applications/{application_id:int}/rules"
        upload = EditScreen(
            view=view,
            path=f"{path}/import",
            form=ImportSchemaForm,
            load=named_application(Operation.SCHEMA_SAVE),
            form_of=lambda model: ImportSchemaForm(version=model.schema.version),
            page=self._import_page,
            save=self._import,
            creates=True,
        )
        return [view.page(f"{path}/export", self.export), *upload.routes()]


def format_document(document: Mapping[str, object]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def parse_document(text: str) -> Mapping[str, object]:
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Malformed(f"Enter a schema as JSON: {error}").on_screen("json_schema", error=error) from None


def importable_part(document: Mapping[str, object], actor: Actor) -> dict[str, object]:
    """The part of a document that is saved; system rules are for administrators (R6)."""
    left = IGNORED_FIELDS if actor.rights.administers else IGNORED_FIELDS | {"secret_data"}
    return {name: value for name, value in document.items() if name not in left}


def split_text(text: str) -> Sequence[str]:
    return [text[start : start + PIECE_LENGTH] for start in range(0, len(text), PIECE_LENGTH)]


# Past versions of rules and roles: the list, a comparison of two, and restoring one.


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


class VersionsContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/versions.html"

    head: ApplicationHead
    found: Page[SchemaVersion]
    current: int
    may_restore: bool
    call: ApiCall


class CompareContext(PageContext, frozen=True, kw_only=True):
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

    async def _list(self, _request: Request, admin: AdminRequest, query: ListQuery) -> VersionsContext:
        model = admin.authenticated.require_application(Operation.SCHEMA_GET)
        found = await self._versions.versions(model.application.application_id, query.page_request)
        return VersionsContext(
            head=application_head(admin, model, VERSIONS_TAB),
            found=found,
            current=model.schema.version,
            may_restore=may_change_rules(admin, model),
            call=versions_call(model, found),
        )

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
        """Needs the right to read the schema, because restoring a version shows it."""
        return await schema_at_version(
            self._versions, admin.authenticated.require_application(Operation.SCHEMA_GET), version
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/applications/{application_id:int}/versions"
        versions = ListScreen(view=view, path=path, query=ListQuery, page=self._list, file=versions_file)
        return [
            *versions.routes(),
            view.page(f"{path}/compare", self.compare),
            view.page(f"{path}/{{version:int}}/restore", self.confirm_restore, fresh=True),
            view.form(f"{path}/{{version:int}}/restore", ConfirmedForm, self.restore, fresh=True),
        ]


def versions_file(page: VersionsContext) -> CsvFile[SchemaVersion]:
    return CsvFile(name=f"versions-{page.head.application_id}", columns=VERSION_COLUMNS, rows=page.found.rows)


def versions_call(model: ApplicationModel, found: Page[SchemaVersion]) -> ApiCall:
    about = {"application_id": model.application.application_id, "data": {"page": found.number}}
    return ApiCall(path="meta/schema/versions", body={"action": "get", **about}, record=schema_versions_page(found))


def restored_document(past: PastSchema, actor: Actor) -> dict[str, object]:
    """The old document, whole, as an ordinary save."""
    roles = {key: replace(role, version=1) for key, role in past.model.roles.items()}
    return importable_part(full_schema_document(replace(past.model, roles=roles)), actor)
