"""A group of users of a project (interface §2.5)."""

from dataclasses import dataclass
from typing import Final

from gatehouse.permissions.model.condition import Condition

MAX_GROUP_USERS: Final = 100  # listed by id; interface §8
MAX_GROUPS: Final = 500  # of one project: whose conditions are asked for each of its people
PROJECT_TAG: Final = "project"  # a group needs it to stand in a membership list; a new one has it (R5)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCondition:
    title: str
    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    group_id: str  # 24 hex digits
    project_id: str
    title: str
    description: str = ""
    tags: tuple[str, ...] = (PROJECT_TAG,)
    conditions: tuple[GroupCondition, ...] = ()  # whoever meets any of them is a member
    users: tuple[str, ...] = ()
    created_at: int
    version: int = 1

    @property
    def title_key(self) -> str:
        """Titles are unique in a project, ignoring case and the difference of space and underscore."""
        return self.title.lower().replace(" ", "_")
