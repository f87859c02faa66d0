"""Writes of the permission model that processes race for (tests/support/racers.py)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from secrets import SystemRandom, token_bytes, token_hex
from typing import Final

from msgspec.structs import replace

from gatehouse.accounts.errors import UserNotFound
from gatehouse.kernel.errors import NotFound
from gatehouse.kernel.ids import new_user_id
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.errors import LastOwner, LimitReached, Malformed
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.condition import GroupCondition
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel, UserRecord
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.project import GrantAction, GroupGrant
from gatehouse.permissions.model.rules import ROOT, application_scope
from gatehouse.permissions.store import EditResult, MembershipChange
from gatehouse.storage.database import Storage
from tests.support.builders import NOW, a_record
from tests.support.permission_builders import (
    GROUP,
    P,
    a_group,
    a_person,
    a_project,
    a_role,
    a_service_account,
    an_access_key,
    connect_application,
    create_application,
    holdings_with,
    publish,
    set_fields,
    set_project_fields,
)

SHOP: Final = 50_001
OWNERS: Final = tuple(f"200000000{n}" for n in range(10))


async def add_access_key(storage: Storage, _n: int) -> None:
    await storage.application_keys.add_access_key(an_access_key(token_hex(8)), [a_record()])


async def take_role_assignment(storage: Storage, _n: int) -> None:
    user = await a_person(storage, new_user_id())
    await storage.user_records.edit_record(SHOP, user.user_id, set_fields(scopes={P: holdings_with("few")}), NOW)


async def publish_one_more(storage: Storage, _n: int) -> None:
    await publish(storage, a_project(f"p {token_hex(8)}"), limit=3)


async def publish_alike(storage: Storage, n: int) -> None:
    await publish(storage, a_project("My Project" if n % 2 else "my_project"))


async def rename_alike(storage: Storage, _n: int) -> None:
    project = await publish(storage, a_project(f"p {token_hex(8)}"))
    await storage.projects.edit_project(project.project_id, set_project_fields(title="Wanted Title"))


async def take_alias(storage: Storage, _n: int) -> None:
    project = await publish(storage, a_project(f"p {token_hex(8)}"))
    await storage.projects.edit_project(project.project_id, set_project_fields(aliases=("wanted",)))


async def take_application_name(storage: Storage, n: int) -> None:
    if n % 2:
        await create_application(storage, project_id="mind_games", name="Wanted")
        return
    application = await create_application(storage, name=token_hex(8), project_id="mind_games")
    await storage.applications.edit_application(application.application_id, set_fields(name="Wanted"))


async def rename_application(storage: Storage, n: int) -> None:
    """Rename one of ten applications to the name that the other nine want too."""
    await storage.applications.edit_application(SHOP + 1 + n, set_fields(name="Wanted"))


async def take_group_title(storage: Storage, n: int) -> None:
    group = a_group(token_hex(12), title="Wanted" if n % 2 else token_hex(8))
    await storage.groups.create_group(group, [a_record()])
    if not n % 2:
        await storage.groups.edit_group(group.group_id, set_fields(title="wanted"))


async def add_group(storage: Storage, _n: int) -> None:
    group = a_group(token_hex(12), project_id="crowded", title=token_hex(8))
    await storage.groups.create_group(group, [a_record()], most=3)


async def add_condition(storage: Storage, n: int) -> None:
    """Add a condition to a group, unless another group of the project has one."""
    group = a_group(token_hex(12), project_id="conditional", title=token_hex(8))
    await storage.groups.create_group(group, [a_record()])

    def change(state: Group, beside: Sequence[Group]) -> EditResult[Group]:
        if any(other.conditions for other in beside):
            raise LimitReached
        condition = GroupCondition(title="mine", condition=parse_condition({"tag": f"t{n}"}))
        return EditResult(replace(state, conditions=(condition,)), [a_record()])

    await storage.groups.edit_group_access(group.group_id, change)


async def take_service_account_name(storage: Storage, _n: int) -> None:
    await storage.service_accounts.create_service_account(a_service_account(new_user_id()), [], [a_record()])


async def make_application(storage: Storage, _n: int) -> None:
    await create_application(storage, name=token_hex(8))


async def save_record(storage: Storage, _n: int) -> None:
    def change(state: UserRecord) -> EditResult[UserRecord]:
        tree = {**state.login, token_hex(8): {"value": True}}
        return EditResult(replace(state, login=tree), [a_record()])

    await storage.user_records.edit_record(SHOP, OWNERS[0], change, NOW)


async def save_schema(storage: Storage, _n: int) -> None:
    def change(state: ApplicationModel) -> EditResult[ApplicationModel]:
        role, rule = a_role(token_hex(8), SHOP), {f"can_{token_hex(4)}": {"title": "May"}}
        schema = replace(state.schema, private_data={**state.schema.private_data, **rule})
        return EditResult(replace(state, schema=schema, roles={**state.roles, role.key: role}), [a_record()])

    await storage.applications.edit_schema(SHOP, change)


async def save_application(storage: Storage, _n: int) -> None:
    def change(state: Application) -> EditResult[Application]:
        return EditResult(replace(state, settings={**state.settings, token_hex(8): 1}), [a_record()])

    await storage.applications.edit_application(SHOP, change)


async def save_project(storage: Storage, _n: int) -> None:
    def change(state: ProjectModel) -> EditResult[ProjectModel]:
        return set_project_fields(tags=(*state.project.tags, token_hex(8)))(state)

    await storage.projects.edit_project("mind_games", change)


async def save_members(storage: Storage, n: int) -> None:
    users = {OWNERS[n]: set_fields(), OWNERS[-1 - n]: set_fields()}
    await storage.projects.edit_members(
        "mind_games", MembershipChange(project=set_project_fields(), users=users), NOW
    )


async def join_group(storage: Storage, _n: int) -> None:
    user = await a_person(storage, new_user_id())

    def change(state: Group) -> EditResult[Group]:
        return EditResult(replace(state, users=(*state.users, user.user_id)), [a_record()])

    await storage.groups.edit_group(GROUP, change)


def race_owners(n: int) -> tuple[str, str]:
    """The two owners of one of ten projects, `race_0` to `race_9`."""
    return f"30000000{n}1", f"30000000{n}2"


async def leave_as_owners(storage: Storage, n: int) -> None:
    """Remove both owners of a project at the same time, each in one of three ways."""
    ways = (leave_alone, leave_by_membership, leave_for_good)
    outcomes = await asyncio.gather(
        *(ways[ord(token_bytes(1)) % len(ways)](storage, f"race_{n}", owner) for owner in race_owners(n)),
        return_exceptions=True,
    )
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, LastOwner | UserNotFound):
            raise outcome


async def leave_alone(storage: Storage, _project: str, owner: str) -> None:
    await storage.user_records.edit_record(1, owner, set_fields(scopes={}), NOW)


async def leave_by_membership(storage: Storage, project: str, owner: str) -> None:
    change = MembershipChange(project=set_project_fields(), users={owner: set_fields(scopes={})})
    await storage.projects.edit_members(project, change, NOW)


async def leave_for_good(storage: Storage, _project: str, owner: str) -> None:
    await storage.profile.erase_user(owner, a_record(), even_last_administrator=True, now=NOW)


async def end_or_give_role(storage: Storage, n: int) -> None:
    """Create, protect or delete a role while other processes assign and grant it."""
    if n == 0:
        await storage.applications.edit_schema(SHOP, roles_with("moderator", protected=False))
        await storage.applications.edit_schema(SHOP, roles_with("moderator", protected=True))
        await storage.applications.edit_schema(SHOP, roles_with())
    elif n % 2:
        scopes = {ROOT: holdings_with("moderator"), P: holdings_with("moderator")}
        await storage.user_records.edit_record(SHOP, OWNERS[n], set_fields(scopes=scopes), NOW)
    else:
        grant = GroupGrant(group_id=GROUP, roles=("moderator",), action=GrantAction.GRANT)
        await storage.projects.edit_project("mind_games", connect_application(SHOP, grant))


def roles_with(*names: str, protected: bool = False) -> Callable[[ApplicationModel], EditResult[ApplicationModel]]:
    return set_fields(roles={name: a_role(name, SHOP, protected=protected) for name in ("guest", *names)})


async def come_and_go(storage: Storage, _n: int) -> None:
    """Give a person roles and memberships while their account is deleted."""
    user = await a_person(storage, new_user_id())

    def join(state: Group) -> EditResult[Group]:
        return EditResult(replace(state, users=(*state.users, user.user_id)), [a_record()])

    acts = [
        storage.user_records.edit_record(SHOP, user.user_id, set_fields(scopes={P: holdings_with("guest")}), NOW),
        storage.profile.erase_user(user.user_id, a_record(), even_last_administrator=True, now=NOW),
        storage.groups.edit_group(GROUP, join),
    ]
    SystemRandom().shuffle(acts)
    for outcome in await asyncio.gather(*acts, return_exceptions=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, UserNotFound):
            raise outcome


async def leave_project_while_given(storage: Storage, n: int) -> None:
    """Give a person access to an application while it is deleted or moves to a different project."""
    application = await create_application(storage, name=token_hex(8), project_id="mind_games")
    scopes = {application_scope("mind_games", application.application_id): holdings_with("app_developer")}
    user = await a_person(storage, new_user_id())
    away = {"removed": True} if n % 2 else {"project_id": "crowded"}
    acts = [
        storage.user_records.edit_record(1, user.user_id, set_fields(scopes=scopes), NOW),
        storage.applications.edit_application(application.application_id, set_fields(**away)),
    ]
    SystemRandom().shuffle(acts)
    for outcome in await asyncio.gather(*acts, return_exceptions=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, Malformed):
            raise outcome


async def claim_data_call(storage: Storage, _n: int) -> None:
    if not await storage.personal_data.claim_due_calls(NOW, 300, 1):
        raise NotFound


ACTS: Final[tuple[Callable[[Storage, int], Awaitable[None]], ...]] = (
    *(add_access_key, take_role_assignment, publish_one_more, publish_alike, rename_alike, take_alias),
    *(take_application_name, take_group_title, take_service_account_name, make_application),
    *(add_group, add_condition),
    *(save_record, save_schema, save_application, save_project, save_members, join_group),
    *(rename_application, leave_as_owners, end_or_give_role, come_and_go),
    *(leave_project_while_given, claim_data_call),
)
