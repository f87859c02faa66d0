"""Who may sign in to an application at all: the rules `can` and `cannot` (interface §2.8)."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.app_schemas import AppSchemas
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.api_calls import readable_schema_call
from gatehouse.web.console.applications.head import HERE, ApplicationHead, head, path_of
from gatehouse.web.console.applications.rule_forms import TAB, YES, leaf_document, login_leaf, said
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.editing import Clash, clashes
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded


class LoginForm(Guarded, frozen=True, kw_only=True):
    can: str = ""
    cannot: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginContext(PageContext):
    template = "console/applications/login_rules.html"

    head: ApplicationHead
    form: LoginForm
    version: int
    call: ApiCall | None
    problem: Problem | None = None
    clashes: tuple[Clash, ...] = ()


class LoginRuleScreens:
    def __init__(self, *, schemas: AppSchemas, desk: ConsoleDesk) -> None:
        self._schemas = schemas
        self._desk = desk

    async def show(self, request: Request, guest: Guest) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        return self._login(request, guest, model, login_form(model))

    async def save(self, request: Request, guest: Guest, form: LoginForm) -> Response:  # noqa: ARG002
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        login = {
            name: leaf_document(login_leaf(model, name)) | {"value": value == YES}
            for name, value in (("can", form.can), ("cannot", form.cannot))
        }
        await self._schemas.save(guest.actor, model, {"login": login, "version": form.version})
        return self._desk.done(path_of(model.application.application_id, TAB), "saved")

    async def again(self, request: Request, guest: Guest, form: LoginForm, problem: Problem) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        return self._login(request, guest, model, form, problem)

    def _login(
        self,
        request: Request,
        guest: Guest,
        model: ApplicationModel,
        form: LoginForm,
        problem: Problem | None = None,
    ) -> Response:
        stale = problem is not None and problem.is_conflict and form.version != model.schema.version
        context = LoginContext(
            head=head(guest, model, TAB),
            form=form,
            version=model.schema.version if stale else form.version,
            call=readable_schema_call(guest.standing, model),
            problem=problem,
            clashes=clashes(form, login_form(model)) if stale else (),
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[Screen]:
        desk, path = self._desk, "/applications/{application_id:int}/rules/login"
        return [desk.shown(path, self.show), desk.posted(path, LoginForm, self.save, again=self.again)]


def login_form(model: ApplicationModel) -> LoginForm:
    return LoginForm(
        can=said(value=login_leaf(model, "can").value),
        cannot=said(value=login_leaf(model, "cannot").value),
        version=model.schema.version,
    )
