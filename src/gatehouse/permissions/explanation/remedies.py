"""What a remedy is: the smallest changes that reverse an answer, and who may make each.

questions/remedies.py finds them.
"""

from enum import StrEnum

from msgspec import Struct

from gatehouse.permissions.explanation.contributions import GroupReference
from gatehouse.permissions.explanation.failed_tests import FailedTest
from gatehouse.permissions.model.rules import Scope


class StepKind(StrEnum):
    LIFT_BAN = "lift_ban"
    REMOVE_FROM_GROUP = "remove_from_group"
    ADD_TO_GROUP = "add_to_group"
    RAISE_LIMIT = "raise_limit"  # of the users that a role may have
    ASSIGN_ROLE = "assign_role"  # or renew its assignment
    REMOVE_ROLE = "remove_role"
    MEET_CONDITION = "meet_condition"  # of a role, or of a project that allows certain domains
    ALLOW_IN_ROLE = "allow_in_role"
    UNSET_IN_ROLE = "unset_in_role"
    REMOVE_ENTRY = "remove_entry"  # a direct entry of the person


class RemedyActor(StrEnum):
    """Who may make a step."""

    ADMINISTRATORS = "administrators"
    PROJECT_MANAGERS = "project_managers"
    GROUP_MANAGERS = "group_managers"
    USER_MANAGERS = "user_managers"  # of the application
    MODERATORS = "moderators"  # who may ban from the application
    ROLE_EDITORS = "role_editors"  # who may save roles of the application
    SCHEMA_EDITORS = "schema_editors"  # who may save its schema: only they assign and save protected roles
    PERSON = "person"  # themselves, by a verified email address, a second factor or another network


class RemedyStep(Struct, frozen=True, kw_only=True):
    """One change. Which fields it has depends on its kind."""

    kind: StepKind
    scope: Scope  # of the role, group, project or entry
    role: str = ""  # its name
    group: GroupReference | None = None
    application_id: int = 0  # of the ban
    project_id: str = ""  # of the ban; neither for a ban from everything
    until: int = 0  # of the ban
    limit: int = 0
    needs: tuple[FailedTest, ...] = ()  # what has to become true
    by: RemedyActor = RemedyActor.ADMINISTRATORS
    may: bool = False  # whether the caller may make it


class Remedy(Struct, frozen=True, kw_only=True):
    """Steps that reverse the answer together, and what else they change in the application."""

    steps: tuple[RemedyStep, ...]
    gains: int = 0  # permissions of the person
    loses: int = 0
    others: int = 0  # other people who have a role that it changes

    @property
    def may(self) -> bool:
        return all(step.may for step in self.steps)
