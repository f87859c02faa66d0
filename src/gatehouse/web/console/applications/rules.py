"""The rules of an application: listed, made, changed, removed."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.paging import Page
from gatehouse.kernel.background import HEAVY, run_off_loop
from gatehouse.permissions.commands.app_schemas import AppSchemas
from gatehouse.permissions.documents.rules import meta_entries
from gatehouse.permissions.documents.trees import with_leaf
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rule import Leaf, Rule, Section
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.api_calls import readable_schema_call, schema_call
from gatehouse.web.console.applications.head import HERE, ApplicationHead, head, path_of
from gatehouse.web.console.applications.reviews import Question, Reviews
from gatehouse.web.console.applications.rule_forms import (
    TAB,
    YES,
    ConfirmedForm,
    RuleForm,
    RuleLine,
    form_of,
    leaf_document,
    lines_of,
    login_leaf,
    matches,
    may_change,
    named_rule,
    removal_of,
    rule_clashes,
    rule_named,
    rules_of,
    section_of,
    typed_rule,
)
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.editing import Clash
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import csv_file, list_query
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext

PAGE_OF_RULES: Final = 100


COLUMNS: Final = {
    "rule": lambda line: line.name,
    "section": lambda line: line.rule.section.value,
    "value": lambda line: line.leaf.value,
    "protected": lambda line: line.leaf.protected,
    "description": lambda line: line.leaf.description,
    "roles": lambda line: line.roles,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesContext(PageContext):
    template = "console/applications/rules.html"

    head: ApplicationHead
    found: Page[RuleLine]
    groups: Sequence[tuple[str, Section, Sequence[RuleLine]]]
    search: str
    may_change: bool
    login_can: Leaf
    login_cannot: Leaf
    updated_at: int
    version: int
    call: ApiCall


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleContext(PageContext):
    template = "console/applications/rule.html"

    head: ApplicationHead
    rule: str  # "" for a new one
    form: RuleForm
    action: str
    roles: Sequence[str]  # that say something of it
    version: int
    call: ApiCall | None
    problem: Problem | None = None
    clashes: tuple[Clash, ...] = ()


class RuleScreens:
    def __init__(self, *, schemas: AppSchemas, reviews: Reviews, desk: ConsoleDesk) -> None:
        self._schemas = schemas
        self._reviews = reviews
        self._desk = desk

    async def list(self, request: Request, guest: Guest) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_GET)
        query = list_query(request)
        every = await run_off_loop(HEAVY, lambda: [line for line in lines_of(model) if matches(line, query.q)])
        if query.is_file:
            return csv_file(f"rules-{model.application.application_id}", COLUMNS, every)
        number = min(query.wanted.page, max(1, -(-len(every) // PAGE_OF_RULES)))
        rows = every[(number - 1) * PAGE_OF_RULES : number * PAGE_OF_RULES]
        context = RulesContext(
            head=head(guest, model, TAB),
            found=Page(rows=rows, total=len(every), number=number, size=PAGE_OF_RULES),
            groups=[
                (name, section, [*lines])
                for (section, name), lines in groupby(rows, key=lambda line: (line.rule.section, line.group))
            ],
            search=query.q,
            may_change=may_change(guest, model),
            login_can=login_leaf(model, "can"),
            login_cannot=login_leaf(model, "cannot"),
            updated_at=model.schema.updated_at,
            version=model.schema.version,
            call=schema_call(model),
        )
        return self._desk.show(request, guest, HERE, context)

    async def new(self, request: Request, guest: Guest) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        return self._form(request, guest, model, "", RuleForm(version=model.schema.version))

    async def add(self, request: Request, guest: Guest, form: RuleForm) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        rule = typed_rule(form)
        if rule in rules_of(model):
            raise Malformed(f"path: {rule.path} already exists")
        action = f"{path_of(model.application.application_id, TAB)}/new"
        return await self._save(request, guest, model, rule, form, action=action, reviewed=form.leaf.value)

    async def add_again(self, request: Request, guest: Guest, form: RuleForm, problem: Problem) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        return self._form(request, guest, model, "", form, problem=problem)

    async def show(self, request: Request, guest: Guest) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        rule = named_rule(request, model)
        return self._form(request, guest, model, str(rule), form_of(model, rule))

    async def change(self, request: Request, guest: Guest, form: RuleForm) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        rule = named_rule(request, model)
        was, now = rules_of(model)[rule], form.leaf
        reviewed = was.value != now.value or (now.protected and not was.protected)
        action = f"{path_of(model.application.application_id, TAB)}/{rule}"
        return await self._save(request, guest, model, rule, form, action=action, reviewed=reviewed)

    async def change_again(self, request: Request, guest: Guest, form: RuleForm, problem: Problem) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        rule = named_rule(request, model)
        return self._form(request, guest, model, str(rule), form, problem=problem)

    async def ask_removal(self, request: Request, guest: Guest) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        rule, path = named_rule(request, model), path_of(model.application.application_id, TAB)
        question = Question(
            name="remove_rule",
            tab=TAB,
            action=f"{path}/{rule}/remove",
            back=path,
            fields=[("version", str(model.schema.version))],
            about=str(rule),
        )
        return await self._reviews.show(request, guest, model, removal_of(model, rule), question)

    async def remove(self, request: Request, guest: Guest, form: ConfirmedForm) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        given = removal_of(model, named_rule(request, model)) | {"version": form.version}
        await self._schemas.save(guest.actor, model, given)
        return self._desk.done(path_of(model.application.application_id, TAB), "rule_removed")

    async def _save(
        self,
        request: Request,
        guest: Guest,
        model: ApplicationModel,
        rule: Rule,
        form: RuleForm,
        *,
        action: str,
        reviewed: bool,
    ) -> Response:
        """A save that changes what people hold is shown to be confirmed first."""
        tree = with_leaf(section_of(model, rule.section), rule.path, leaf_document(form.leaf))
        given = {rule.section.value: tree, "version": form.version}
        path = path_of(model.application.application_id, TAB)
        if not reviewed or form.confirmed:
            await self._schemas.save(guest.actor, model, given)
            return self._desk.done(path, "saved")
        names = (name for name in form.__struct_fields__ if name not in {"csrf", "confirmed"})
        fields = [(name, str(getattr(form, name))) for name in names]
        question = Question(
            name="save_rule",
            tab=TAB,
            action=action,
            back=path,
            fields=[*fields, ("confirmed", YES)],
            about=str(rule),
        )
        return await self._reviews.show(request, guest, model, given, question)

    def _form(
        self,
        request: Request,
        guest: Guest,
        model: ApplicationModel,
        rule: str,
        form: RuleForm,
        *,
        problem: Problem | None = None,
    ) -> Response:
        version = model.schema.version
        stale = problem is not None and problem.is_conflict and form.version != version

        def make() -> RuleContext:
            return RuleContext(
                head=head(guest, model, TAB),
                rule=rule,
                form=form,
                action=f"{path_of(model.application.application_id, TAB)}/{rule or 'new'}",
                roles=[role.name for role in model.roles.values() if rule in map(str, meta_entries(role.meta))],
                version=version if stale else form.version,
                call=readable_schema_call(guest.standing, model),
                problem=problem,
                clashes=rule_clashes(form, form_of(model, rule_named(rule))) if stale and rule else (),
            )

        return self._desk.show_made(request, guest, HERE, make, status=problem.status if problem else None)

    def screens(self) -> Sequence[Screen]:
        desk, path = self._desk, "/applications/{application_id:int}/rules"
        return [
            desk.shown(path, self.list),
            desk.shown(f"{path}/new", self.new),
            desk.posted(f"{path}/new", RuleForm, self.add, again=self.add_again),
            desk.shown(f"{path}/{{rule}}", self.show),
            desk.posted(f"{path}/{{rule}}", RuleForm, self.change, again=self.change_again),
            desk.shown(f"{path}/{{rule}}/remove", self.ask_removal, fresh=True),
            desk.posted(f"{path}/{{rule}}/remove", ConfirmedForm, self.remove, fresh=True),
        ]
