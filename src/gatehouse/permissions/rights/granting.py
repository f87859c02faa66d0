"""Check that a caller may grant and revoke what a save grants and revokes (R5, "Granting").

Used for every kind of grant: roles and entries of a record, membership of a project, grants to groups, service
accounts. Only differences are checked, so a record can be saved back unchanged.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from gatehouse.permissions.documents.rules import meta_entries, schema_rules, section_entries
from gatehouse.permissions.errors import Malformed, NoRight, RoleNotFound
from gatehouse.permissions.evaluation.contributions import direct_entries
from gatehouse.permissions.model.facts import NO_HOLDINGS, ApplicationModel, Assignment, ScopeHoldings, UserRecord
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import (
    NO_END,
    End,
    Rule,
    RuleEntry,
    RuleSection,
    Scope,
    application_scope,
    scope_order,
    service_scope,
)
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.permissions.rights.rights import Rights
from gatehouse.permissions.rights.secret_data import (
    NO_SECRET_DATA,
    WIDTH,
    Extent,
    SecretPath,
    leaf_end,
    leaf_extent,
    outlasts,
    overlay_secret_data,
    secret_leaves,
    unexpired_value,
)

PROJECT_OWNER = "project_owner"


class Granter(Struct, frozen=True, kw_only=True):
    """Someone about to change what people hold in an application, and that application's model."""

    rights: Rights
    model: ApplicationModel
    now: int

    @property
    def is_central(self) -> bool:
        return self.model.application.is_central

    def refuse_change(self, before: UserRecord, after: UserRecord) -> None:
        """Raise unless the granter may make every difference; the sections are checked elsewhere."""
        owned = self.owned_projects(before) | self.owned_projects(after)
        for scope in sorted(before.scopes.keys() | after.scopes.keys(), key=scope_order):
            had, has = before.scopes.get(scope, NO_HOLDINGS), after.scopes.get(scope, NO_HOLDINGS)
            if is_changed(had, has):
                self.refuse_beyond_reach(scope)
                if scope.project_id in owned:
                    self.refuse_owner(scope)
                self.refuse_holdings(scope, had, has)
        for place in sorted(changed_secrets(before.secret_data, after.secret_data)):
            self.refuse_secret(place, before.secret_data, after.secret_data)

    def owned_projects(self, record: UserRecord) -> set[str]:
        """Projects the person owns: only those who could remove that role may change them there, or lock them out."""
        return {
            scope.project_id
            for scope, holdings in record.scopes.items()
            if self.is_central and not scope.is_root and scope == scope.project
            for role in holdings.roles
            if role.role == PROJECT_OWNER and not role.end.is_past(self.now)
        }

    def refuse_beyond_reach(self, scope: Scope) -> None:
        """A caller with a vouching service grants rules of application 1 only about that service (R6)."""
        reach = self.rights.service_reach
        if reach is None or not self.is_central:
            return
        project, own = reach.project_id or "", reach.application_id
        if scope not in {application_scope(project, own), service_scope(project, own)}:
            raise NoRight(f"application {own} authenticates, but the grant is in {scope}")

    def refuse_holdings(self, scope: Scope, before: ScopeHoldings, after: ScopeHoldings) -> None:
        assignments = {role.role: role for role in after.roles}
        for key in sorted(changed_roles(before, after)):
            self.refuse_role(scope, key, assignments.get(key))
        had = direct_entries(before)
        for rule, has in changed_entries(before, after):
            self.refuse_rule(scope, rule, had.get(rule), has)

    def refuse_role(self, scope: Scope, key: str, assignment: Assignment | None) -> None:
        role = self.model.roles.get(key)
        if role is None:
            if assignment is not None:
                raise RoleNotFound(f"role {key} of application {self.model.application.application_id}")
            return  # entries of a deleted role may be removed
        if role.protected:
            self.refuse_protected(f"role {role.name}")
            if assignment is not None:
                refuse_protected_in_project(role, scope)
        if not self.is_central:
            return
        if key == PROJECT_OWNER:
            self.refuse_owner(scope)
        if assignment is not None:
            for rule, entry in meta_entries(role.meta).items():
                self.refuse_central(scope, rule, entry_with_role_params(entry, role, assignment.end))

    def refuse_rule(self, scope: Scope, rule: Rule, had: RuleEntry | None, has: RuleEntry | None) -> None:
        leaf = schema_rules(self.model.schema.private_data, self.model.schema.public_data).get(rule)
        if leaf is not None and leaf.protected:
            self.refuse_protected(f"rule {rule}")
        if not self.is_central:
            return
        if has is not None:
            self.refuse_central(scope, rule, has)
        if had is not None and not had.value and self.is_lifted(had.end, None if has is None else has.end):
            self.refuse_central(scope, rule, RuleEntry(value=True))

    def is_lifted(self, had: End, has: End | None) -> bool:
        """Whether a restriction ends sooner, which may give its holder more."""
        return not had.is_past(self.now) and (has is None or outlasts(had, has, self.now))

    def refuse_protected(self, what: str) -> None:
        if not self.rights.has_application_rule("canModifySchema"):
            raise NoRight(f"{what} is protected")

    def refuse_owner(self, scope: Scope) -> None:
        """Refuse changes of owners by others than owners: an administrator of the project could take it over."""
        own_roles = self.rights.central.granted_roles(scope.project)
        if PROJECT_OWNER not in own_roles and not self.rights.holds_can_administer:
            raise NoRight("only owners can assign or remove project_owner")

    def refuse_central(self, scope: Scope, rule: Rule, entry: RuleEntry) -> None:
        """Refuse a Central rule that the granter does not hold there, or without its limit, or for longer."""
        if not entry.value:
            return
        if not self.rights.holds_can_administer:
            self.refuse_unheld(scope, rule, entry)
        if outlasts(entry.end, self.rights.end_of(scope, rule, self.now), self.now):
            raise NoRight(f"{rule} would last longer than the granter's own")

    def refuse_unheld(self, scope: Scope, rule: Rule, entry: RuleEntry) -> None:
        if not self.rights.central.allows(scope, rule):
            raise NoRight(f"the granter does not have {rule} in {scope}")
        own = self.rights.central.rules(scope).get(rule)
        if own is not None and own.params and not set(entry.params) <= set(own.params):
            raise NoRight(f"the granter has {rule} only with the limit {own.params}")
        if own is not None and own.params and not entry.params:
            raise NoRight(f"the granter has {rule} with a limit, but would grant it without")

    def refuse_secret(self, place: SecretPath, before: Tree, after: Tree) -> None:
        """Refuse a secret_data value that the granter does not hold, or for longer."""
        had, has = secret_leaves(before).get(place), secret_leaves(after).get(place)
        if unexpired_value(has, self.now) is not None:
            self.refuse_extent(place, leaf_extent(place, has), leaf_end(has))
        if had is not None and self.is_lifted(leaf_end(had), None if has is None else leaf_end(has)):
            self.refuse_extent(place, self.extent_below(place, leaf_extent(place, had)), NO_END)

    def extent_below(self, place: SecretPath, below: Extent) -> Extent:
        """The extent that may appear when a leaf with this extent is removed: below `none` it may be any."""
        if below is Extent.NONE:
            return Extent.ALL
        default = overlay_secret_data(NO_SECRET_DATA, self.model.schema.secret_data, self.now).extent_at(place)
        return default if WIDTH[default] > WIDTH[below] else Extent.NONE

    def refuse_extent(self, place: SecretPath, extent: Extent, end: End) -> None:
        own = self.rights.secret
        if extent is not Extent.NONE and (
            WIDTH[own.extent_at(place)] < WIDTH[extent] or outlasts(end, own.end_at(place), self.now)
        ):
            raise NoRight("secret_data exceeds the granter's own")


