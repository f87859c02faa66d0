"""Suggestions for input fields: people by nick, id or login, the rest by name or title."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from gatehouse.admin.names import NamedApplication, NamedPerson, NamedProject, NamedProjectGroup
from gatehouse.admin.visibility import Visibility


class SearchStore(Protocol):
    async def people(self, search: str, limit: int, *, with_logins: bool) -> Sequence[NamedPerson]:
        """Return people whose nick, id or, `with_logins`, login begins so, ignoring case; the shortest nick first."""

    async def application_names(self, application_ids: Collection[int]) -> Mapping[int, str]:
        """Return names by id."""

    async def projects(self, visibility: Visibility, search: str, limit: int) -> Sequence[NamedProject]:
        """Return the projects that the viewer may view or manages applications of, with the text in title or id."""

    async def groups(
        self, visibility: Visibility, search: str, limit: int, *, project_id: str
    ) -> Sequence[NamedProjectGroup]:
        """Return groups that the viewer manages and those of visible projects, with the text in title or id.

        `project_id`: of this project only. The caller checks whether the viewer may read each of them.
        """

    async def visible_applications(self, visibility: Visibility, limit: int) -> Sequence[NamedApplication]:
        """Return the visible applications that are not removed, by name."""
