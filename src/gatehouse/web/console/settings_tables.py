"""Settings that form a table with an ID per row, like providers and documents: the rows, and the removal of one."""

from collections.abc import Mapping, Sequence

from starlette.requests import Request

from gatehouse.admin.settings import SettingListItem
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.api.permissions.installation import InstallationReader, SaveSettings
from gatehouse.web.console.view import AdminRequest


class SettingsTable:
    def __init__(self, section: str, *, installation: InstallationReader, save: SaveSettings) -> None:
        self._section = section
        self._installation = installation
        self._save = save

    def rows(self, admin: AdminRequest) -> Mapping[str, Sequence[SettingListItem]]:
        """Return the settings of each row by its ID."""
        found: dict[str, list[SettingListItem]] = {}
        for line in self._installation.installation(admin.actor).lines:
            section, _, rest = line.name.partition(".")
            if section == self._section:
                found.setdefault(rest.partition(".")[0], []).append(line)
        return found

    async def add(self, admin: AdminRequest, row_id: str, **values: object) -> str:
        """Store a row, turned off; return its section, whose form asks for the rest."""
        section = f"{self._section}.{row_id}"
        wanted = {f"{section}.{name}": value for name, value in values.items()}
        await self._save({**wanted, f"{section}.enabled": False}, admin.actor.origin)
        return section

    def stored_row(self, request: Request, admin: AdminRequest) -> str:
        """Return the ID in the path. Raises NotFound unless the row is in the database, where it can be removed."""
        row_id: str = request.path_params["row"]
        if not is_stored(self.rows(admin).get(row_id, ())):
            raise NotFound(f"no such row of {self._section} in the database")
        return row_id

    async def remove(self, request: Request, admin: AdminRequest) -> None:
        require_operation(admin.rights, Operation.ADMINISTER)
        lines = self.rows(admin)[self.stored_row(request, admin)]
        await self._save(dict.fromkeys(line.name for line in lines if line.is_in_database), admin.actor.origin)


def is_stored(lines: Sequence[SettingListItem]) -> bool:
    return any(line.is_in_database for line in lines)
