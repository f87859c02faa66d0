"""All rules and roles as one JSON document: taken out, and put back after a look at what it would change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gatehouse.kernel.background import MAX_INLINE_WEIGHT, OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.permissions.commands.schema_documents import full_schema_document
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.weighing import model_work
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head, application_path
from gatehouse.web.console.applications.reviews import ConfirmationPrompt, SchemaReview
from gatehouse.web.console.desk import AdminRequest, ConsoleView, FormProblem
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import CsrfForm
from gatehouse.web.permissions.encoding import iter_json_chunks
from gatehouse.web.responses import NO_STORE

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSchemaContext(PageContext):
    template = "console/applications/import.html"

    head: ApplicationHead
    text: str
    version: int
    problem: FormProblem | None = None


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

    async def show_import(self, request: Request, admin: AdminRequest) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        return self._render_import(request, admin, model, ImportSchemaForm(version=model.schema.version))

    async def import_document(self, request: Request, admin: AdminRequest, form: ImportSchemaForm) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        given = importable_part(await run_off_loop(OFF_LOOP_WEIGHT, parse_document, form.text), admin.actor) | {
            "version": form.version
        }
        path = application_path(model.application.application_id, RULES_TAB)
        if form.confirmed:
            await self._schemas.save(admin.actor, model, given)
            return self._view.redirect_with_flash(path, "imported")
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

    async def rerender_import(
        self, request: Request, admin: AdminRequest, form: ImportSchemaForm, problem: FormProblem
    ) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        return self._render_import(request, admin, model, form, problem)

    def _render_import(
        self,
        request: Request,
        admin: AdminRequest,
        model: ApplicationModel,
        form: ImportSchemaForm,
        problem: FormProblem | None = None,
    ) -> Response:
        """After a conflict the next try is about what is stored now: its differences are shown before it is saved."""
        context = ImportSchemaContext(
            head=application_head(admin, model, RULES_TAB),
            text=form.text,
            version=model.schema.version,
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context, status=problem.status if problem else None)

    def routes(self) -> Sequence[ConsoleRoute]:
        desk, path = self._view, "/applications/{application_id:int}/rules"
        return [
            desk.page(f"{path}/export", self.export),
            desk.page(f"{path}/import", self.show_import),
            desk.form(f"{path}/import", ImportSchemaForm, self.import_document, rerender=self.rerender_import),
        ]


def format_document(document: Mapping[str, object]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def parse_document(text: str) -> Mapping[str, object]:
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Malformed(f"Enter a schema as JSON: {error}") from None


def importable_part(document: Mapping[str, object], actor: Actor) -> dict[str, object]:
    """What of a document is saved; system rules are for who administers (R6)."""
    left = IGNORED_FIELDS if actor.rights.administers else IGNORED_FIELDS | {"secret_data"}
    return {name: value for name, value in document.items() if name not in left}


def split_text(text: str) -> Sequence[str]:
    return [text[start : start + PIECE_LENGTH] for start in range(0, len(text), PIECE_LENGTH)]
