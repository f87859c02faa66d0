"""Rules as forms write them, and as a schema has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request

from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.commands.app_schemas import role_document
from gatehouse.permissions.documents.rules import leaves, meta_entries
from gatehouse.permissions.documents.trees import without_leaf
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rule import Leaf, Rule, Section
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.console.applications.overview import one_ending
from gatehouse.web.console.desk import Guest
from gatehouse.web.console.editing import Clash, clashes
from gatehouse.web.pages.desk import Guarded

TAB: Final = "rules"
YES: Final = "yes"


class RuleNotFound(NotFound):
    public = "Permission not found."


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleLine:
    rule: Rule
    leaf: Leaf
    roles: int  # that say something of it

    @property
    def name(self) -> str:
        return str(self.rule)

    @property
    def group(self) -> str:
        return self.rule.path.rpartition(".")[0]


class RuleForm(Guarded, frozen=True, kw_only=True):
    section: str = Section.PRIVATE.value
    path: str = ""
    value: str = ""
    protected: str = ""
    description: str = ""
    version: int = 0
    confirmed: str = ""

    @property
    def leaf(self) -> Leaf:
        return Leaf(
            value=self.value == YES,
            protected=self.protected == YES,
            description=one_ending(self.description).strip(),
        )


class ConfirmedForm(Guarded, frozen=True, kw_only=True):
    version: int = 0
    confirmed: str = ""


def may_change(guest: Guest, model: ApplicationModel) -> bool:
    """Application 1's rules are the program's own."""
    open_to_him = is_open(guest.rights, Operation.SCHEMA_SAVE, guest.standing.about)
    return open_to_him and not model.application.removed and not model.application.is_central


def rules_of(model: ApplicationModel) -> dict[Rule, Leaf]:
    return leaves(model.schema.private_data, model.schema.public_data)


def lines_of(model: ApplicationModel) -> list[RuleLine]:
    said: dict[Rule, int] = {}
    for role in model.roles.values():
        for rule in meta_entries(role.meta):
            said[rule] = said.get(rule, 0) + 1
    found = (RuleLine(rule=rule, leaf=leaf, roles=said.get(rule, 0)) for rule, leaf in rules_of(model).items())
    return sorted(found, key=lambda line: (line.rule.section, line.group, line.rule.path))


def matches(line: RuleLine, search: str) -> bool:
    wanted = search.strip().lower()
    return wanted in line.name.lower() or wanted in line.leaf.description.lower()


def rule_named(name: str) -> Rule:
    section, _, path = name.partition(".")
    if section not in list(Section):
        raise RuleNotFound
    return Rule(Section(section), path)


def named_rule(request: Request, model: ApplicationModel) -> Rule:
    rule = rule_named(request.path_params["rule"])
    if rule not in rules_of(model):
        raise RuleNotFound
    return rule


def typed_rule(form: RuleForm) -> Rule:
    if form.section not in list(Section):
        raise Malformed("section: choose private or public")
    return Rule(Section(form.section), form.path.strip())


def section_of(model: ApplicationModel, section: Section) -> Tree:
    return model.schema.private_data if section is Section.PRIVATE else model.schema.public_data


def removal_of(model: ApplicationModel, rule: Rule) -> dict[str, object]:
    """Without the rule, and without what roles say of it: a role that still named it would go on giving it."""
    section = rule.section.value
    given: dict[str, object] = {
        section: without_leaf(section_of(model, rule.section), rule.path),
        "version": model.schema.version,
    }
    if any(rule in meta_entries(role.meta) for role in model.roles.values()):
        given["roles"] = {role.name: silenced(role, rule) for role in model.roles.values()}
    return given


def silenced(role: Role, rule: Rule) -> dict[str, object]:
    said_of_section = role.meta.get(rule.section.value, {})
    if rule not in meta_entries(role.meta) or not isinstance(said_of_section, Mapping):
        return role_document(role)
    left = {**role.meta, rule.section.value: without_leaf(said_of_section, rule.path)}
    return role_document(role) | {"meta": left}


def leaf_document(leaf: Leaf) -> dict[str, object]:
    return {"value": leaf.value, "protected": leaf.protected, "description": leaf.description}


def login_leaf(model: ApplicationModel, name: str) -> Leaf:
    found = model.schema.login[name]
    read = found if isinstance(found, dict) else {}
    return Leaf(
        value=read.get("value") is True,
        protected=read.get("protected") is True,
        description=str(read.get("description", "")),
    )


def form_of(model: ApplicationModel, rule: Rule) -> RuleForm:
    leaf = rules_of(model).get(rule, Leaf())
    return RuleForm(
        section=rule.section.value,
        path=rule.path,
        value=said(value=leaf.value),
        protected=said(value=leaf.protected),
        description=leaf.description,
        version=model.schema.version,
    )


def rule_clashes(typed: RuleForm, stored: RuleForm) -> tuple[Clash, ...]:
    return tuple(clash for clash in clashes(typed, stored) if clash.field in {"value", "protected", "description"})


def said(*, value: bool) -> str:
    return YES if value else ""
