"""What screens offer to choose from: people by what one remembers of them, the rest by name or title."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from gatehouse.admin.names import NamedApplication, NamedPerson, NamedProject, NamedProjectGroup
from gatehouse.admin.visibility import Visibility


class SearchStore(Protocol):
    async def people(self, search: str, limit: int, *, with_logins: bool) -> Sequence[NamedPerson]:
        """Whose nick, id or, `with_logins`, login begins so, ignoring case; the shortest nick first."""

    async def application_names(self, application_ids: Collection[int]) -> Mapping[int, str]:
        """Names by id."""

    async def projects(self, visibility: Visibility, search: str, limit: int) -> Sequence[NamedProject]:
        """Those he may view or whose applications he manages, by title, with the text in title or id."""

    async def groups(
        self, visibility: Visibility, search: str, limit: int, *, project_id: str
    ) -> Sequence[NamedProjectGroup]:
        """The groups he manages and those of projects he may view, by title, with the text in title or id.

        `project_id`: of this project only. Whether he may name each of them is another question.
        """

    async def visible_applications(self, visibility: Visibility, limit: int) -> Sequence[NamedApplication]:
        """The applications somebody sees, by name, that are not removed."""
