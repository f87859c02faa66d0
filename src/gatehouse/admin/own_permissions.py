"""A user's own permissions: in which applications, which rules, and why."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import BigInteger, ColumnElement, Text, bindparam, func, literal_column, or_, select, union

from gatehouse.accounts.bans.model import find_ban
from gatehouse.accounts.model import CENTRAL_APPLICATION, User
from gatehouse.admin.names import NamedApplication
from gatehouse.kernel.addresses import Address
from gatehouse.kernel.background import run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.sorting import sort_in_slices
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest, Authenticator
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.authentication.vouching import CallerKind
from gatehouse.permissions.documents.conditions import stored_condition
from gatehouse.permissions.evaluation.conditions import condition_holds
from gatehouse.permissions.evaluation.contributions import Contribution, SourceKind
from gatehouse.permissions.evaluation.effective import EffectivePermissions, ScopePermissions
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.model.condition import Condition, ConditionSubject
from gatehouse.permissions.model.facts import Structure
from gatehouse.permissions.model.role import ConditionMode
from gatehouse.permissions.model.rules import Rule, Scope
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.storage.runner import SqlStore, read, snapshot_read
from gatehouse.storage.statements import EMPTY_DOCUMENT, InNumberList, Row, Statement, Verb
from gatehouse.storage.tables.oauth import clients, consents
from gatehouse.storage.tables.permissions import applications, role_assignments, roles, scope_records, user_records
from gatehouse.storage.tables.projects import group_members, groups, project_services


class ConditionalGrant(Struct, frozen=True, kw_only=True):
    """A role granted by its condition, or by a group whose members are defined by conditions."""

    application: NamedApplication
    conditions: tuple[Condition, ...]  # any of them is enough


_THIS_USER = bindparam("of", type_=Text())

APPLICATIONS_OF_USER = Statement(
    lambda: (
        select(applications.c.application_id, applications.c.name)
        .where(
            applications.c.removed.is_(False),
            applications.c.application_id.in_(
                union(
                    select(role_assignments.c.application_id).where(role_assignments.c.user_id == _THIS_USER),
                    *(
                        select(table.c.application_id).where(
                            table.c.user_id == _THIS_USER,
                            or_(table.c.private_data != EMPTY_DOCUMENT, table.c.public_data != EMPTY_DOCUMENT),
                        )
                        for table in (user_records, scope_records)
                    ),
                    select(project_services.c.application_id)
                    .join(groups, groups.c.project_id == project_services.c.project_id)
                    .join(group_members, group_members.c.group_id == groups.c.group_id)
                    .where(group_members.c.user_id == _THIS_USER, project_services.c.group_id == groups.c.group_id),
                    select(clients.c.application_id)
                    .join(consents, consents.c.client_id == clients.c.client_id)
                    .where(consents.c.user_id == _THIS_USER),
                )
            ),
        )
        .order_by(
            applications.c.application_id == CENTRAL_APPLICATION,
            func.lower(applications.c.name),
            applications.c.application_id,
        )
        .limit(bindparam("most", type_=BigInteger()))
    )
)


_MOST = bindparam("most", type_=BigInteger())
_BY_NAME = (func.lower(applications.c.name), applications.c.application_id)


class MyApplication(Struct, frozen=True, kw_only=True):
    """An application as those who use it see it."""

    application_id: int
    name: str
    description: str
    project_id: str  # empty outside of projects
    logo: str  # ID of the image; empty without one
    address: str  # where it opens; empty if no client of it says


# Roles and groups with conditions are few: all are read, and evaluated by the caller.
CONDITIONAL_ROLES = Statement(
    lambda: (
        select(applications.c.application_id, applications.c.name, roles.c.condition)
        .join(applications, applications.c.application_id == roles.c.application_id)
        .where(
            roles.c.condition.is_not(None),
            roles.c.condition_mode == ConditionMode.GRANT.value,
            applications.c.removed.is_(False),
        )
        .order_by(*_BY_NAME, roles.c.role_key)
        .limit(_MOST)
    )
)
CONDITIONAL_GROUPS = Statement(
    lambda: (
        select(applications.c.application_id, applications.c.name, groups.c.conditions)
        .select_from(project_services)
        .join(groups, groups.c.group_id == project_services.c.group_id)
        .join(applications, applications.c.application_id == project_services.c.application_id)
        .where(
            groups.c.project_id == project_services.c.project_id,
            groups.c.conditions != literal_column("'[]'", Text),
            applications.c.removed.is_(False),
        )
        .order_by(*_BY_NAME, groups.c.group_id, project_services.c.position)
        .limit(_MOST)
    )
)


def _of_its_clients(column: ColumnElement[str]) -> ColumnElement[str]:
    """Return what the first of the application's clients by name says; empty if none does."""
    return func.coalesce(
        select(column)
        .where(clients.c.application_id == applications.c.application_id, clients.c.removed.is_(False), column != "")
        .order_by(clients.c.name, clients.c.client_id)
        .limit(1)
        .scalar_subquery(),
        literal_column("''", Text),
    )


