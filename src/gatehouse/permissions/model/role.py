"""A role (interface §2.7)."""

from enum import StrEnum
from typing import Annotated, Final

from msgspec import Struct, field

from gatehouse.fields.model import FIXED, Field, Kind, described_fields
from gatehouse.permissions.documents.conditions import condition_document, parse_condition
from gatehouse.permissions.documents.fields import RecordField
from gatehouse.permissions.documents.grammar import check_user_limit
from gatehouse.permissions.documents.rules import parse_meta, read_params
from gatehouse.permissions.model.common_fields import DESCRIPTION
from gatehouse.permissions.model.condition import Condition
from gatehouse.permissions.model.schema import Tree

DEFAULT_ROLE_KEY: Final = "default"  # a role of this name is a default role whatever its fields say (interface §2.7)


# The sections of the form beside the description.
SCHEMA: Final = "schema"  # of those who may save the schema
CONDITION: Final = "condition"
LIMITS: Final = "limits"


class ConditionMode(StrEnum):
    GRANT = "grant"  # the role applies to everyone for whom the condition holds
    REQUIRE = "require"  # the condition gates assignments


class Role(Struct, frozen=True, kw_only=True):
    """A `RecordField` says how the API, files and audit records read a field."""

    application_id: int
    name: Annotated[str, FIXED]
    description: Annotated[str, DESCRIPTION] = ""
    protected: Annotated[bool, RecordField("Only those who may change the schema assign it.", section=SCHEMA)] = False
    default: Annotated[bool, RecordField("Everyone has it.", section=SCHEMA)] = False
    condition: Annotated[
        Condition | None,
        RecordField(
            "JSON file with its condition.", kind=Kind.DOCUMENT, read=parse_condition, document=condition_document
        ),
    ] = None
    condition_mode: Annotated[
        ConditionMode,
        RecordField("Whether the condition grants the role or limits who can have it.", section=CONDITION),
    ] = ConditionMode.GRANT
    user_limit: Annotated[
        int, RecordField("Maximum number of users; 0 for no limit.", section=LIMITS, read=check_user_limit)
    ] = 0
    params: Annotated[
        str, RecordField("Parameters of the role.", section=LIMITS, is_short=True, read=read_params)
    ] = ""
    meta: Annotated[Tree, RecordField("JSON file with its permissions.", kind=Kind.DOCUMENT, read=parse_meta)] = (
        field(default_factory=dict)
    )
    version: Annotated[int, FIXED] = 1
    generation: int = 0  # the schema version that created the role, or ended what was held of it below the root

    @property
    def key(self) -> str:
        """Names are unique ignoring case (R5); they are ASCII, so lower() is exact."""
        return self.name.lower()

    @property
    def is_default(self) -> bool:
        return self.default or self.key == DEFAULT_ROLE_KEY


ROLE_FIELDS: Final = tuple(described_fields(Role, Field))
CHANGEABLE_ROLE_FIELDS: Final = tuple(described_fields(Role, RecordField))
ROLE_FORM_FIELDS: Final = tuple(role_field for role_field in CHANGEABLE_ROLE_FIELDS if role_field.field.section)
