"""In any state, members equals checking everyone, and simulate predicts what the save does."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatehouse.permissions.commands.app_schemas import RoleDraft, SchemaCommands
from gatehouse.permissions.commands.groups import AccessDraft, GroupCommands
from gatehouse.permissions.commands.memberships import MembershipCommands, MembershipDraft
from gatehouse.permissions.commands.projects import ProjectCommands, ProjectDraft
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.evaluation.effective import EffectivePermissions, evaluate
from gatehouse.permissions.evaluation.shapes import DEFAULT_OPTIONS, Shape, render_shape
from gatehouse.permissions.model.condition import GroupCondition
from gatehouse.permissions.model.facts import Assignment, ScopeHoldings, UserRecord
from gatehouse.permissions.model.project import GrantAction, GroupGrant, ProjectSettings
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.rules import ROOT, End, Scope, group_scope
from gatehouse.permissions.questions.members import MemberQuery
from gatehouse.permissions.questions.parsing import read_rule
from gatehouse.permissions.questions.proposals import (
    AnyProposal,
    GroupAccessProposal,
    MembershipProposal,
    ProjectProposal,
    Proposer,
    RoleProposal,
    SchemaProposal,
)
from gatehouse.permissions.rights.operators import operator_actor
from tests.fuzz.conftest import FACTOR
from tests.support.builders import ORIGIN
from tests.support.permission_builders import GROUP, a_person, set_fields, set_project_fields
from tests.support.studio import OTHER_USER, OWNER, PROJECT, Studio, put_group, put_roles, rule_leaf, write_record

ANN, BEN, CAT = "2000000001", "2000000002", "2000000003"
EVERYBODY: Final = (OWNER, OTHER_USER, ANN, BEN, CAT)
P: Final = Scope(PROJECT)
ON_GROUP: Final = group_scope(PROJECT, GROUP)
ROLES: Final = ("one", "two", "default")
PATHS: Final = ("user.kick", "user.ban")
SILENT: Final = {"kick": False, "ban": False}
FAR: Final = 4_000_000_000

condition = st.recursive(
    st.sampled_from(
        [
            {"tag": "staff"},
            {"tag": "email_verified"},
            {"purchase": "game"},
            {"domain": "studio.example"},
            {"uid": [BEN]},
            {"everyone": True},
            {"ip": "127.0.0.0/8"},
        ]
    ),
    lambda inner: st.builds(
        lambda word, parts: {word: parts}, st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=2)
    ),
    max_leaves=3,
)
plain_condition = condition.filter(lambda one: "ip" not in str(one))
rules = st.dictionaries(st.sampled_from(["kick", "ban"]), st.booleans())
some_people = st.lists(st.sampled_from(EVERYBODY[1:]), unique=True, max_size=2)
grants = st.lists(
    st.tuples(st.lists(st.sampled_from(ROLES), unique=True, min_size=1), st.sampled_from(list(GrantAction))),
    max_size=2,
)
assigned = st.lists(st.tuples(st.sampled_from(ROLES), st.sampled_from([0, 5, FAR])), unique_by=lambda one: one[0])


@dataclass(frozen=True, kw_only=True)
class StudioState:
    roles: Mapping[str, Role]
    defaults: Mapping[str, bool]
    members: list[str]
    conditions: list[dict[str, object]]
    grants: list[tuple[list[str], GrantAction]]
    lists: tuple[bool, bool, bool]  # whether the group is allowed, disallowed, and domains are limited
    held: Mapping[str, Mapping[Scope, tuple[list[tuple[str, int]], Mapping[str, bool]]]]


def tree(values: Mapping[str, bool]) -> dict[str, object]:
    return {"user": {name: {"value": value} for name, value in values.items()}} if values else {}


def a_role(name: str, fields: tuple[Any, ...]) -> Role:
    values, protected, default, document, mode = fields
    return Role(
        application_id=0,
        name=name,
        protected=protected,
        default=default,
        condition=None if document is None else parse_condition(document),
        condition_mode=mode,
        meta={"private_data": tree(values)} if values else {},
    )


seldom = st.sampled_from([False, False, False, True])
role_fields = st.tuples(
    rules, seldom, seldom, st.none() | condition, st.sampled_from([ConditionMode.GRANT, ConditionMode.REQUIRE])
)
plain_role = st.just(({"kick": True}, False, False, None, ConditionMode.GRANT))
a_state = st.builds(
    StudioState,
    roles=st.fixed_dictionaries(
        {"one": (plain_role | role_fields).map(partial(a_role, "one"))},
        optional={name: role_fields.map(partial(a_role, name)) for name in ROLES[1:]},
    ),
    defaults=rules,
    members=st.just([ANN]) | some_people,
    conditions=st.lists(plain_condition, max_size=1),
    grants=grants,
    lists=st.tuples(seldom, seldom, seldom),
    held=st.dictionaries(
        st.sampled_from(EVERYBODY[1:]),
        st.dictionaries(st.sampled_from([ROOT, P, ON_GROUP]), st.tuples(assigned, rules), max_size=2),
        max_size=3,
    ),
)
a_change: st.SearchStrategy[AnyProposal] = st.one_of(
    st.builds(
        lambda name, values, fields: RoleProposal(
            data=RoleDraft(name=name, meta={"private_data": tree(values)}, **fields)
        ),
        st.sampled_from(["one", "one", *ROLES, "new"]),
        st.just({"ban": True}) | rules,
        st.just({})
        | st.fixed_dictionaries(
            {},
            optional={
                "protected": st.booleans(),
                "default": st.booleans(),
                "condition": st.none() | condition,
                "condition_mode": st.sampled_from(list(ConditionMode)),
            },
        ),
    ),
    st.builds(
        lambda values: SchemaProposal(data={"private_data": tree({"kick": False, "ban": False, **values})}), rules
    ),
    st.builds(
        lambda users, conditions: GroupAccessProposal(
            group_id=GROUP,
            data=AccessDraft(users=users, conditions=[{"title": "t", "condition": one} for one in conditions]),
        ),
        st.just([]) | some_people,
        st.lists(plain_condition, min_size=1, max_size=2),
    ),
    st.builds(
        lambda domains: ProjectProposal(
            data=ProjectDraft(id=PROJECT, settings={"allowed_domains": domains, "services": {}})
        ),
        st.sampled_from([[], ["studio.example"]]),
    ),
    st.builds(
        lambda one, owner, allowed: MembershipProposal(
            data=MembershipDraft(
                id=PROJECT,
                users={one: {"roles": ["project_owner"]} if owner else None},
                allow=[GROUP] if allowed else [],
                disallow=[] if allowed else [GROUP],
            )
        ),
        st.sampled_from(EVERYBODY[1:]),
        st.booleans(),
        st.booleans(),
    ),
)


async def build(studio: Studio, state: StudioState) -> None:
    """Write the studio's whole state, replacing the previous one."""
    storage, shop = studio.service.services.storage, studio.shop.application_id
    await storage.projects.edit_project(
        PROJECT, set_project_fields(settings=ProjectSettings(), allow=(), disallow=())
    )
    for user_id in EVERYBODY:
        await write_record(studio, UserRecord(application_id=shop, user_id=user_id))
        if user_id != OWNER:
            await write_record(studio, UserRecord(application_id=1, user_id=user_id))
    await put_roles(studio)
    defaults = {
        "kick": rule_leaf(value=state.defaults.get("kick", False)),
        "ban": rule_leaf(value=state.defaults.get("ban", False)),
    }
    await put_roles(studio, *state.roles.values(), private_data={"user": defaults})
    rows = tuple(GroupCondition(title="c", condition=parse_condition(one)) for one in state.conditions)
    await storage.groups.edit_group(GROUP, set_fields(users=tuple(state.members), conditions=rows))
    public = {name for name, role in state.roles.items() if not role.protected}
    project_grants = tuple(
        GroupGrant(group_id=GROUP, roles=tuple(role for role in roles if role in public), action=action)
        for roles, action in state.grants
        if public & set(roles)
    )
    allow, disallow, domains = state.lists
    await storage.projects.edit_project(
        PROJECT,
        set_project_fields(
            settings=ProjectSettings(
                services={shop: project_grants}, allowed_domains=("studio.example",) if domains else ()
            ),
            allow=(GROUP,) if allow and not disallow else (),
            disallow=(GROUP,) if disallow else (),
        ),
    )
    for user_id, scopes in state.held.items():
        holdings_by_user = {
            scope: holdings(*one, state.roles.keys() if scope.is_root else public) for scope, one in scopes.items()
        }
        await write_record(
            studio,
            UserRecord(
                application_id=shop,
                user_id=user_id,
                scopes={scope: one for scope, one in holdings_by_user.items() if not one.is_empty},
            ),
        )