APPLICATIONS_TO_OPEN = Statement(
    lambda: (
        select(
            applications.c.application_id,
            applications.c.name,
            applications.c.description,
            func.coalesce(applications.c.project_id, "").label("project_id"),
            func.coalesce(func.nullif(applications.c.logo, ""), _of_its_clients(clients.c.logo)).label("logo"),
            _of_its_clients(clients.c.client_uri).label("address"),
        )
        .where(
            InNumberList(applications.c.application_id, "ids"),
            applications.c.application_id != CENTRAL_APPLICATION,
            applications.c.removed.is_(False),
        )
        .order_by(*_BY_NAME)
    )
)


def applications_to_open(application_ids: Collection[int]) -> Verb[Sequence[MyApplication]]:
    """Return those of the applications that are not removed, by name, without application 1."""
    if not application_ids:
        return ()
    rows = yield APPLICATIONS_TO_OPEN(ids=sorted(application_ids))
    return [MyApplication(**row._asdict()) for row in rows]


def conditional_grants(most: int) -> Verb[Sequence[ConditionalGrant]]:
    """Return grants by condition, at most so many by roles and so many by groups, ordered by application."""
    by_roles = yield CONDITIONAL_ROLES(most=most)
    by_groups = yield CONDITIONAL_GROUPS(most=most)
    return [
        *(_conditional(row, [row.condition]) for row in by_roles),
        *(_conditional(row, [condition["condition"] for condition in row.conditions]) for row in by_groups),
    ]


def _conditional(row: Row, conditions: Sequence[Mapping[str, object]]) -> ConditionalGrant:
    return ConditionalGrant(
        application=NamedApplication(application_id=row.application_id, name=row.name),
        conditions=tuple(stored_condition(condition) for condition in conditions),
    )


def applications_of_user(user_id: str, most: int) -> Verb[Sequence[NamedApplication]]:
    """Return the first applications by name in which the user may have permissions, application 1 last.

    These have a record of the user or of a group that lists them, or are connected to their account.
    """
    return [NamedApplication(**row._asdict()) for row in (yield APPLICATIONS_OF_USER(of=user_id, most=most))]


class OwnPermissionsStore(SqlStore):
    applications_of_user = read(applications_of_user)
    conditional_grants = snapshot_read(conditional_grants)
    applications_to_open = snapshot_read(applications_to_open)


# A user's permissions in an application, rule by rule, with the source of each. Pure.
#
# Built from the contributions of the evaluation that decides, so that the list and a decision cannot differ.


class RuleSource(Struct, frozen=True, kw_only=True):
    """Where a permission comes from; the texts are `source.<kind>`."""

    kind: SourceKind
    role: str = ""
    group: str = ""  # its title


class EffectiveRule(Struct, frozen=True, kw_only=True):
    rule: Rule
    sources: tuple[RuleSource, ...]
    params: tuple[str, ...]
    ends_at: int  # 0 for no end


class RuleFamily(Struct, frozen=True, kw_only=True):
    """Rules with the same first path segment; "" for those of one segment."""

    prefix: str
    lines: tuple[EffectiveRule, ...]


class HeldScope(Struct, frozen=True, kw_only=True):
    scope: Scope
    project: str  # its title
    families: tuple[RuleFamily, ...]

    @property
    def count(self) -> int:
        return sum(len(family.lines) for family in self.families)


