"""What the pages of one role show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from gatehouse.permissions.commands.app_schemas import CENTRAL_ROLES
from gatehouse.permissions.documents.rules import meta_entries, schema_rules
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rule import Rule, RuleDefinition, RuleEntry
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.console.conditions import ConditionBuilder, ConditionForm
from gatehouse.web.console.desk import AdminRequest, FormProblem
from gatehouse.web.console.editing import FieldConflict
from gatehouse.web.console.forecast import Impact, sees_everybody
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.places import ConsoleEntry as Place
from gatehouse.web.console.roles import role_path
from gatehouse.web.pages.contexts import PageContext


class RoleForm(ConditionForm, frozen=True, kw_only=True):
    """Marks are `yes` or nothing."""

    description: str = ""
    protected: str = ""
    default: str = ""
    condition_mode: str = "grant"
    user_limit: str = ""
    params: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleHead:
    """What every page of a role shows above itself."""

    application_id: int
    application: str
    name: str
    protected: bool
    default: bool
    tab: str
    may_save: bool
    built_in: bool  # of application 1, which is run by it
    may_save_schema: bool  # then also a protected role, or one for everybody
    sees_members: bool

    @property
    def path(self) -> str:
        return role_path(self.application_id, self.name)

    @property
    def application_path(self) -> str:
        return f"{Place.APPLICATIONS.path}/{self.application_id}"

    @property
    def tabs(self) -> Sequence[tuple[str, str]]:
        shown = [("editor", self.path)]
        return [*shown, ("members", f"{self.path}/members")] if self.sees_members else shown


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRule:
    """What a role says of a rule, beside what the schema says of it."""

    rule: Rule
    entry: RuleEntry
    leaf: RuleDefinition | None  # None: the schema has no such rule


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleGroup:
    name: str
    rules: Sequence[RoleRule]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleContext(PageContext):
    template = "console/roles/editor.html"

    head: RoleHead
    role: Role
    form: RoleForm
    builder: ConditionBuilder
    groups: Sequence[RuleGroup]
    unsaid: int  # rules of the schema that it leaves as they are
    holders: int
    call: ApiCall
    problem: FormProblem | None = None
    clashes: tuple[FieldConflict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRoleContext(PageContext):
    template = "console/roles/remove.html"

    head: RoleHead
    role: Role
    holders: int
    projects: int  # that give it to a group
    foreseen: Impact
    problem: FormProblem | None = None


def role_head(admin: AdminRequest, model: ApplicationModel, role: Role, tab: str) -> RoleHead:
    standing = admin.authenticated
    may_schema = is_open(standing.rights, Operation.SCHEMA_SAVE, standing.target)
    may_save = is_open(standing.rights, Operation.ROLES_SAVE, standing.target)
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
        sees_members=sees_everybody(standing),
    )


def rule_groups(model: ApplicationModel, role: Role) -> Sequence[RuleGroup]:
    """What the role says, by the first segment of a rule's path."""
    known = schema_rules(model.schema.private_data, model.schema.public_data)
    said = [
        RoleRule(rule=rule, entry=entry, leaf=known.get(rule))
        for rule, entry in sorted(meta_entries(role.meta).items(), key=lambda item: (item[0].path, item[0].section))
    ]
    return [RuleGroup(name=name, rules=list(rules)) for name, rules in groupby(said, key=first_segment)]


def first_segment(rule: RoleRule) -> str:
    return rule.rule.path.partition(".")[0]


def count_unset_rules(model: ApplicationModel, groups: Iterable[RuleGroup]) -> int:
    known = schema_rules(model.schema.private_data, model.schema.public_data)
    return len(known.keys() - {said.rule for group in groups for said in group.rules})
