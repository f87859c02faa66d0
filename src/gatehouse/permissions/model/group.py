"""A group of users of a project (interface §2.5)."""

from typing import Annotated, Final

from msgspec import Struct

from gatehouse.fields.model import FIXED, Field, Kind, described_fields
from gatehouse.permissions.documents.conditions import conditions_document, read_conditions
from gatehouse.permissions.documents.fields import RecordField
from gatehouse.permissions.documents.grammar import MAX_TITLE_LENGTH, check_group_title, parse_user_ids
from gatehouse.permissions.model.common_fields import DESCRIPTION, FORM, IN_ACCESS, TAGS
from gatehouse.permissions.model.condition import GroupCondition

MAX_GROUP_USERS: Final = 100  # listed by id; interface §8
PROJECT_TAG: Final = "project"  # a group needs it to be in a membership list; a new group has it (R5)


class Group(Struct, frozen=True, kw_only=True):
    group_id: Annotated[str, Field(entry_name="id", patchable=False)]  # 24 hex digits
    project_id: Annotated[str, FIXED]
    title: Annotated[
        str, RecordField("Title.", section=FORM, hint=False, maximum=MAX_TITLE_LENGTH, read=check_group_title)
    ]
    description: Annotated[str, DESCRIPTION] = ""
    tags: Annotated[tuple[str, ...], TAGS] = (PROJECT_TAG,)
    conditions: Annotated[  # people who meet any of them are members
        tuple[GroupCondition, ...],
        RecordField(
            "JSON file with the list of conditions.",
            kind=Kind.DOCUMENT,
            read=read_conditions,
            document=conditions_document,
            request=IN_ACCESS,
        ),
    ] = ()
    users: Annotated[
        tuple[str, ...],
        RecordField("User ID of a member; repeatable.", option="--user", read=parse_user_ids, request=IN_ACCESS),
    ] = ()
    created_at: int
    version: Annotated[int, FIXED] = 1

    @property
    def title_key(self) -> str:
        """Titles are unique in a project, ignoring case and the difference of space and underscore."""
        return self.title.lower().replace(" ", "_")


GROUP_FIELDS: Final = tuple(described_fields(Group, Field))
CHANGEABLE_GROUP_FIELDS: Final = tuple(described_fields(Group, RecordField))
SAVED_GROUP_FIELDS: Final = tuple(field for field in CHANGEABLE_GROUP_FIELDS if not field.field.request)
ACCESS_FIELDS: Final = tuple(field for field in CHANGEABLE_GROUP_FIELDS if field.field.request == IN_ACCESS)
GROUP_FORM_FIELDS: Final = tuple(field for field in CHANGEABLE_GROUP_FIELDS if field.field.section)