def refuse_protected_in_project(role: Role, scope: Scope, place: str = "") -> None:
    if role.protected and not scope.is_root:
        raise Malformed(f"{place}role {role.name}: protected roles can be assigned only at the root").on_screen(
            "protected_in_project", name=role.name
        )


def changed_secrets(before: Tree, after: Tree) -> frozenset[SecretPath]:
    """The paths at which the two trees differ."""
    had, has = secret_leaves(before), secret_leaves(after)
    return frozenset(place for place in had.keys() | has.keys() if had.get(place) != has.get(place))


def is_changed(before: ScopeHoldings, after: ScopeHoldings) -> bool:
    return before != after and bool(changed_roles(before, after) or any(changed_entries(before, after)))


def changed_roles(before: ScopeHoldings, after: ScopeHoldings) -> set[str]:
    """Keys of the roles that were added, removed, or got another end."""
    return {assignment.role for assignment in set(before.roles) ^ set(after.roles)}


def changed_entries(before: ScopeHoldings, after: ScopeHoldings) -> Iterator[tuple[Rule, RuleEntry | None]]:
    """Every rule whose direct entry differs, with the new entry; None when it is removed."""
    for section, old, new in (
        (RuleSection.PRIVATE, before.private_data, after.private_data),
        (RuleSection.PUBLIC, before.public_data, after.public_data),
    ):
        had, has = section_entries(old, section), section_entries(new, section)
        for rule in sorted(rule for rule in had.keys() | has.keys() if had.get(rule) != has.get(rule)):
            yield rule, has.get(rule)


def entry_with_role_params(entry: RuleEntry, role: Role, end: End) -> RuleEntry:
    """A role's own parameters are appended to every rule of it (interface §2.7); all end with the role."""
    params = tuple(part for part in role.params.split(",") if part)
    return RuleEntry(value=entry.value, params=(*entry.params, *params), end=end)


def refuse_foreign_projects(
    rights: Rights, before: Mapping[Scope, ScopeHoldings], after: Mapping[Scope, ScopeHoldings]
) -> None:
    """Refuse projects that the granter may not manage; `projectAccess` is checked project by project (R5)."""
    touched = {scope.project_id for scope in before.keys() | after.keys() if before.get(scope) != after.get(scope)}
    for project_id in sorted(touched - {""}):
        require_operation(rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=project_id))
