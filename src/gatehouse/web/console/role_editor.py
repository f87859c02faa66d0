"""One role: its permissions; its settings with the condition; its removal."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

from msgspec import UNSET, Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.names import NamedPerson
from gatehouse.admin.roles import RoleListStore
from gatehouse.fields.derive import FormRows, rows_by_section, with_members
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.app_schemas import CENTRAL_ROLES, RoleDraft, SchemaCommands, apply_role_draft
from gatehouse.permissions.documents.fields import RecordField
from gatehouse.permissions.documents.rules import meta_entries, schema_rules
from gatehouse.permissions.errors import RoleNotFound
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import ROLE_FORM_FIELDS, SCHEMA, ConditionMode, Role
from gatehouse.permissions.model.rules import Rule, RuleDefinition, RuleEntry
from gatehouse.permissions.questions.proposals import RoleProposal
from gatehouse.permissions.questions.roles import VisibleRole
from gatehouse.permissions.questions.simulate import without_descriptive_fields
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.permissions.store import ApplicationStore
from gatehouse.web.api.permissions.schemas import role_record
from gatehouse.web.console.condition_builder import (
    ConditionBuilder,
    ConditionBuilders,
    ConditionForm,
    condition_conflicts,
    condition_from_rows,
    condition_words,
    fields_of_rows,
    rows_from_form,
    rows_of_condition,
    shown_rows,
    test_of,
)
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.field_forms import form_members, form_values, typed_values
from gatehouse.web.console.forms import FieldConflict, field_conflicts
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.impact import ImpactForecaster, ReviewContext, may_see_everyone, review_context
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.roles import role_path
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm


@with_members(lambda: form_members(ROLE_FORM_FIELDS))
class RoleForm(ConditionForm, frozen=True, kw_only=True):
    """The described fields of a role, and its condition as rows."""

    version: int = 0


FORM_ROWS: Final = rows_by_section(ROLE_FORM_FIELDS)


class RoleHead(Struct, frozen=True, kw_only=True):
    """What every page of a role shows above itself."""

    application_id: int
    application: str
    name: str
    protected: bool
    default: bool
    tab: str
    may_save: bool
    built_in: bool  # of application 1, which is run by it
    may_save_schema: bool  # then also a protected role, or a default one
    sees_members: bool

    @property
    def path(self) -> str:
        return role_path(self.application_id, self.name)

    @property
    def application_path(self) -> str:
        return f"{ConsoleEntry.APPLICATIONS.path}/{self.application_id}"

    @property
    def tabs(self) -> Sequence[tuple[str, str]]:
        members = [("members", f"{self.path}/members")] if self.sees_members else []
        return [("permissions", self.path), *members, ("settings", f"{self.path}/settings")]


class RoleRule(Struct, frozen=True, kw_only=True):
    """What a role says of a rule, beside what the schema says of it."""

    rule: Rule
    entry: RuleEntry
    leaf: RuleDefinition | None  # None: the schema has no such rule


class RuleGroup(Struct, frozen=True, kw_only=True):
    name: str
    rules: Sequence[RoleRule]


class RoleContext(PageContext, frozen=True, kw_only=True):
    template = "console/roles/permissions.html"

    head: RoleHead
    role: Role
    names: Mapping[str, NamedPerson]  # of people in its condition
    groups: Sequence[RuleGroup]
    unset_count: int  # rules of the schema that it leaves as they are
    holders: int
    call: ApiCall


class RoleSettingsContext(PageContext, frozen=True, kw_only=True):
    template = "console/roles/settings.html"

    head: RoleHead
    rows: Mapping[str, FormRows[RecordField]]  # by section
    builder: ConditionBuilder
    call: ApiCall


def role_head(admin: AdminRequest, model: ApplicationModel, role: Role, tab: str) -> RoleHead:
    authenticated = admin.authenticated
    may_schema = is_open(authenticated.rights, Operation.SCHEMA_SAVE, authenticated.target)
    may_save = is_open(authenticated.rights, Operation.ROLES_SAVE, authenticated.target)
    return RoleHead(
        application_id=model.application.application_id,
        application=model.application.name,
        name=role.name,
        protected=role.protected,
        default=role.default,
        tab=tab,
        may_save=may_save and (may_schema or not (role.protected or role.default)),
        built_in=model.application.is_central and role.key in CENTRAL_ROLES,
        may_save_schema=may_schema,
        sees_members=may_see_everyone(authenticated),
    )


def rule_groups(model: ApplicationModel, role: Role) -> Sequence[RuleGroup]:
    """What the role says, by the first segment of a rule's path."""
    known = schema_rules(model.schema.private_data, model.schema.public_data)
    role_rules = [
        RoleRule(rule=rule, entry=entry, leaf=known.get(rule))
        for rule, entry in sorted(meta_entries(role.meta).items(), key=lambda item: (item[0].path, item[0].section))
    ]
    return [RuleGroup(name=name, rules=list(rules)) for name, rules in groupby(role_rules, key=first_segment)]


