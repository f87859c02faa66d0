"""Who may sign in to an application at all: the rules `can` and `cannot` (interface §2.8)."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.api_calls import readable_schema_call
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head, application_path
from gatehouse.web.console.applications.rule_forms import RULES_TAB, YES, checkbox_value, leaf_document, login_leaf
from gatehouse.web.console.desk import AdminRequest, ConsoleView, FormProblem
from gatehouse.web.console.editing import FieldConflict, field_conflicts
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import CsrfForm


class LoginRulesForm(CsrfForm, frozen=True, kw_only=True):
    can: str = ""
    cannot: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRulesContext(PageContext):
    template = "console/applications/login_rules.html"

    head: ApplicationHead
    form: LoginRulesForm
    version: int
    call: ApiCall | None
    problem: FormProblem | None = None
    clashes: tuple[FieldConflict, ...] = ()


class LoginRuleScreens:
    def __init__(self, *, schemas: SchemaCommands, view: ConsoleView) -> None:
        self._schemas = schemas
        self._view = view

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        return self._render_form(request, admin, model, login_rules_form(model))

    async def save(self, request: Request, admin: AdminRequest, form: LoginRulesForm) -> Response:  # noqa: ARG002
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        login = {
            name: leaf_document(login_leaf(model, name)) | {"value": value == YES}
            for name, value in (("can", form.can), ("cannot", form.cannot))
        }
        await self._schemas.save(admin.actor, model, {"login": login, "version": form.version})
        return self._view.redirect_with_flash(application_path(model.application.application_id, RULES_TAB), "saved")

    async def rerender_form(
        self, request: Request, admin: AdminRequest, form: LoginRulesForm, problem: FormProblem
    ) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        return self._render_form(request, admin, model, form, problem)

    def _render_form(
        self,
        request: Request,
        admin: AdminRequest,
        model: ApplicationModel,
        form: LoginRulesForm,
        problem: FormProblem | None = None,
    ) -> Response:
        stale = problem is not None and problem.is_conflict and form.version != model.schema.version
        context = LoginRulesContext(
            head=application_head(admin, model, RULES_TAB),
            form=form,
            version=model.schema.version if stale else form.version,
            call=readable_schema_call(admin.authenticated, model),
            problem=problem,
            clashes=field_conflicts(form, login_rules_form(model)) if stale else (),
        )
        return self._view.render(request, admin, ENTRY, context, status=problem.status if problem else None)

    def routes(self) -> Sequence[ConsoleRoute]:
        desk, path = self._view, "/applications/{application_id:int}/rules/login"
        return [desk.page(path, self.show), desk.form(path, LoginRulesForm, self.save, rerender=self.rerender_form)]


def login_rules_form(model: ApplicationModel) -> LoginRulesForm:
    return LoginRulesForm(
        can=checkbox_value(value=login_leaf(model, "can").value),
        cannot=checkbox_value(value=login_leaf(model, "cannot").value),
        version=model.schema.version,
    )
