"""What every tab of an application shows on top: its name, and the tabs the reader may open."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.fields.derive import copy_as
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.permissions.rights.secret_data import Extent, RecordPart
from gatehouse.web.api.permissions.applications import application_record
from gatehouse.web.console.frame import ApiCall, NewSecretContext
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import AdminRequest, ConsoleView
from gatehouse.web.pages.translations import Translator

ENTRY: Final = ConsoleEntry.APPLICATIONS
# In their order, each with its sections; the texts are `applications.tab_<name>` and `applications.section_<name>`.
# `users` is open to those who may read all people's roles.
TABS: Final[Mapping[str, Mapping[str, Operation | None]]] = {
    "overview": {"overview": Operation.APPLICATION_GET},
    "permissions": {"rules": Operation.SCHEMA_GET, "matrix": Operation.SCHEMA_GET},
    "roles": {"roles": Operation.ROLES_GET},
    "people": {"users": None, "bans": Operation.BAN_FROM_APPLICATION},
    "connect": {"connect": Operation.APPLICATION_GET},
    "credentials": {
        "clients": Operation.APPLICATION_SAVE,
        "access_keys": Operation.ACCESS_KEYS,
        "public_keys": Operation.APPLICATION_KEYS,
        "service_tokens": Operation.ADMINISTER,
    },
    "history": {"versions": Operation.SCHEMA_GET},
    "settings": {
        "settings": Operation.APPLICATION_GET,
        "api": Operation.APPLICATION_SAVE,
        "sites": Operation.ADMINISTER,
    },
}
TAB_OF_SECTION: Final = {section: tab for tab, sections in TABS.items() for section in sections}


class ApplicationHead(Struct, frozen=True, kw_only=True):
    application_id: int
    name: str
    project_id: str | None
    removed: bool
    tab: str
    tabs: Sequence[tuple[str, str]]  # name, address of the first section
    section: str
    sections: Sequence[tuple[str, str]]  # of this tab: name, address
    may_save: bool
    may_remove: bool

    @property
    def path(self) -> str:
        return application_path(self.application_id)


def application_path(application_id: int, section: str = "overview") -> str:
    base = f"{ENTRY.path}/{application_id}"
    return base if section == "overview" else f"{base}/{section}"


def application_head(admin: AdminRequest, model: ApplicationModel, section: str) -> ApplicationHead:
    """`admin` must be authenticated for this application."""
    application, tab = model.application, TAB_OF_SECTION[section]
    about = GuardTarget(application_id=application.application_id, project_id=application.project_id)
    opened = {name: open_sections(admin, sections, about) for name, sections in TABS.items()}
    return ApplicationHead(
        application_id=application.application_id,
        name=application.name,
        project_id=application.project_id,
        removed=application.removed,
        tab=tab,
        tabs=[(name, sections[0][1]) for name, sections in opened.items() if sections],
        section=section,
        sections=opened[tab],
        may_save=is_open(admin.rights, Operation.APPLICATION_SAVE, about) and not application.removed,
        may_remove=is_open(admin.rights, Operation.APPLICATION_DELETE, about)
        and not application.removed
        and not application.is_central,
    )


def application_call(application: Application, base_url: str) -> ApiCall:
    """The call that reads an application with everything in it."""
    return ApiCall(
        path="application",
        body={
            "action": "get",
            "data": {"application_id": application.application_id},
            "options": {"full": True},
        },
        record=application_record(application, base_url, full=True),
    )


def open_sections(
    admin: AdminRequest, sections: Mapping[str, Operation | None], about: GuardTarget
) -> Sequence[tuple[str, str]]:
    return [
        (name, application_path(about.application_id or 0, name))
        for name, operation in sections.items()
        if is_section_open(admin, operation, about) and (name, about.application_id) != ("bans", CENTRAL_APPLICATION)
    ]


def is_section_open(admin: AdminRequest, operation: Operation | None, about: GuardTarget) -> bool:
    if operation is None:
        return admin.rights.administers or admin.rights.secret.reads[RecordPart.ROLES] is Extent.ALL
    return is_open(admin.rights, operation, about)


def tab_trail(t: Translator, application: Application, section: str) -> Sequence[tuple[str, str]]:
    """From the list of applications to a section of one, for a page below it."""
    number = application.application_id
    return [
        (application.name, application_path(number)),
        (t(f"applications.section_{section}"), application_path(number, section)),
    ]


def key_text(t: Translator, key_id: str, comment: str) -> str:
    return t("applications.key_named", comment=comment or t("applications.no_comment"), id=key_id)


class CreatedSecret(Struct, frozen=True, kw_only=True):
    """A secret of an application; the texts are `applications.secret_<name>` and `…_text`."""

    name: str
    tab: str
    back: str
    value: str
    command: str = ""  # a line that uses it
    about: str = ""
    environment: str = ""  # a whole .env file with it
    environment_name: str = ""
    old_works_until: int = 0  # Unix seconds, of a secret that replaces another


def render_secret(
    view: ConsoleView, request: Request, admin: AdminRequest, model: ApplicationModel, secret: CreatedSecret
) -> Response:
    t = view.words(request)
    context = copy_as(
        NewSecretContext,
        secret,
        title=t(f"applications.secret_{secret.name}"),
        trail=tab_trail(t, model.application, secret.tab),
        text=t("applications.secret_once") + " " + t(f"applications.secret_{secret.name}_text", about=secret.about),
        download=application_path(model.application.application_id, "env"),
    )
    return view.render(request, admin, ENTRY, context)
