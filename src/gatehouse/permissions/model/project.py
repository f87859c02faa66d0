"""A project and its settings (interface §2.4).

A `Field` says how the API, files, CSV and audit records read a field.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Struct, field

from gatehouse.fields.model import FIXED, Field, Kind, described_fields
from gatehouse.permissions.documents.fields import RecordField
from gatehouse.permissions.documents.grammar import MAX_TITLE_LENGTH, check_aliases, check_title
from gatehouse.permissions.model.common_fields import DESCRIPTION, FORM, TAGS


class GrantAction(StrEnum):
    GRANT = "grant"
    REVOKE = "revoke"  # beats grant


class GroupGrant(Struct, frozen=True, kw_only=True):
    """Grants roles of a connected application to a group in the project, or revokes them."""

    group_id: str
    roles: tuple[str, ...]  # keys
    action: GrantAction


class ProjectSettings(Struct, frozen=True, kw_only=True):
    allowed_domains: Annotated[
        tuple[str, ...],
        RecordField("Email domain of people who have access; repeatable.", option="--allowed-domain", section=FORM),
    ] = ()
    services: Mapping[int, tuple[GroupGrant, ...]] = field(default_factory=dict)  # by application


def settings_document(settings: ProjectSettings) -> dict[str, object]:
    """The settings as in answers (R5)."""
    return {
        "allowed_domains": list(settings.allowed_domains),
        "services": {
            str(application_id): {
                "groups": [
                    {"group_id": grant.group_id, "roles": list(grant.roles), "action": grant.action.value}
                    for grant in grants
                ]
            }
            for application_id, grants in settings.services.items()
        },
    }


class Project(Struct, frozen=True, kw_only=True):
    project_id: Annotated[str, Field(entry_name="id", patchable=False)]
    title: Annotated[str, RecordField("Title.", section=FORM, hint=False, maximum=MAX_TITLE_LENGTH, read=check_title)]
    description: Annotated[str, DESCRIPTION] = ""
    aliases: Annotated[
        tuple[str, ...],
        RecordField(
            "Other ID of the project; repeatable.", option="--alias", section=FORM, is_short=True, read=check_aliases
        ),
    ] = ()
    tags: Annotated[tuple[str, ...], TAGS] = ()
    settings: Annotated[
        ProjectSettings,
        RecordField("JSON file with allowed_domains and services.", kind=Kind.DOCUMENT, document=settings_document),
    ] = ProjectSettings()
    allow: tuple[str, ...] = ()  # group ids; when there are any, only their members hold anything here
    disallow: tuple[str, ...] = ()  # always wins
    removed: Annotated[bool, FIXED] = False
    author: Annotated[str, FIXED]
    application_id: Annotated[int | None, FIXED] = None  # the one that was made with it
    created_at: int
    version: Annotated[int, FIXED] = 1

    @property
    def title_key(self) -> str:
        """The id its title would give: titles are unique by it (checklist PR-04)."""
        return self.title.lower().replace(" ", "_")


PROJECT_FIELDS: Final = tuple(described_fields(Project, Field))
CHANGEABLE_PROJECT_FIELDS: Final = tuple(described_fields(Project, RecordField))
PROJECT_SETTING_FIELDS: Final = tuple(described_fields(ProjectSettings, RecordField, group="settings"))
SAVED_PROJECT_FIELDS: Final = tuple(
    project_field for project_field in CHANGEABLE_PROJECT_FIELDS if not project_field.field.request
)
PROJECT_FORM_FIELDS: Final = tuple(
    project_field
    for project_field in (*CHANGEABLE_PROJECT_FIELDS, *PROJECT_SETTING_FIELDS)
    if project_field.field.section
)


# What is deleted with a project that is removed permanently (R5).


class ErasureCounts(Struct, frozen=True, kw_only=True):
    """A removed project, and how much of what is its own."""

    project_id: str
    title: str
    applications: int
    roles: int
    clients: int
    keys: int  # access keys, public keys, service JWTs and e-mail secrets of its applications
    groups: int
    service_accounts: int
    people: int  # people with entries in it or in its applications
    connections: int  # of its applications to other projects
