"""All rules and roles as one JSON document: taken out, and put back after a look at what it would change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gatehouse.kernel.background import HEAVY, LIGHT, run_off_loop
from gatehouse.permissions.commands.app_schemas import AppSchemas
from gatehouse.permissions.commands.schema_documents import whole_document
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.weighing import model_work
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import HERE, ApplicationHead, head, path_of
from gatehouse.web.console.applications.reviews import Question, Reviews
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.permissions.encoding import chunks
from gatehouse.web.responses import NO_STORE

TAB: Final = "rules"
PIECE: Final = 15_000  # characters: a field holds 64 KiB, and none of them is longer than four bytes
NOT_TAKEN: Final = frozenset({"application_id", "version", "updated_at"})


class ImportForm(Guarded, frozen=True, kw_only=True):
    document: tuple[str, ...] = ()  # in pieces, where it is too long for one field
    version: int = 0
    confirmed: str = ""

    @property
    def text(self) -> str:
        return "".join(self.document)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportContext(PageContext):
    template = "console/applications/import.html"

    head: ApplicationHead
    text: str
    version: int
    problem: Problem | None = None


class SchemaFiles:
    def __init__(self, *, schemas: AppSchemas, reviews: Reviews, desk: ConsoleDesk) -> None:
        self._schemas = schemas
        self._reviews = reviews
        self._desk = desk

    async def take_out(self, request: Request, guest: Guest) -> Response:  # noqa: ARG002
        model = guest.standing.opened(Operation.SCHEMA_GET)
        name = f"schema-{model.application.application_id}-{model.schema.version}.json"
        headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="{name}"'}
        if await model_work(model) > LIGHT:
            body = chunks(partial(whole_document, model))
            return StreamingResponse(body, 200, headers, media_type="application/json")
        return Response(written(whole_document(model)), 200, headers, media_type="application/json")

    async def ask(self, request: Request, guest: Guest) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        return self._form(request, guest, model, ImportForm(version=model.schema.version))

    async def put_back(self, request: Request, guest: Guest, form: ImportForm) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        given = taken(await run_off_loop(HEAVY, read, form.text), guest.actor) | {"version": form.version}
        path = path_of(model.application.application_id, TAB)
        if form.confirmed:
            await self._schemas.save(guest.actor, model, given)
            return self._desk.done(path, "imported")
        question = Question(
            name="import",
            tab=TAB,
            action=f"{path}/import",
            back=path,
            fields=[
                *(("document", piece) for piece in pieces(form.text)),
                ("version", str(form.version)),
                ("confirmed", "yes"),
            ],
        )
        return await self._reviews.show(request, guest, model, given, question)

    async def again(self, request: Request, guest: Guest, form: ImportForm, problem: Problem) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        return self._form(request, guest, model, form, problem)

    def _form(
        self,
        request: Request,
        guest: Guest,
        model: ApplicationModel,
        form: ImportForm,
        problem: Problem | None = None,
    ) -> Response:
        """After a conflict the next try is about what is stored now: its differences are shown before it is saved."""
        context = ImportContext(
            head=head(guest, model, TAB), text=form.text, version=model.schema.version, problem=problem
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[Screen]:
        desk, path = self._desk, "/applications/{application_id:int}/rules"
        return [
            desk.shown(f"{path}/export", self.take_out),
            desk.shown(f"{path}/import", self.ask),
            desk.posted(f"{path}/import", ImportForm, self.put_back, again=self.again),
        ]


def written(document: Mapping[str, object]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def read(text: str) -> Mapping[str, object]:
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Malformed(f"Enter a schema as JSON: {error}") from None


def taken(document: Mapping[str, object], actor: Actor) -> dict[str, object]:
    """What of a document is saved; system rules are for who administers (R6)."""
    left = NOT_TAKEN if actor.rights.administers else NOT_TAKEN | {"secret_data"}
    return {name: value for name, value in document.items() if name not in left}


def pieces(text: str) -> Sequence[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
