"""Application 1, the service itself: its rules and roles (R5)."""

from collections.abc import Iterable, Mapping
from typing import Final

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.schema import ApplicationSchema, Tree

ROOT_RULES: Final[Mapping[str, str]] = {
    "can_create_app": "Create applications outside a project",
    "can_remove_apps": "Remove applications",
    "can_publish_services": "Change service metadata",
    "can_create_projects": "Create projects; a number in the parameters limits how many",
    "can_administer": "Everything, everywhere",
}

GENERIC_RULES: Final[Mapping[str, Mapping[str, str]]] = {
    "project": {
        "can_view_project": "See the project and its members",
        "can_manage_project": "Change the project and its members",
        "can_remove_project": "Remove the project",
        "can_manage_applications": "Create, change and remove the project's applications",
        "can_manage_groups": "Create, change and remove the project's groups",
    },
    "app": {
        "can_manage_app_api_keys": "Create and delete the application's access keys",
        "can_modify_schema": "Change the application's rules and roles",
        "can_manage_users": "Change what users may do in the application",
        "can_ban": "Ban people from the application",
        "can_manage_objects": "Create, move and delete the application's objects",
    },
    "srv": {"can_manage_service": "Manage the service in the project"},
    "group": {"can_manage_group": "Change the members of the group"},
}

PROJECT_ALL: Final = tuple(GENERIC_RULES["project"])
PROJECT_ADMINISTRATOR_RULES: Final[Mapping[str, Iterable[str]]] = {
    **GENERIC_RULES,
    "project": [rule for rule in PROJECT_ALL if rule != "can_remove_project"],
    # Only owners have these by themselves (R10, R12).
    "app": [rule for rule in GENERIC_RULES["app"] if rule not in {"can_ban", "can_manage_objects"}],
}


def application(now: int) -> Application:
    return Application(
        application_id=CENTRAL_APPLICATION,
        name="Central",
        description="Gatehouse itself: administrators, projects and applications",
        created_at=now,
    )


def schema(now: int) -> ApplicationSchema:
    rules: Tree = {
        **{rule: _leaf(text, protected=True) for rule, text in ROOT_RULES.items()},
        **{
            area: {rule: _leaf(text, protected=False) for rule, text in rules.items()}
            for area, rules in GENERIC_RULES.items()
        },
    }
    return ApplicationSchema(application_id=CENTRAL_APPLICATION, private_data=rules, updated_at=now)


def roles() -> tuple[Role, ...]:
    return (
        _role("administrator", "Full access", {}, root=ROOT_RULES, protected=True),
        _role("project_owner", "Full access to the project", GENERIC_RULES),
        _role(
            "project_administrator",
            "Full access to the project except removing it",
            PROJECT_ADMINISTRATOR_RULES,
        ),
        _role(
            "app_developer",
            "Manage keys, rules and roles of the application",
            {"app": ["can_manage_app_api_keys", "can_modify_schema"]},
        ),
        _role("app_users_manager", "Manage users' permissions in the application", {"app": ["can_manage_users"]}),
        _role("object_manager", "Manage the objects of the application", {"app": ["can_manage_objects"]}),
        _role("service_administrator", "Manage the service", {"srv": GENERIC_RULES["srv"]}),
        _role("group_manager", "Manage the group", {"group": GENERIC_RULES["group"]}),
    )


def _role(
    name: str,
    description: str,
    areas: Mapping[str, Iterable[str]],
    *,
    root: Iterable[str] = (),
    protected: bool = False,
) -> Role:
    granted: dict[str, object] = {rule: {"value": True} for rule in root}
    for area, rules in areas.items():
        granted[area] = {rule: {"value": True} for rule in rules}
    return Role(
        application_id=CENTRAL_APPLICATION,
        name=name,
        description=description,
        protected=protected,
        meta={"private_data": granted},
    )


def _leaf(description: str, *, protected: bool) -> Tree:
    return {"value": False, "protected": protected, "description": description}
