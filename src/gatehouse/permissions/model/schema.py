"""An application's schema of rules (interface §2.8)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct, convert, field

Tree: TypeAlias = Mapping[str, "Tree | object"]  # inner nodes by segment, leaves {value, protected, description}

LOGIN_DEFAULT: Final[Tree] = {
    "can": {"value": True, "protected": False, "description": ""},
    "cannot": {"value": False, "protected": False, "description": ""},
}

APPLICATION_RULES: Final = (
    "canCreateJwt",
    "canModifySchema",
    "canRead",
    "canReadSchema",
    "canSave",
    "canSeeRoleList",
)

SECRET_DEFAULT: Final[Tree] = {
    "application": {rule: {"value": False} for rule in APPLICATION_RULES},
    "meta": {
        "roles": {"canRead": {"value": "self"}, "canWrite": {"value": "none"}},
        "private": {"canRead": {"value": "self"}, "canWrite": {"value": "none"}},
        "public": {"canRead": {"value": "all"}, "canWrite": {"value": "none"}},
        "secret": {"canRead": {"value": "none"}, "canWrite": {"value": "none"}},
    },
}


class UnknownObject(StrEnum):
    """How a question about an object that does not exist is answered."""

    DENY = "deny"
    ROOT = "root"  # as at the root of the application


class ObjectType(Struct, frozen=True, kw_only=True):
    title: str = ""
    parents: tuple[str, ...] = ()  # types that an object of this type may be below
    rules: tuple[str, ...] = ()  # paths in private_data: only these are asked on objects of the type
    unknown: UnknownObject = UnknownObject.DENY


def stored_object_types(document: object) -> Mapping[str, ObjectType]:
    return convert(document, dict[str, ObjectType]) if document else {}


class ApplicationSchema(Struct, frozen=True, kw_only=True):
    application_id: int
    login: Tree = field(default_factory=lambda: LOGIN_DEFAULT)
    private_data: Tree = field(default_factory=dict)
    public_data: Tree = field(default_factory=dict)
    secret_data: Tree = field(default_factory=lambda: SECRET_DEFAULT)
    objects: Mapping[str, ObjectType] = field(default_factory=dict)  # object types by name, sorted
    version: int = 1
    updated_at: int
