"""Who may make each step of a remedy, and whether the caller may: by the checks of the save that makes it."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.bans.model import find_ban
from gatehouse.accounts.system_tags import SYSTEM_TAGS, is_service_tag
from gatehouse.kernel.errors import GatehouseError
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest
from gatehouse.permissions.commands.user_schemas import refuse_root_entries
from gatehouse.permissions.explanation.failed_tests import FailedTest
from gatehouse.permissions.explanation.remedies import Remedy, RemedyActor, RemedyStep, StepKind
from gatehouse.permissions.model.facts import NO_HOLDINGS, ApplicationModel, UserRecord
from gatehouse.permissions.model.rules import Rule, RuleSection
from gatehouse.permissions.questions.remedies import holdings_after
from gatehouse.permissions.rights.granting import Granter
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.permissions.rights.rights import Rights
from gatehouse.permissions.rights.secret_data import RecordPart


class RemedyRights(Struct, frozen=True, kw_only=True):
    """A caller who reads the remedies of one person in one application."""

    request: AuthenticatedRequest
    model: ApplicationModel
    record: UserRecord
    rule: Rule
    now: int

    @property
    def rights(self) -> Rights:
        return self.request.rights

    def permit(self, step: RemedyStep) -> RemedyStep:
        may = MAY[step.kind](self, step)
        return replace(step, by=actor_of(step, self.model), may=may, until=step.until if may else 0)

    def may_lift(self, step: RemedyStep) -> bool:
        if self.record.user_id == self.rights.user_id:
            return False
        own = self.request.evaluation_input.facts.bans
        if find_ban(own, self.now, application_id=step.application_id, project_id=step.project_id) is not None:
            return False
        if step.application_id:
            return is_open(self.rights, Operation.BAN_FROM_APPLICATION, self.request.target)
        if step.project_id:
            return is_open(self.rights, Operation.BAN_FROM_PROJECT, GuardTarget(project_id=step.project_id))
        return self.rights.administers

    def may_change_group(self, step: RemedyStep) -> bool:
        group_id = step.group.group_id if step.group else ""
        where = GuardTarget(project_id=step.scope.project_id, group_id=group_id)
        return is_open(self.rights, Operation.GROUP_ACCESS, where)

    def may_change_record(self, step: RemedyStep) -> bool:
        if not self._may_write(step):
            return False
        holdings = holdings_after(step, self.record.scopes.get(step.scope, NO_HOLDINGS), self.rule)
        after = self.record.with_holdings(step.scope, holdings)
        try:
            refuse_root_entries(self.rights, self.record, after)
            Granter(rights=self.rights, model=self.model, now=self.now).refuse_change(self.record, after)
        except GatehouseError:
            return False
        return True

    def _may_write(self, step: RemedyStep) -> bool:
        """The section of the record, or its part about the project."""
        if not step.scope.is_root:
            return is_open(self.rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=step.scope.project_id))
        is_entry = step.kind is StepKind.REMOVE_ENTRY
        section = RecordPart.PRIVATE if self.rule.section is RuleSection.PRIVATE else RecordPart.PUBLIC
        return self.rights.can_write(section if is_entry else RecordPart.ROLES, self.record.user_id)

    def may_save_role(self, step: RemedyStep) -> bool:
        if self.model.application.is_central and not self.rights.administers:
            return False
        operation = Operation.SCHEMA_SAVE if is_for_schema_editors(step, self.model) else Operation.ROLES_SAVE
        return is_open(self.rights, operation, self.request.target)

    def may_meet(self, step: RemedyStep) -> bool:
        return self.rights.administers and all(map(is_label, step.needs))


def as_administrator(remedy: Remedy, model: ApplicationModel) -> Remedy:
    """The remedy with who may make its steps, for a caller who may make all that an administrator may."""
    made = [(step, actor_of(step, model)) for step in remedy.steps]
    steps = tuple(replace(step, by=by, may=by is not RemedyActor.PERSON) for step, by in made)
    return replace(remedy, steps=steps)


MAY: Final[Mapping[StepKind, Callable[[RemedyRights, RemedyStep], bool]]] = {
    StepKind.LIFT_BAN: RemedyRights.may_lift,
    StepKind.ADD_TO_GROUP: RemedyRights.may_change_group,
    StepKind.REMOVE_FROM_GROUP: RemedyRights.may_change_group,
    StepKind.ASSIGN_ROLE: RemedyRights.may_change_record,
    StepKind.REMOVE_ROLE: RemedyRights.may_change_record,
    StepKind.REMOVE_ENTRY: RemedyRights.may_change_record,
    StepKind.ALLOW_IN_ROLE: RemedyRights.may_save_role,
    StepKind.UNSET_IN_ROLE: RemedyRights.may_save_role,
    StepKind.RAISE_LIMIT: RemedyRights.may_save_role,
    StepKind.MEET_CONDITION: RemedyRights.may_meet,
}


def actor_of(step: RemedyStep, model: ApplicationModel) -> RemedyActor:
    """The people with the least rights who can make the step; administrators always can."""
    match step.kind:
        case StepKind.LIFT_BAN:
            in_project = RemedyActor.PROJECT_MANAGERS if step.project_id else RemedyActor.ADMINISTRATORS
            return RemedyActor.MODERATORS if step.application_id else in_project
        case StepKind.ADD_TO_GROUP | StepKind.REMOVE_FROM_GROUP:
            return RemedyActor.GROUP_MANAGERS
        case StepKind.MEET_CONDITION:
            return RemedyActor.ADMINISTRATORS if all(map(is_label, step.needs)) else RemedyActor.PERSON
        case StepKind.ALLOW_IN_ROLE | StepKind.UNSET_IN_ROLE | StepKind.RAISE_LIMIT:
            return role_editor_of(step, model)
        case _:
            return assigner_of(step, model)


def role_editor_of(step: RemedyStep, model: ApplicationModel) -> RemedyActor:
    if model.application.is_central:
        return RemedyActor.ADMINISTRATORS
    return RemedyActor.SCHEMA_EDITORS if is_for_schema_editors(step, model) else RemedyActor.ROLE_EDITORS


def assigner_of(step: RemedyStep, model: ApplicationModel) -> RemedyActor:
    role = model.roles.get(step.role.lower())
    if role is not None and role.protected and not model.application.is_central:
        return RemedyActor.SCHEMA_EDITORS
    if not step.scope.is_root:
        return RemedyActor.PROJECT_MANAGERS
    return RemedyActor.ADMINISTRATORS if model.application.is_central else RemedyActor.USER_MANAGERS


def is_for_schema_editors(step: RemedyStep, model: ApplicationModel) -> bool:
    role = model.roles.get(step.role.lower())
    return role is not None and (role.protected or role.is_default)


def is_label(need: FailedTest) -> bool:
    """Whether administrators can give it: tags and purchases, but not what the service knows of the account."""
    if need.member == "purchase":
        return True
    return need.member == "tag" and need.wanted not in SYSTEM_TAGS and not is_service_tag(need.wanted)
