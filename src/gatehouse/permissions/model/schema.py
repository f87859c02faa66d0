"""An application's schema of rules (interface §2.8)."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct, field

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


class ApplicationSchema(Struct, frozen=True, kw_only=True):
    application_id: int
    login: Tree = field(default_factory=lambda: LOGIN_DEFAULT)
    private_data: Tree = field(default_factory=dict)
    public_data: Tree = field(default_factory=dict)
    secret_data: Tree = field(default_factory=lambda: SECRET_DEFAULT)
    version: int = 1
    updated_at: int
