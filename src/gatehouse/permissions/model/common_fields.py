"""Descriptions of fields that several kinds of records have: applications, projects, groups and roles."""

from typing import Final

from gatehouse.fields.model import Kind
from gatehouse.permissions.documents.fields import RecordField
from gatehouse.permissions.documents.grammar import MAX_DESCRIPTION_LENGTH, check_description, check_tags

FORM: Final = "form"  # the section of a console's form that has only one
IN_TAGS: Final = "tags"  # the request that alone changes a field (R6): project/tags, group/tags
IN_ACCESS: Final = "access"  # group/access

DESCRIPTION: Final = RecordField(
    "Description.",
    kind=Kind.PARAGRAPHS,
    section=FORM,
    hint=False,
    maximum=MAX_DESCRIPTION_LENGTH,
    read=check_description,
)
TAGS: Final = RecordField(
    "Tag; repeatable.", option="--tag", section=FORM, is_short=True, read=check_tags, request=IN_TAGS
)