def holdings(roles: list[tuple[str, int]], entries: Mapping[str, bool], usable: AbstractSet[str]) -> ScopeHoldings:
    return ScopeHoldings(
        roles=tuple(Assignment(role=name, end=End(expired=end)) for name, end in roles if name in usable),
        private_data=tree(entries),
    )


async def held_by_all(studio: Studio) -> dict[str, EffectivePermissions]:
    """The naive way: check everyone."""
    storage, shop, holders = studio.service.services.storage, studio.shop.application_id, {}
    model = (await storage.permissions.application_models([shop]))[shop]
    structure = (await storage.candidates.application_snapshot(shop, [PROJECT])).structure
    for user_id in EVERYBODY:
        facts = await storage.permissions.facts(user_id, [shop])
        assert facts is not None
        holders[user_id] = evaluate(model, facts, structure, now=studio.service.clock.now(), address=None)
    return holders


def as_lists(effective: Mapping[str, EffectivePermissions]) -> dict[str, tuple[set[str], set[str]]]:
    return {
        user_id: (
            set(render_shape(one, Shape.LIST, DEFAULT_OPTIONS, 0)),
            set(render_shape(one, Shape.ROLES, DEFAULT_OPTIONS, 0)),
        )
        for user_id, one in effective.items()
    }


