"""What every tab of an application shows above itself: its name, and the tabs his rights open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.guard import About, Operation, is_open
from gatehouse.permissions.rights.secret_data import Extent, Part
from gatehouse.web.console.desk import Guest
from gatehouse.web.console.places import Entry

HERE: Final = Entry.APPLICATIONS
# In their order; the words are `applications.tab_<name>`. `users` is decided by who may read everybody's roles.
TABS: Final[Mapping[str, Operation | None]] = {
    "overview": Operation.APPLICATION_GET,
    "rules": Operation.SCHEMA_GET,
    "matrix": Operation.SCHEMA_GET,
    "users": None,
    "versions": Operation.SCHEMA_GET,
    "clients": Operation.APPLICATION_SAVE,
    "access_keys": Operation.ACCESS_KEYS,
    "public_keys": Operation.APPLICATION_KEYS,
    "service_tokens": Operation.ADMINISTER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationHead:
    application_id: int
    name: str
    project_id: str | None
    removed: bool
    tab: str
    tabs: Sequence[tuple[str, str]]  # name, address
    may_save: bool
    may_remove: bool

    @property
    def path(self) -> str:
        return path_of(self.application_id)


def path_of(application_id: int, tab: str = "overview") -> str:
    base = f"{HERE.path}/{application_id}"
    return base if tab == "overview" else f"{base}/{tab}"


def head(guest: Guest, model: ApplicationModel, tab: str) -> ApplicationHead:
    """`guest` is one whose standing is about this application."""
    application = model.application
    about = About(application_id=application.application_id, project_id=application.project_id)
    return ApplicationHead(
        application_id=application.application_id,
        name=application.name,
        project_id=application.project_id,
        removed=application.removed,
        tab=tab,
        tabs=[
            (name, path_of(application.application_id, name))
            for name, operation in TABS.items()
            if opens(guest, operation, about)
        ],
        may_save=is_open(guest.rights, Operation.APPLICATION_SAVE, about) and not application.removed,
        may_remove=is_open(guest.rights, Operation.APPLICATION_DELETE, about)
        and not application.removed
        and not application.is_central,
    )


def opens(guest: Guest, operation: Operation | None, about: About) -> bool:
    if operation is None:
        return guest.rights.administers or guest.rights.secret.reads[Part.ROLES] is Extent.ALL
    return is_open(guest.rights, operation, about)
