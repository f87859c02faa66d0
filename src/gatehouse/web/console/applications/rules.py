"""The rules of an application: list, create, change, remove."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.paging import Page
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.permissions.documents.rules import meta_entries
from gatehouse.permissions.documents.trees import with_leaf
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rules import Rule, RuleDefinition, RuleSection
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head, application_path
from gatehouse.web.console.applications.schema_changes import (
    RULES_TAB,
    YES,
    ConfirmationPrompt,
    ConfirmedForm,
    RuleForm,
    RuleLine,
    SchemaReview,
    checkbox_value,
    leaf_document,
    line_matches,
    login_leaf,
    may_change_rules,
    parse_rule_name,
    requested_rule,
    rule_conflicts,
    rule_form_of,
    rule_from_form,
    rule_lines,
    rule_removal,
    rules_of,
    section_of,
)
from gatehouse.web.console.forms import FieldConflict, csv_file, field_conflicts, read_list_query
from gatehouse.web.console.frame import ApiCall, readable_schema_call, schema_call
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

RULES_PER_PAGE: Final = 100


RULE_COLUMNS: Final = {
    "rule": lambda line: line.name,
    "section": lambda line: line.rule.section.value,
    "value": lambda line: line.leaf.value,
    "protected": lambda line: line.leaf.protected,
    "description": lambda line: line.leaf.description,
    "roles": lambda line: line.roles,
}


class RulesContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/rules.html"

    head: ApplicationHead
    found: Page[RuleLine]
    groups: Sequence[tuple[str, RuleSection, Sequence[RuleLine]]]
    search: str
    may_change: bool
    login_can: RuleDefinition
    login_cannot: RuleDefinition
    updated_at: int
    version: int
    call: ApiCall


class RuleContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/rule.html"

    head: ApplicationHead
    rule: str  # "" for a new one
    form: RuleForm
    action: str
    roles: Sequence[str]  # that set it
    version: int
    call: ApiCall | None
    problem: FormProblem | None = None
    conflicts: tuple[FieldConflict, ...] = ()


class RuleScreens:
    def __init__(self, *, schemas: SchemaCommands, schema_review: SchemaReview, view: ConsoleView) -> None:
        self._schemas = schemas
        self._schema_review = schema_review
        self._view = view

    async def list(self, request: Request, admin: AdminRequest) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_GET)
        query = read_list_query(request)
        every = await run_off_loop(
            OFF_LOOP_WEIGHT, lambda: [line for line in rule_lines(model) if line_matches(line, query.q)]
        )
        if query.is_file:
            return csv_file(f"rules-{model.application.application_id}", RULE_COLUMNS, every)
        number = min(query.page_request.page, max(1, -(-len(every) // RULES_PER_PAGE)))
        rows = every[(number - 1) * RULES_PER_PAGE : number * RULES_PER_PAGE]
        context = RulesContext(
            head=application_head(admin, model, RULES_TAB),
            found=Page(rows=rows, total=len(every), number=number, size=RULES_PER_PAGE),
            groups=[
                (name, section, [*lines])
                for (section, name), lines in groupby(rows, key=lambda line: (line.rule.section, line.group))
            ],
            search=query.q,
            may_change=may_change_rules(admin, model),
            login_can=login_leaf(model, "can"),
            login_cannot=login_leaf(model, "cannot"),
            updated_at=model.schema.updated_at,
            version=model.schema.version,
            call=schema_call(model),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def new(self, request: Request, admin: AdminRequest) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        return self._render_form(request, admin, model, "", RuleForm(version=model.schema.version))

    async def add(self, request: Request, admin: AdminRequest, form: RuleForm) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        rule = rule_from_form(form)
        if rule in rules_of(model):
            raise Malformed(f"path: {rule.path} already exists")
        action = f"{application_path(model.application.application_id, RULES_TAB)}/new"
        return await self._save(request, admin, model, rule, form, action=action, needs_review=form.leaf.value)

    async def rerender_new(
        self, request: Request, admin: AdminRequest, form: RuleForm, problem: FormProblem
    ) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        return self._render_form(request, admin, model, "", form, problem=problem)

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        rule = requested_rule(request, model)
        return self._render_form(request, admin, model, str(rule), rule_form_of(model, rule))

    async def change(self, request: Request, admin: AdminRequest, form: RuleForm) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        rule = requested_rule(request, model)
        was, now = rules_of(model)[rule], form.leaf
        reviewed = was.value != now.value or (now.protected and not was.protected)
        action = f"{application_path(model.application.application_id, RULES_TAB)}/{rule}"
        return await self._save(request, admin, model, rule, form, action=action, needs_review=reviewed)

    async def rerender_form(
        self, request: Request, admin: AdminRequest, form: RuleForm, problem: FormProblem
    ) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        rule = requested_rule(request, model)
        return self._render_form(request, admin, model, str(rule), form, problem=problem)

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        rule, path = requested_rule(request, model), application_path(model.application.application_id, RULES_TAB)
        question = ConfirmationPrompt(
            name="remove_rule",
            tab=RULES_TAB,
            action=f"{path}/{rule}/remove",
            back=path,
            fields=[("version", str(model.schema.version))],
            about=str(rule),
        )
        return await self._schema_review.render(request, admin, model, rule_removal(model, rule), question)

    async def remove(self, request: Request, admin: AdminRequest, form: ConfirmedForm) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        given = rule_removal(model, requested_rule(request, model)) | {"version": form.version}
        await self._schemas.save(admin.actor, model, given)
        return self._view.redirect_with_flash(
            application_path(model.application.application_id, RULES_TAB), "rule_removed"
        )

    async def _save(
        self,
        request: Request,
        admin: AdminRequest,
        model: ApplicationModel,
        rule: Rule,
        form: RuleForm,
        *,
        action: str,
        needs_review: bool,
    ) -> Response:
        """Asks for confirmation first, if people gain or lose something."""
        tree = with_leaf(section_of(model, rule.section), rule.path, leaf_document(form.leaf))
        given = {rule.section.value: tree, "version": form.version}
        path = application_path(model.application.application_id, RULES_TAB)
        if not needs_review or form.confirmed:
            await self._schemas.save(admin.actor, model, given)
            return self._view.redirect_with_flash(path, "saved")
        names = (name for name in form.__struct_fields__ if name not in {"csrf", "confirmed"})
        fields = [(name, str(getattr(form, name))) for name in names]
        question = ConfirmationPrompt(
            name="save_rule",
            tab=RULES_TAB,
            action=action,
            back=path,
            fields=[*fields, ("confirmed", YES)],
            about=str(rule),
        )
        return await self._schema_review.render(request, admin, model, given, question)

    def _render_form(
        self,
        request: Request,
        admin: AdminRequest,
        model: ApplicationModel,
        rule: str,
        form: RuleForm,
        *,
        problem: FormProblem | None = None,
    ) -> Response:
        version = model.schema.version
        stale = problem is not None and problem.is_conflict and form.version != version

        def make() -> RuleContext:
            return RuleContext(
                head=application_head(admin, model, RULES_TAB),
                rule=rule,
                form=form,
                action=f"{application_path(model.application.application_id, RULES_TAB)}/{rule or 'new'}",
                roles=[role.name for role in model.roles.values() if rule in map(str, meta_entries(role.meta))],
                version=version if stale else form.version,
                call=readable_schema_call(admin.authenticated, model),
                problem=problem,
                conflicts=rule_conflicts(form, rule_form_of(model, parse_rule_name(rule))) if stale and rule else (),
            )

        return self._view.render_off_loop(request, admin, ENTRY, make, status=problem.status if problem else None)

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/applications/{application_id:int}/rules"
        return [
            view.page(path, self.list),
            view.page(f"{path}/new", self.new),
            view.form(f"{path}/new", RuleForm, self.add, rerender=self.rerender_new),
            view.page(f"{path}/{{rule}}", self.show),
            view.form(f"{path}/{{rule}}", RuleForm, self.change, rerender=self.rerender_form),
            view.page(f"{path}/{{rule}}/remove", self.confirm_removal, fresh=True),
            view.form(f"{path}/{{rule}}/remove", ConfirmedForm, self.remove, fresh=True),
        ]


# Who may sign in to an application at all: the rules `can` and `cannot` (interface §2.8).


class LoginRulesForm(CsrfForm, frozen=True, kw_only=True):
    can: str = ""
    cannot: str = ""
    version: int = 0


class LoginRulesContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/login_rules.html"

    head: ApplicationHead
    form: LoginRulesForm
    version: int
    call: ApiCall | None
    problem: FormProblem | None = None
    conflicts: tuple[FieldConflict, ...] = ()


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
            conflicts=field_conflicts(form, login_rules_form(model)) if stale else (),
        )
        return self._view.render(request, admin, ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/applications/{application_id:int}/rules/login"
        return [view.page(path, self.show), view.form(path, LoginRulesForm, self.save, rerender=self.rerender_form)]


def login_rules_form(model: ApplicationModel) -> LoginRulesForm:
    return LoginRulesForm(
        can=checkbox_value(value=login_leaf(model, "can").value),
        cannot=checkbox_value(value=login_leaf(model, "cannot").value),
        version=model.schema.version,
    )
