"""A caller's rights on one application, project or group, evaluated from the model (R5).

The guard decides by these, on typed scopes and rules.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gatehouse.permissions.evaluation.effective import EffectivePermissions
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rules import ROOT, End, Rule, RuleSection, Scope, application_scope
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.rights.secret_data import (
    META,
    NO_SECRET_DATA,
    Extent,
    RecordPart,
    SecretData,
    SecretPath,
    end_in_scope,
    ends_of,
    full_secret_data_until,
    latest_end,
    open_places,
    overlay_secret_data,
)


def central_rule(path: str) -> Rule:
    """A rule of application 1; all of them are private."""
    return Rule(RuleSection.PRIVATE, path)


CAN_ADMINISTER: Final = central_rule("can_administer")
CAN_MANAGE_PROJECT: Final = central_rule("project.can_manage_project")
CAN_MODIFY_SCHEMA: Final = central_rule("app.can_modify_schema")
CAN_MANAGE_USERS: Final = central_rule("app.can_manage_users")
CAN_MANAGE_KEYS: Final = central_rule("app.can_manage_app_api_keys")
# What a rule of application 1 allows in an application of the project (R5).
SECRET_DATA_BY_RULE: Final[Mapping[Rule, frozenset[SecretPath]]] = {
    CAN_MODIFY_SCHEMA: frozenset(
        ("application", rule) for rule in ("canReadSchema", "canModifySchema", "canSeeRoleList")
    ),
    CAN_MANAGE_USERS: frozenset(
        (META, part.value, verb)
        for part in (RecordPart.ROLES, RecordPart.PUBLIC, RecordPart.PRIVATE)
        for verb in ("canRead", "canWrite")
    ),
    CAN_MANAGE_KEYS: frozenset({("application", "canCreateJwt")}),
}


class ServiceReach(Struct, frozen=True, kw_only=True):
    """The reach of a service that vouches for a caller: its application, and that application's project (R6)."""

    application_id: int
    project_id: str | None


class Rights(Struct, frozen=True, kw_only=True):
    """A caller's rights, and those about the application the request is about, if it is about one."""

    user_id: str
    central: EffectivePermissions  # what the caller holds in application 1
    secret: SecretData = NO_SECRET_DATA  # their secret_data in the application
    also_readable: frozenset[RecordPart] = (
        frozenset()
    )  # of anyone, as a service account of the application's project (R1)
    service_reach: ServiceReach | None = None  # the caller has no rights beyond it

    @property
    def administers(self) -> bool:
        """Whether the caller may do what only can_administer opens: in person or through application 1 (R6)."""
        return self.holds_can_administer and self.service_reach is None

    @property
    def holds_can_administer(self) -> bool:
        """Whether can_administer is held: within the reach of a service it gives every other right."""
        return CAN_ADMINISTER in self.central.rules(ROOT)

    def holds_at_root(self, path: str) -> bool:
        return self.holds_can_administer or central_rule(path) in self.central.rules(ROOT)

    def holds_in(self, scope: Scope, path: str) -> bool:
        """Whether the rule is held in the scope or its project; a rule at the root does not count below it."""
        return self.holds_can_administer or self.central.allows(scope, central_rule(path))

    def end_of(self, scope: Scope, rule: Rule, now: int) -> End:
        """Return until when the caller may do this there; they may do it now."""
        opening_rules = (rule, CAN_ADMINISTER) if self.holds_can_administer else (rule,)
        return latest_end([end for opener in opening_rules for end in ends_of(self.central, scope, opener, now)], now)

    def has_any_role_on(self, scope: Scope) -> bool:
        return bool(self.central.granted_roles(scope))

    def has_application_rule(self, rule: str) -> bool:
        """secret_data.application of the request's application."""
        return rule in self.secret.application

    def can_read(self, part: RecordPart, user_id: str) -> bool:
        return part in self.also_readable or self._covers(self.secret.reads[part], user_id)

    def can_see(self, part: RecordPart, user_id: str) -> bool:
        """Whether the caller may see a part of a record, like `reads`; people see their own record whole (R5)."""
        return user_id == self.user_id or self.can_read(part, user_id)

    def can_write(self, part: RecordPart, user_id: str) -> bool:
        return self._covers(self.secret.writes[part], user_id)

    @property
    def knows_who_exists(self) -> bool:
        """Callers who may read or write anyone's section may learn that a user does not exist (R6)."""
        return any(extent is Extent.ALL for extent in (*self.secret.reads.values(), *self.secret.writes.values()))

    def _covers(self, extent: Extent, user_id: str) -> bool:
        return extent is Extent.ALL or (extent is Extent.SELF and user_id == self.user_id)


def secret_data_of(central_held: EffectivePermissions, model: ApplicationModel, own: Tree, now: int) -> SecretData:
    """A caller's secret_data: the application's default, what Central grants on it, their own record (R5)."""
    at_root = central_held.rules(ROOT)
    if CAN_ADMINISTER in at_root:
        return full_secret_data_until(end_in_scope(at_root, CAN_ADMINISTER, now))
    data = overlay_secret_data(NO_SECRET_DATA, model.schema.secret_data, now)
    project = model.application.project_id
    if project:
        data = open_by_central_rules(
            data, central_held, application_scope(project, model.application.application_id), now
        )
    return overlay_secret_data(data, own, now)


def open_by_central_rules(data: SecretData, effective: EffectivePermissions, scope: Scope, now: int) -> SecretData:
    for rule, places in SECRET_DATA_BY_RULE.items():
        ends = ends_of(effective, scope, rule, now)
        if ends:
            data = open_places(data, places, latest_end(ends, now), now)
    return data
