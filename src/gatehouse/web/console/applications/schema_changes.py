"""Permissions of a schema as forms edit them, and the review of a schema save."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.commands.app_schemas import role_document
from gatehouse.permissions.documents.differences import differences
from gatehouse.permissions.documents.rules import meta_entries, schema_rules
from gatehouse.permissions.documents.trees import without_leaf
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import Rule, RuleDefinition, RuleSection
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.questions.proposals import DryRuns, ProposalReach, Proposer, SchemaProposal
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.console.applications.head import ENTRY, application_head
from gatehouse.web.console.forms import FieldConflict, field_conflicts, form_text
from gatehouse.web.console.impact import ImpactForecaster, ReviewContext
from gatehouse.web.console.view import AdminRequest, ConsoleView
from gatehouse.web.pages.forms import CsrfForm

RULES_TAB: Final = "rules"
YES: Final = "yes"


class RuleNotFound(NotFound):
    public = "Permission not found."


class RuleLine(Struct, frozen=True, kw_only=True):
    rule: Rule
    leaf: RuleDefinition
    roles: int  # that set it

    @property
    def name(self) -> str:
        return str(self.rule)

    @property
    def group(self) -> str:
        return self.rule.path.rpartition(".")[0]


class RuleForm(CsrfForm, frozen=True, kw_only=True):
    section: str = RuleSection.PRIVATE.value
    path: str = ""
    value: str = ""
    protected: str = ""
    description: str = ""
    role: str = ""  # that allows a new permission
    version: int = 0
    confirmed: str = ""

    @property
    def leaf(self) -> RuleDefinition:
        return RuleDefinition(
            value=self.value == YES,
            protected=self.protected == YES,
            description=form_text(self.description),
        )


class ConfirmedForm(CsrfForm, frozen=True, kw_only=True):
    version: int = 0
    confirmed: str = ""


def may_change_rules(admin: AdminRequest, model: ApplicationModel) -> bool:
    """Whether the viewer may change the permissions; those of application 1 are built in."""
    may_save = is_open(admin.rights, Operation.SCHEMA_SAVE, admin.authenticated.target)
    return may_save and not model.application.removed and not model.application.is_central


def rules_of(model: ApplicationModel) -> dict[Rule, RuleDefinition]:
    return schema_rules(model.schema.private_data, model.schema.public_data)


def rule_lines(model: ApplicationModel) -> list[RuleLine]:
    roles: dict[Rule, int] = {}
    for role in model.roles.values():
        for rule in meta_entries(role.meta):
            roles[rule] = roles.get(rule, 0) + 1
    found = (RuleLine(rule=rule, leaf=leaf, roles=roles.get(rule, 0)) for rule, leaf in rules_of(model).items())
    return sorted(found, key=lambda line: (line.rule.section, line.group, line.rule.path))


def line_matches(line: RuleLine, search: str) -> bool:
    wanted = search.strip().lower()
    return wanted in line.name.lower() or wanted in line.leaf.description.lower()


def parse_rule_name(name: str) -> Rule:
    section, _, path = name.partition(".")
    if section not in list(RuleSection):
        raise RuleNotFound
    return Rule(RuleSection(section), path)


def requested_rule(request: Request, model: ApplicationModel) -> Rule:
    rule = parse_rule_name(request.path_params["rule"])
    if rule not in rules_of(model):
        raise RuleNotFound
    return rule


def rule_from_form(form: RuleForm) -> Rule:
    if form.section not in list(RuleSection):
        raise Malformed("section: choose private or public").on_screen("choose_section")
    return Rule(RuleSection(form.section), form.path.strip())


def section_of(model: ApplicationModel, section: RuleSection) -> Tree:
    return model.schema.private_data if section is RuleSection.PRIVATE else model.schema.public_data


def rule_removal(model: ApplicationModel, rule: Rule) -> dict[str, object]:
    """The save that removes a permission, also from every role: a role that still has it would go on granting it."""
    section = rule.section.value
    data: dict[str, object] = {
        section: without_leaf(section_of(model, rule.section), rule.path),
        "version": model.schema.version,
    }
    if any(rule in meta_entries(role.meta) for role in model.roles.values()):
        data["roles"] = {role.name: role_without_rule(role, rule) for role in model.roles.values()}
    return data


def role_without_rule(role: Role, rule: Rule) -> dict[str, object]:
    section = role.meta.get(rule.section.value, {})
    if rule not in meta_entries(role.meta) or not isinstance(section, Mapping):
        return role_document(role)
    meta = {**role.meta, rule.section.value: without_leaf(section, rule.path)}
    return role_document(role) | {"meta": meta}


def leaf_document(leaf: RuleDefinition) -> dict[str, object]:
    return {"value": leaf.value, "protected": leaf.protected, "description": leaf.description}


def login_leaf(model: ApplicationModel, name: str) -> RuleDefinition:
    found = model.schema.login[name]
    read = found if isinstance(found, dict) else {}
    return RuleDefinition(
        value=read.get("value") is True,
        protected=read.get("protected") is True,
        description=str(read.get("description", "")),
    )


def rule_form_of(model: ApplicationModel, rule: Rule) -> RuleForm:
    leaf = rules_of(model).get(rule, RuleDefinition())
    return RuleForm(
        section=rule.section.value,
        path=rule.path,
        value=checkbox_value(value=leaf.value),
        protected=checkbox_value(value=leaf.protected),
        description=leaf.description,
        version=model.schema.version,
    )


def rule_conflicts(typed: RuleForm, stored: RuleForm) -> tuple[FieldConflict, ...]:
    """Its name cannot be changed, and is not sent."""
    return field_conflicts(msgspec.structs.replace(typed, section=stored.section, path=stored.path), stored)


def checkbox_value(*, value: bool) -> str:
    return YES if value else ""


# The review of a schema save: what changes, and whom it affects.


DANGEROUS_PROMPTS: Final = frozenset({"remove_rule", "restore"})


class ConfirmationPrompt(Struct, frozen=True, kw_only=True):
    """What the review page asks; the texts are `review.title_<name>`; `fields` are sent with the confirmation."""

    name: str
    tab: str
    action: str
    back: str
    fields: Sequence[tuple[str, str]]
    about: str = ""  # a permission, or the number of a version


class SchemaReview:
    def __init__(self, *, dry_runs: DryRuns, forecaster: ImpactForecaster, view: ConsoleView) -> None:
        self._dry_runs = dry_runs
        self._forecaster = forecaster
        self._view = view

    async def is_needed(self, admin: AdminRequest, document: Mapping[str, object]) -> bool:
        """Whether people gain or lose something. Raises what the save would raise."""
        return not (await self._forecaster.impact_of_schema(admin, dict(document))).is_nothing

    async def render(
        self,
        request: Request,
        admin: AdminRequest,
        model: ApplicationModel,
        document: Mapping[str, object],
        prompt: ConfirmationPrompt,
    ) -> Response:
        """Raises what the save would raise."""
        proposal = SchemaProposal(data=dict(document))
        by = Proposer(actor=admin.actor, model=model, central=admin.authenticated.central)
        dry_run = await self._dry_runs.run(proposal, by, ProposalReach())
        context = ReviewContext(
            head=application_head(admin, model, prompt.tab),
            name=prompt.about,
            question=prompt.name,
            back=prompt.back,
            action=prompt.action,
            fields=prompt.fields,
            changes=await run_off_loop(OFF_LOOP_WEIGHT, differences, model, dry_run.snapshot.model),
            impacts=[await self._forecaster.impact_in(admin, model.application.application_id, proposal)],
            is_danger=prompt.name in DANGEROUS_PROMPTS,
            may_edit=False,
        )
        return self._view.render(request, admin, ENTRY, context)