def first_segment(rule: RoleRule) -> str:
    return rule.rule.path.partition(".")[0]


def count_unset_rules(model: ApplicationModel, groups: Iterable[RuleGroup]) -> int:
    known = schema_rules(model.schema.private_data, model.schema.public_data)
    return len(known.keys() - {role_rule.rule for group in groups for role_rule in group.rules})


# The role editor: saving with a preview of its impact, and removal.


ENTRY: Final = ConsoleEntry.ROLES


class LoadedRole(Struct, frozen=True, kw_only=True):
    model: ApplicationModel
    role: Role

    @property
    def application_id(self) -> int:
        return self.model.application.application_id

    @property
    def path(self) -> str:
        return role_path(self.application_id, self.role.name)

    @property
    def settings_path(self) -> str:
        return f"{self.path}/settings"


class RoleEditorScreens:
    def __init__(
        self,
        *,
        schemas: SchemaCommands,
        applications: ApplicationStore,
        lists: RoleListStore,
        condition_builders: ConditionBuilders,
        forecaster: ImpactForecaster,
        view: ConsoleView,
        clock: Clock,
    ) -> None:
        self._schemas = schemas
        self._applications = applications
        self._lists = lists
        self._condition_builders = condition_builders
        self._forecaster = forecaster
        self._view = view
        self._clock = clock

    async def _load(self, request: Request, admin: AdminRequest) -> LoadedRole:
        return load_role(request, admin)

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        loaded = load_role(request, admin)
        groups = await run_off_loop(OFF_LOOP_WEIGHT, rule_groups, loaded.model, loaded.role)
        holders, condition = await self._count_holders(loaded), loaded.role.condition
        context = RoleContext(
            head=role_head(admin, loaded.model, loaded.role, "permissions"),
            role=loaded.role,
            names=await self._condition_builders.load_names(*([condition.test] if condition else [])),
            groups=groups,
            unset_count=await run_off_loop(OFF_LOOP_WEIGHT, count_unset_rules, loaded.model, groups),
            holders=holders,
            call=role_call(loaded, holders),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def _settings(
        self, request: Request, admin: AdminRequest, loaded: LoadedRole, draft: FormDraft[RoleForm]
    ) -> RoleSettingsContext:
        return RoleSettingsContext(
            head=role_head(admin, loaded.model, loaded.role, "settings"),
            rows=FORM_ROWS,
            builder=await self._condition_builders.build(
                shown_rows(draft.form),
                may_count=may_see_everyone(admin.authenticated),
                with_address=True,
                count_later=request.method == "GET",
            ),
            call=role_call(loaded, await self._count_holders(loaded)),
        )

    async def _review(
        self, _request: Request, admin: AdminRequest, loaded: LoadedRole, form: RoleForm
    ) -> ReviewContext | None:
        draft = draft_of(admin, loaded, form)
        after = await run_off_loop(OFF_LOOP_WEIGHT, apply_role_draft, loaded.model, loaded.role, draft)
        if without_descriptive_fields(after) == without_descriptive_fields(loaded.role):
            return None
        impact = await self._forecaster.impact_in(admin, loaded.application_id, RoleProposal(data=draft))
        return review_context(form, [impact], name=loaded.role.name, back=loaded.settings_path)

    async def _save(self, _request: Request, admin: AdminRequest, loaded: LoadedRole, form: RoleForm) -> Saved:
        await self._schemas.save_role(admin.actor, loaded.model, draft_of(admin, loaded, form))
        return Saved(address=loaded.settings_path)

    def _conflicts(self, request: Request, loaded: LoadedRole, form: RoleForm) -> tuple[FieldConflict, ...]:
        t = self._view.words(request)
        condition = condition_conflicts(t, form, loaded.role.condition, with_address=True)
        return (*field_conflicts(form, form_of(loaded)), *condition)

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Confirmation:
        loaded, t = load_role(request, admin), self._view.words(request)
        admin.authenticated.require_application(Operation.ROLES_SAVE)
        role = loaded.role
        consequences = [t("roles.breaks_people", count=await self._count_holders(loaded))]
        if projects := await self._lists.count_granting_projects(loaded.application_id, role.key):
            consequences.append(t("roles.breaks_projects", count=projects))
        if role.condition and role.condition_mode is ConditionMode.GRANT:
            consequences.append(t("roles.breaks_condition", words=condition_words(t, role.condition.test)))
        proposal = RoleProposal(action="delete", data=RoleDraft(name=role.name))
        return Confirmation(
            title=t("roles.remove_title", name=role.name),
            trail=[(role.name, loaded.path)],
            text=t("roles.remove_text"),
            consequences=consequences,
            impacts=[await self._forecaster.impact_in(admin, loaded.application_id, proposal)],
            button=t("roles.remove"),
        )

    async def remove(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        loaded = load_role(request, admin)
        await self._schemas.delete_role(admin.actor, loaded.model, loaded.role.name)
        return self._view.redirect_with_flash(ENTRY.path, "role_removed")

    async def _count_holders(self, loaded: LoadedRole) -> int:
        holders = await self._applications.count_role_holders(loaded.application_id, self._clock.now())
        return holders.get(loaded.role.key, 0)

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/roles/{application_id:int}/{role}"
        settings = EditScreen(
            view=view,
            path=f"{path}/settings",
            form=RoleForm,
            load=self._load,
            form_of=form_of,
            page=self._settings,
            review=self._review,
            save=self._save,
            undoable=True,
            conflicts=self._conflicts,
        )
        return [
            view.page(path, self.show),
            *settings.routes(),
            *view.confirmation(f"{path}/remove", CsrfForm, self.confirm_removal, self.remove),
        ]


def load_role(request: Request, admin: AdminRequest) -> LoadedRole:
    """Raises NoRight before RoleNotFound (R6)."""
    model = admin.authenticated.require_application(Operation.ROLES_GET)
    role = model.roles.get(request.path_params["role"].lower())
    if role is None:
        raise RoleNotFound
    return LoadedRole(model=model, role=role)


def form_of(loaded: LoadedRole) -> RoleForm:
    role = loaded.role
    return RoleForm(
        **fields_of_rows(rows_of_condition(role.condition)),
        **form_values(role, ROLE_FORM_FIELDS),
        version=role.version,
    )


def draft_of(admin: AdminRequest, loaded: LoadedRole, form: RoleForm) -> RoleDraft:
    """With what only those may set who may save the schema, for them."""
    may_save_schema = role_head(admin, loaded.model, loaded.role, "").may_save_schema
    condition = condition_from_rows(rows_from_form(form), with_address=True)
    same = test_of(condition) == test_of(loaded.role.condition)  # then it stays as it was written
    saved = [one for one in ROLE_FORM_FIELDS if may_save_schema or one.field.section != SCHEMA]
    return RoleDraft(
        name=loaded.role.name,
        condition=UNSET if same else None if condition is None else dict(condition.document),
        version=form.version,
        **typed_values(form, saved),
    )


def role_call(loaded: LoadedRole, holders: int) -> ApiCall:
    return ApiCall(
        path="roles",
        body={"action": "get", "application_id": loaded.application_id, "data": {"name": loaded.role.name}},
        record=role_record(VisibleRole(loaded.role, holders)),
    )