async def prepare_studio(studio: Studio) -> None:
    storage = studio.service.services.storage
    if await storage.permissions.facts(ANN, [1]) is None:
        await a_person(storage, ANN, tags=frozenset({"staff"}))
        await a_person(storage, BEN, purchases=frozenset({"game"}), email_verified=True)
        await a_person(storage, CAT, email_verified=True)
        await put_group(studio)


async def proposer(studio: Studio) -> Proposer:
    storage, shop = studio.service.services.storage, studio.shop.application_id
    models = await storage.permissions.application_models([1, shop])
    now = studio.service.clock.now()
    return Proposer(actor=operator_actor(models[1], ORIGIN, now), model=models[shop], central=models[1])


async def save(studio: Studio, change: AnyProposal, by: Proposer) -> None:
    services = studio.service.services
    storage, recorder, clock = services.storage, services.core.recorder, services.clock
    schemas = SchemaCommands(store=storage.applications, recorder=recorder, clock=clock)
    match change:
        case RoleProposal(data=role):
            await schemas.save_role(by.actor, by.model, role)
        case SchemaProposal(data=schema):
            await schemas.save(by.actor, by.model, schema)
        case GroupAccessProposal(group_id=group_id, data=access):
            groups = GroupCommands(
                store=storage.groups,
                projects=storage.projects,
                people=storage.permissions,
                recorder=recorder,
                clock=clock,
            )
            await groups.save_access(by.actor, group_id, access)
        case ProjectProposal(data=project):
            projects = ProjectCommands(store=storage.projects, models=storage.permissions, recorder=recorder)
            await projects.save(by.actor, project)
        case MembershipProposal(data=membership):
            memberships = MembershipCommands(
                projects=storage.projects,
                records=storage.user_records,
                recorder=recorder,
                clock=clock,
            )
            await memberships.save(by.actor, by.central, membership)
        case _:
            raise AssertionError(change)


def settings_for(examples: int) -> settings:
    # Each example writes the whole state, so that nothing of the previous one is left.
    return settings(max_examples=examples * FACTOR, deadline=None, suppress_health_check=list(HealthCheck))


@settings_for(20)
@given(state=a_state)
async def test_members_are_those_whom_looking_at_everyone_finds(studio: Studio, state: StudioState) -> None:
    await prepare_studio(studio)
    await build(studio, state)
    effective = await held_by_all(studio)
    search, shop = studio.service.services.questions.member_search, studio.shop.application_id
    for scope in (ROOT, P, ON_GROUP):
        for path in PATHS:
            rule_query = read_rule(path, "rule")
            page = await search.find_page(shop, MemberQuery(rule=rule_query, scope=scope))
            expected = [
                one for one, has in effective.items() if any(has.allows(scope, rule) for rule in rule_query.rules)
            ]
            assert [member.user_id for member in page.members] == expected
            assert all(member.path for member in page.members)
        for name in state.roles:
            page = await search.find_page(shop, MemberQuery(role=name, scope=scope))
            given_there = {one for one, has in effective.items() if name in has.granted_roles(scope)}
            by_itself = {member.user_id for member in page.members if by_default_or_condition(member.path)}
            assert {member.user_id for member in page.members} == given_there | by_itself
            assert scope.is_root or not by_itself


def by_default_or_condition(path: Any) -> bool:
    return any(way.kind in ("default_role", "condition_of_role") for way in path)


@settings_for(50)
@given(state=a_state, change=a_change)
async def test_a_save_changes_exactly_what_was_foretold(
    studio: Studio, state: StudioState, change: AnyProposal
) -> None:
    await prepare_studio(studio)
    await build(studio, state)
    before = as_lists(await held_by_all(studio))
    by = await proposer(studio)
    try:
        forecast = await studio.service.services.questions.simulation.run(change, by, after="", limit=1_000)
    except Exception as foretold:
        try:
            await save(studio, change, by)
        except type(foretold):
            return
        raise
    await save(studio, change, by)
    after = as_lists(await held_by_all(studio))
    changes = {
        effect.user_id: (set(effect.gains), set(effect.loses), set(effect.gains_roles), set(effect.loses_roles))
        for effect in forecast.effects
    }
    assert changes == {
        user_id: (new - old, old - new, new_roles - old_roles, old_roles - new_roles)
        for user_id in EVERYBODY
        for (old, old_roles), (new, new_roles) in [(before[user_id], after[user_id])]
        if before[user_id] != after[user_id]
    }