def held_scopes(effective: EffectivePermissions, structure: Structure, now: int) -> tuple[HeldScope, ...]:
    """Every scope in which a rule is held, the root first."""
    return tuple(
        _held_scope(scope, effective.rules(scope), structure, now)
        for scope in effective.nonempty_scopes
        if effective.rules(scope).held
    )


def _held_scope(scope: Scope, rules: ScopePermissions, structure: Structure, now: int) -> HeldScope:
    model = structure.projects.get(scope.project_id)
    titles = {} if model is None else {group_id: group.title for group_id, group in model.groups.items()}
    sources, lefts = deciding_contributions(rules), rules.seconds_left(rules.held, now)
    lines = [
        EffectiveRule(
            rule=rule,
            sources=tuple(dict.fromkeys(_rule_source(contribution, titles) for contribution in sources[rule])),
            params=rules.params.get(rule, ()),
            ends_at=now + lefts[rule] if rule in lefts else 0,
        )
        for rule in sort_in_slices(rules.held, key=lambda rule: (rule_prefix(rule), rule.path))
    ]
    return HeldScope(
        scope=scope, project=model.project.title if model else "", families=tuple(_group_by_prefix(lines))
    )


def deciding_contributions(rules: ScopePermissions) -> Mapping[Rule, list[Contribution]]:
    """For every rule that is held, the contributions of the highest tier that decides it; all of them allow it."""
    by_rule: dict[Rule, list[Contribution]] = {}
    for tier in reversed(rules.contributions.tiers):
        deciding: dict[Rule, list[Contribution]] = {}
        for contribution in tier:
            for rule in contribution.verdicts.yes & rules.held:
                deciding.setdefault(rule, []).append(contribution)
        for rule, contributions in deciding.items():
            by_rule.setdefault(rule, contributions)
    return by_rule


def _rule_source(contribution: Contribution, titles: Mapping[str, str]) -> RuleSource:
    source = contribution.source
    return RuleSource(
        kind=source.kind,
        role=source.role.name if source.role else "",
        group=titles.get(source.group_id, source.group_id),
    )


def _group_by_prefix(lines: Iterable[EffectiveRule]) -> Iterator[RuleFamily]:
    for prefix, members in groupby(lines, key=lambda line: rule_prefix(line.rule)):
        yield RuleFamily(prefix=prefix, lines=tuple(members))


def rule_prefix(rule: Rule) -> str:
    head, dot, _ = rule.path.partition(".")
    return head if dot else ""


# What users see of their own permissions: which rules they hold where, and why.
#
# It reveals no more than explanations of single rules do: a group is named only to those who may view its project
# (docs/decisions/0014-reading-of-the-permission-model.md). Bounded, because it is only a part of a page.


MAX_APPLICATIONS: Final = 20
MAX_SCOPES: Final = 100
MAX_CONDITIONS: Final = 1_000  # of roles, and of groups, that are evaluated
MAX_RULES: Final = 30  # listed for one reason; the rest is counted


class Reason(Struct, frozen=True, kw_only=True):
    """Rules that are held for the same reason until the same time."""

    sources: tuple[RuleSource, ...]
    ends_at: int  # 0 for no end
    lines: tuple[EffectiveRule, ...]
    more: int  # that are not listed


class OwnScope(Struct, frozen=True, kw_only=True):
    application: str
    scope: Scope
    project: str  # its title
    reasons: tuple[Reason, ...]


class OwnPermissions(Struct, frozen=True, kw_only=True):
    places: Sequence[OwnScope] = ()
    is_cut: bool = False  # there are more applications or scopes


NO_PERMISSIONS: Final = OwnPermissions()


