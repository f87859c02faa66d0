"""The rules of an application: list, create, change, remove."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.matrix import NOT_SET, CellChange, CellValue, save_payload
from gatehouse.admin.paging import Page
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.permissions.commands.app_schemas import CENTRAL_ROLES, SchemaCommands
from gatehouse.permissions.documents.rules import meta_entries
from gatehouse.permissions.documents.trees import with_leaf
from gatehouse.permissions.errors import Malformed, RoleNotFound
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rules import Rule, RuleDefinition, RuleSection
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import ApplicationHead, application_head, application_path
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
    requested_rule,
    rule_conflicts,
    rule_form_of,
    rule_from_form,
    rule_lines,
    rule_removal,
    rules_of,
    section_of,
)
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved, named_application
from gatehouse.web.console.frame import ApiCall, readable_schema_call, schema_call
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen, page_of_list
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
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
    action: str
    roles: Sequence[str]  # that set it
    choices: Sequence[str] = ()  # roles that may allow a new one
    call: ApiCall | None


class LoadedRule(msgspec.Struct, frozen=True, kw_only=True):
    model: ApplicationModel
    rule: Rule


class RuleScreens:
    def __init__(self, *, schemas: SchemaCommands, schema_review: SchemaReview, view: ConsoleView) -> None:
        self._schemas = schemas
        self._schema_review = schema_review
        self._view = view

    async def _list(self, _request: Request, admin: AdminRequest, query: ListQuery) -> RulesContext:
        model = admin.authenticated.require_application(Operation.SCHEMA_GET)
        every = await run_off_loop(
            OFF_LOOP_WEIGHT, lambda: [line for line in rule_lines(model) if line_matches(line, query.q)]
        )
        found = page_of_list(every, query.page_request_of(RULES_PER_PAGE))
        return RulesContext(
            head=application_head(admin, model, RULES_TAB),
            found=found,
            groups=[
                (name, section, [*lines])
                for (section, name), lines in groupby(found.rows, key=lambda line: (line.rule.section, line.group))
            ],
            may_change=may_change_rules(admin, model),
            login_can=login_leaf(model, "can"),
            login_cannot=login_leaf(model, "cannot"),
            updated_at=model.schema.updated_at,
            version=model.schema.version,
            call=schema_call(model),
        )

    async def _new_page(
        self, _request: Request, admin: AdminRequest, model: ApplicationModel, _draft: FormDraft[RuleForm]
    ) -> RuleContext:
        choices = [role.name for key, role in sorted(model.roles.items()) if key not in CENTRAL_ROLES]
        return replace(await self._context(admin, model, ""), choices=choices)

    async def _add(
        self, request: Request, admin: AdminRequest, model: ApplicationModel, form: RuleForm
    ) -> Saved | Response:
        rule = rule_from_form(form)
        if rule in rules_of(model):
            raise Malformed(f"path: {rule.path} already exists")
        action = f"{application_path(model.application.application_id, RULES_TAB)}/new"
        return await self._save(request, admin, model, rule, form, action=action, needs_review=form.leaf.value)

    async def _load_rule(self, request: Request, admin: AdminRequest) -> LoadedRule:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        return LoadedRule(model=model, rule=requested_rule(request, model))

    async def _page(
        self, _request: Request, admin: AdminRequest, loaded: LoadedRule, _draft: FormDraft[RuleForm]
    ) -> RuleContext:
        return await self._context(admin, loaded.model, str(loaded.rule))

    async def _change(
        self, request: Request, admin: AdminRequest, loaded: LoadedRule, form: RuleForm
    ) -> Saved | Response:
        model, rule = loaded.model, loaded.rule
        was, now = rules_of(model)[rule], form.leaf
        reviewed = was.value != now.value or (now.protected and not was.protected)
        action = f"{application_path(model.application.application_id, RULES_TAB)}/{rule}"
        return await self._save(request, admin, model, rule, form, action=action, needs_review=reviewed)

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
    ) -> Saved | Response:
        """Asks for confirmation first, if people gain or lose something."""
        tree = with_leaf(section_of(model, rule.section), rule.path, leaf_document(form.leaf))
        given: dict[str, object] = {rule.section.value: tree, "version": form.version}
        if form.role:
            given |= save_payload(model, [allowed_cell(model, rule, form.role)], form.version)
            needs_review = needs_review or await self._schema_review.is_needed(admin, given)
        path = application_path(model.application.application_id, RULES_TAB)
        if not needs_review or form.confirmed:
            await self._schemas.save(admin.actor, model, given)
            return Saved(address=path)
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

    async def _context(self, admin: AdminRequest, model: ApplicationModel, rule: str) -> RuleContext:
        return RuleContext(
            head=application_head(admin, model, RULES_TAB),
            rule=rule,
            action=f"{application_path(model.application.application_id, RULES_TAB)}/{rule or 'new'}",
            roles=await run_off_loop(OFF_LOOP_WEIGHT, roles_with_rule, model, rule),
            call=readable_schema_call(admin.authenticated, model),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/applications/{application_id:int}/rules"
        rules = ListScreen(view=view, path=path, query=ListQuery, page=self._list, file=rules_file)
        new = EditScreen(
            view=view,
            path=f"{path}/new",
            form=RuleForm,
            load=named_application(Operation.SCHEMA_SAVE),
            form_of=lambda model: RuleForm(version=model.schema.version),
            page=self._new_page,
            save=self._add,
            creates=True,
        )
        rule = EditScreen(
            view=view,
            path=f"{path}/{{rule}}",
            form=RuleForm,
            load=self._load_rule,
            form_of=lambda loaded: rule_form_of(loaded.model, loaded.rule),
            page=self._page,
            save=self._change,
            undoable=True,
            conflicts=lambda _request, loaded, form: rule_conflicts(form, rule_form_of(loaded.model, loaded.rule)),
        )
        return [
            *rules.routes(),
            *new.routes(),
            *rule.routes(),
            view.page(f"{path}/{{rule}}/remove", self.confirm_removal, fresh=True),
            view.form(f"{path}/{{rule}}/remove", ConfirmedForm, self.remove, fresh=True),
        ]


def allowed_cell(model: ApplicationModel, rule: Rule, name: str) -> CellChange:
    """The cell of the role that allows a new permission. Raises RoleNotFound."""
    role = model.roles.get(name.lower())
    if role is None:
        raise RoleNotFound
    return CellChange(rule=rule, role=role, was=NOT_SET, becomes=CellValue(value=True))


def roles_with_rule(model: ApplicationModel, rule: str) -> list[str]:
    return [role.name for role in model.roles.values() if rule in map(str, meta_entries(role.meta))]


def rules_file(page: RulesContext) -> CsvFile[RuleLine]:
    return CsvFile(name=f"rules-{page.head.application_id}", columns=RULE_COLUMNS, rows=page.found.rows)


# Who may sign in to an application at all: the rules `can` and `cannot` (interface §2.8).


class LoginRulesForm(CsrfForm, frozen=True, kw_only=True):
    can: str = ""
    cannot: str = ""
    version: int = 0


class LoginRulesContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/login_rules.html"

    head: ApplicationHead
    call: ApiCall | None


class LoginRuleScreens:
    def __init__(self, *, schemas: SchemaCommands, view: ConsoleView) -> None:
        self._schemas = schemas
        self._view = view

    async def _page(
        self, _request: Request, admin: AdminRequest, model: ApplicationModel, _draft: FormDraft[LoginRulesForm]
    ) -> LoginRulesContext:
        return LoginRulesContext(
            head=application_head(admin, model, RULES_TAB), call=readable_schema_call(admin.authenticated, model)
        )

    async def _save(
        self, _request: Request, admin: AdminRequest, model: ApplicationModel, form: LoginRulesForm
    ) -> Saved:
        login = {
            name: leaf_document(login_leaf(model, name)) | {"value": value == YES}
            for name, value in (("can", form.can), ("cannot", form.cannot))
        }
        await self._schemas.save(admin.actor, model, {"login": login, "version": form.version})
        return Saved(address=application_path(model.application.application_id, RULES_TAB))

    def routes(self) -> Sequence[ConsoleRoute]:
        return EditScreen(
            view=self._view,
            path="/applications/{application_id:int}/rules/login",
            form=LoginRulesForm,
            load=named_application(Operation.SCHEMA_SAVE),
            form_of=login_rules_form,
            page=self._page,
            save=self._save,
            undoable=True,
        ).routes()


def login_rules_form(model: ApplicationModel) -> LoginRulesForm:
    return LoginRulesForm(
        can=checkbox_value(value=login_leaf(model, "can").value),
        cannot=checkbox_value(value=login_leaf(model, "cannot").value),
        version=model.schema.version,
    )
