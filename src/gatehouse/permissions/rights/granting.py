"""Whether someone may give or take what a save gives or takes (R5, "Granting").

Every way of giving ends here: roles and entries of a record, membership of a project, grants to groups, service
accounts. Only what differs between before and after is judged, so a record can be saved back unchanged.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gatehouse.permissions.documents.rules import leaves, meta_entries, section_entries
from gatehouse.permissions.errors import Malformed, NoRight, RoleNotFound
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rule import Entry, Rule, Section
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.model.user_record import NOTHING, Holdings, UserRecord
from gatehouse.permissions.rights.guard import About, Operation, require
from gatehouse.permissions.rights.rights import Rights
from gatehouse.permissions.rights.secret_data import NO_SECRETS, Extent, SecretData, branch, overlaid

PROJECT_OWNER = "project_owner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Granter:
    """Someone about to change what people hold in an application, and that application's model."""

    rights: Rights
    model: ApplicationModel
    now: int

    @property
    def is_central(self) -> bool:
        return self.model.application.is_central

    def refuse_change(self, before: UserRecord, after: UserRecord) -> None:
        """Raise unless every difference is one the granter may make; the sections are judged elsewhere."""
        for scope in sorted(before.scopes.keys() | after.scopes.keys(), key=scope_order):
            self.refuse_holdings(scope, before.scopes.get(scope, NOTHING), after.scopes.get(scope, NOTHING))
        if before.secret_data != after.secret_data:
            self.refuse_secrets(before.secret_data, after.secret_data)

    def refuse_holdings(self, scope: Scope, before: Holdings, after: Holdings) -> None:
        if before == after:
            return
        given = {one.role: one for one in after.roles}
        had = {one.role: one for one in before.roles}
        for key in sorted(key for key in given.keys() | had.keys() if given.get(key) != had.get(key)):
            self.refuse_role(scope, key, gives=key in given)
        for rule, entry in changed_entries(before, after):
            self.refuse_rule(scope, rule, entry)

    def refuse_role(self, scope: Scope, key: str, *, gives: bool) -> None:
        role = self.model.roles.get(key)
        if role is None:
            if gives:
                raise RoleNotFound(f"role {key} of application {self.model.application.application_id}")
            return  # what is left of a role that is gone may be cleared away
        if role.protected:
            self.refuse_protected(f"role {role.name}")
            if gives and not scope.is_root:
                raise Malformed(f"role {role.name}: protected roles are given at the root only")
        if not self.is_central:
            return
        if key == PROJECT_OWNER:
            self.refuse_owner(scope)
        if gives:
            for rule, entry in meta_entries(role.meta).items():
                self.refuse_central(scope, rule, with_params(entry, role))

    def refuse_rule(self, scope: Scope, rule: Rule, entry: Entry | None) -> None:
        leaf = leaves(self.model.schema.private_data, self.model.schema.public_data).get(rule)
        if leaf is not None and leaf.protected:
            self.refuse_protected(f"rule {rule}")
        if self.is_central and entry is not None:
            self.refuse_central(scope, rule, entry)

    def refuse_protected(self, what: str) -> None:
        if not self.rights.may("canModifySchema"):
            raise NoRight(f"{what} is protected")

    def refuse_owner(self, scope: Scope) -> None:
        """Owners are made and unmade by owners: else an administrator of the project could take it over."""
        held = self.rights.central.assigned(scope.project)
        if PROJECT_OWNER not in held and not self.rights.administers:
            raise NoRight("project_owner is given and taken by owners only")

    def refuse_central(self, scope: Scope, rule: Rule, entry: Entry) -> None:
        """Nobody gives a Central rule he does not hold there himself, nor one without its limit."""
        if not entry.value or self.rights.administers:
            return
        if not self.rights.central.allows(scope, rule):
            raise NoRight(f"{rule} is not held in {scope}")
        own = self.rights.central.rules(scope).get(rule)
        if own is not None and own.params and not set(entry.params) <= set(own.params):
            raise NoRight(f"{rule} is held with the limit {own.params} only")
        if own is not None and own.params and not entry.params:
            raise NoRight(f"{rule} is held with a limit and would be given without")

    def refuse_secrets(self, before: Tree, after: Tree) -> None:
        """Nobody gives a secret_data value he does not hold himself, nor makes one last longer."""
        default = overlaid(NO_SECRETS, self.model.schema.secret_data, self.now)
        given = overlaid(default, after, self.now)
        if not self.rights.secret.covers(among(given, changed_secrets(before, after))):
            raise NoRight("secret_data beyond the granter's own")


def changed_secrets(before: Tree, after: Tree) -> frozenset[tuple[str, ...]]:
    """Where the two trees say different things: ("application", "canSave"), ("meta", "roles", "canRead")."""
    had, has = secret_leaves(before), secret_leaves(after)
    return frozenset(place for place in had.keys() | has.keys() if had.get(place) != has.get(place))


def secret_leaves(tree: Tree) -> dict[tuple[str, ...], object]:
    meta = branch(tree, "meta")
    return {("application", rule): leaf for rule, leaf in branch(tree, "application").items()} | {
        ("meta", part, verb): leaf for part in meta for verb, leaf in branch(meta, part).items()
    }


def among(given: SecretData, places: frozenset[tuple[str, ...]]) -> SecretData:
    """What is said in these places alone."""
    return SecretData(
        application=frozenset(rule for rule in given.application if ("application", rule) in places),
        reads={
            part: extent if ("meta", part.value, "canRead") in places else Extent.NONE
            for part, extent in given.reads.items()
        },
        writes={
            part: extent if ("meta", part.value, "canWrite") in places else Extent.NONE
            for part, extent in given.writes.items()
        },
    )


def changed_entries(before: Holdings, after: Holdings) -> Iterator[tuple[Rule, Entry | None]]:
    """Every rule whose direct entry differs, with what it is to be; None when it goes."""
    for section, old, new in (
        (Section.PRIVATE, before.private_data, after.private_data),
        (Section.PUBLIC, before.public_data, after.public_data),
    ):
        had, has = section_entries(old, section), section_entries(new, section)
        for rule in sorted(rule for rule in had.keys() | has.keys() if had.get(rule) != has.get(rule)):
            yield rule, has.get(rule)


def with_params(entry: Entry, role: Role) -> Entry:
    """A role's own parameters are appended to every rule of it (interface §2.7)."""
    params = tuple(part for part in role.params.split(",") if part)
    return Entry(value=entry.value, params=(*entry.params, *params), end=entry.end)


def refuse_foreign_projects(
    rights: Rights, before: Mapping[Scope, Holdings], after: Mapping[Scope, Holdings]
) -> None:
    """`projectAccess` is judged project by project (R5)."""
    touched = {scope.project_id for scope in before.keys() | after.keys() if before.get(scope) != after.get(scope)}
    for project_id in sorted(touched - {""}):
        require(rights, Operation.MEMBERSHIP_SAVE, About(project_id=project_id))


def scope_order(scope: Scope) -> tuple[str, str, str]:
    return (scope.project_id, scope.kind or "", scope.resource_id)