class OwnPermissionsLoader:
    def __init__(
        self,
        *,
        store: OwnPermissionsStore,
        authenticator: Authenticator,
        permission_loader: PermissionLoader,
        clock: Clock,
    ) -> None:
        self._store = store
        self._authenticator = authenticator
        self._permission_loader = permission_loader
        self._clock = clock

    async def load(self, user_id: str, named: Sequence[NamedApplication], address: Address | None) -> OwnPermissions:
        """Load the user's permissions in the applications of `find_applications`.

        `address` is their proven IP address, for conditions.
        """
        facts = await self._permission_loader.load_facts(
            user_id, {CENTRAL_APPLICATION, *(application.application_id for application in named)}
        )
        if facts is None:
            return NO_PERMISSIONS
        authenticated = await self._authenticator.attach_rights(
            Caller(by=CallerKind.FACTOR, facts=facts, address=address)
        )
        first_applications = named[:MAX_APPLICATIONS]
        places = [
            place
            for application in first_applications
            for place in await self._own_scopes(authenticated, application, address)
        ]
        is_cut = len(named) > MAX_APPLICATIONS or len(places) > MAX_SCOPES
        return OwnPermissions(places=places[:MAX_SCOPES], is_cut=is_cut)

    async def find_own_applications(
        self, user: User, named: Sequence[NamedApplication], connected: Collection[int]
    ) -> Sequence[MyApplication]:
        """Return these applications, `named` and those connected to, unless the person is banned there."""
        application_ids = {*connected, *(one.application_id for one in named)}
        found = await self._store.applications_to_open(application_ids)
        now = self._clock.now()
        return [
            one
            for one in found
            if find_ban(user.bans, now, application_id=one.application_id, project_id=one.project_id) is None
        ]

    async def find_applications(self, user_id: str, address: Address | None) -> Sequence[NamedApplication]:
        """Return applications in which the user may have permissions; one more than MAX_APPLICATIONS at most."""
        person = await self._permission_loader.load_facts(user_id, {CENTRAL_APPLICATION})
        if person is None:
            return ()
        written = await self._store.applications_of_user(user_id, MAX_APPLICATIONS + 1)
        conditional = await self._store.conditional_grants(MAX_CONDITIONS)
        met = [grant.application for grant in conditional if _is_met(grant, person.subject, address)]
        return sorted({*written, *met}, key=_application_order)[: MAX_APPLICATIONS + 1]

    async def _own_scopes(
        self, request: AuthenticatedRequest, application: NamedApplication, address: Address | None
    ) -> list[OwnScope]:
        evaluation_input = request.evaluation_input
        if application.application_id not in evaluation_input.models:  # deleted meanwhile
            return []
        effective = await self._permission_loader.evaluate(evaluation_input, application.application_id, address)
        return await run_off_loop(
            effective.work, _own_scopes_of, request, application.name, effective, self._clock.now()
        )


def _own_scopes_of(
    request: AuthenticatedRequest, application: str, effective: EffectivePermissions, now: int
) -> list[OwnScope]:
    scopes = []
    for place in held_scopes(effective, request.evaluation_input.structure, now):
        names_groups = is_open(request.rights, Operation.PROJECT_GET, GuardTarget(project_id=place.scope.project_id))
        reasons = tuple(_reasons(place, names_groups=names_groups))
        scopes.append(OwnScope(application=application, scope=place.scope, project=place.project, reasons=reasons))
    return scopes


def _is_met(conditional: ConditionalGrant, who: ConditionSubject, address: Address | None) -> bool:
    return any(condition_holds(condition.test, who, address) for condition in conditional.conditions)


def _application_order(application: NamedApplication) -> tuple[bool, str, int]:
    return application.application_id == CENTRAL_APPLICATION, application.name.lower(), application.application_id


def _reasons(place: HeldScope, *, names_groups: bool) -> Iterator[Reason]:
    alike: dict[tuple[tuple[RuleSource, ...], int], list[EffectiveRule]] = {}
    for family in place.families:
        for line in family.lines:
            sources = line.sources if names_groups else _without_groups(line.sources)
            alike.setdefault((sources, line.ends_at), []).append(line)
    for (sources, ends_at), lines in alike.items():
        named = tuple(lines[:MAX_RULES])
        yield Reason(sources=sources, ends_at=ends_at, lines=named, more=len(lines) - len(named))


def _without_groups(sources: tuple[RuleSource, ...]) -> tuple[RuleSource, ...]:
    return tuple(dict.fromkeys(replace(source, group="") for source in sources))
