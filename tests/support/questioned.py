"""A studio in which there is something to ask about: rules, roles, groups, and people who hold them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.model.group import GroupCondition
from gatehouse.permissions.model.project import GrantAction, GroupGrant, ProjectSettings
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.model.user_record import ScopeHoldings, UserRecord
from gatehouse.permissions.store import EditResult
from tests.support.permission_builders import (
    GROUP,
    a_group,
    a_role,
    a_user_record,
    set_fields,
    set_project_fields,
)
from tests.support.studio import PROJECT, Person, Studio, create_person

P: Final = Scope(PROJECT)
REQUIRE: Final = ConditionMode.REQUIRE
STAFF: Final = "1000000003"
GUEST: Final = "1000000004"
SPELLED_LIKE_NO_PROJECT: Final = ("no-such-project", "MIND GAMES", "Minds", "", "a/b", "ü", "x" * 1_000)


def role_meta(**rules: bool) -> dict[str, object]:
    """A role's meta: `user_kick=True` is about the private rule user.kick."""
    tree: dict[str, Any] = {}
    for name, value in rules.items():
        head, _, tail = name.partition("_")
        tree.setdefault(head, {})[tail] = {"value": value}
    return {"private_data": tree}


def role_granting(name: str, **fields: Any) -> Role:
    return a_role(name, **{"meta": role_meta(user_kick=True), **fields})


def rule_leaf(*, value: bool = False) -> dict[str, object]:
    return {"value": value, "protected": False, "description": ""}


RULES: Final = {
    "private_data": {"user": {"kick": rule_leaf(), "ban": rule_leaf()}},
    "public_data": {"shown": {"name": rule_leaf()}},
}


async def put_roles(studio: Studio, *roles: Role, **schema: Any) -> None:
    """Exactly these roles of the shop, and a schema with user.kick, user.ban and public_data.shown.name."""

    def change(state: Any) -> EditResult[Any]:
        rules = {
            "private_data": {"user": {"kick": rule_leaf(), "ban": rule_leaf()}},
            "public_data": {"shown": {"name": rule_leaf()}},
        }
        new = set_fields(**{**rules, **schema})(state.schema).state
        return set_fields(schema=new, roles={role.key: role for role in roles})(state)

    await studio.service.services.storage.applications.edit_schema(studio.shop.application_id, change)


async def set_user_roles(
    studio: Studio, user_id: str, scopes: Mapping[Scope, Sequence[Any]], *, application_id: int = 0, **fields: Any
) -> None:
    """That is all the user has in the shop, or in another application."""
    there = application_id or studio.shop.application_id
    record = a_user_record(user_id, scopes, there, **fields)
    await write_record(studio, record)


async def set_user_holdings(studio: Studio, user_id: str, held: Mapping[Scope, ScopeHoldings]) -> None:
    await write_record(studio, UserRecord(application_id=studio.shop.application_id, user_id=user_id, scopes=held))


async def write_record(studio: Studio, record: UserRecord) -> None:
    await studio.service.services.storage.user_records.edit_record(
        record.application_id, record.user_id, lambda _: EditResult(record, ()), studio.service.clock.now()
    )


async def put_group(studio: Studio, *users: str, conditions: Sequence[Mapping[str, object]] = ()) -> None:
    rows = tuple(GroupCondition(title="rule", condition=parse_condition(one)) for one in conditions)
    group = a_group(project_id=PROJECT, users=users, conditions=rows)
    await studio.service.services.storage.groups.create_group(group, ())


async def grant_roles_to_group(studio: Studio, *roles: str, action: GrantAction = GrantAction.GRANT) -> None:
    """The project gives the group these roles of the shop."""
    grants = (GroupGrant(group_id=GROUP, roles=roles, action=action),)
    settings = ProjectSettings(services={studio.shop.application_id: grants})
    await studio.service.services.storage.projects.edit_project(PROJECT, set_project_fields(settings=settings))


async def create_staff(studio: Studio, user_id: str = STAFF) -> Person:
    return await create_person(studio.service, user_id)


def question_body(studio: Studio, **data: object) -> dict[str, object]:
    return {"application_id": studio.shop.application_id, "data": data}
