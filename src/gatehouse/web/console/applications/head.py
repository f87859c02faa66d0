"""What every tab of an application shows on top: its name, and the tabs the reader may open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

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
# In their order; the texts are `applications.tab_<name>`. `users` is open to those who may read all people's roles.
TABS: Final[Mapping[str, Operation | None]] = {
    "overview": Operation.APPLICATION_GET,
    "rules": Operation.SCHEMA_GET,
    "matrix": Operation.SCHEMA_GET,
    "users": None,
    "versions": Operation.SCHEMA_GET,
    "clients": Operation.APPLICATION_SAVE,
    "api": Operation.APPLICATION_SAVE,
    "sites": Operation.ADMINISTER,
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
        return application_path(self.application_id)


def application_path(application_id: int, tab: str = "overview") -> str:
    base = f"{ENTRY.path}/{application_id}"
    return base if tab == "overview" else f"{base}/{tab}"


def application_head(admin: AdminRequest, model: ApplicationModel, tab: str) -> ApplicationHead:
    """`admin` must be authenticated for this application."""
    application = model.application
    about = GuardTarget(application_id=application.application_id, project_id=application.project_id)
    return ApplicationHead(
        application_id=application.application_id,
        name=application.name,
        project_id=application.project_id,
        removed=application.removed,
        tab=tab,
        tabs=[
            (name, application_path(application.application_id, name))
            for name, operation in TABS.items()
            if is_tab_open(admin, operation, about)
        ],
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


def is_tab_open(admin: AdminRequest, operation: Operation | None, about: GuardTarget) -> bool:
    if operation is None:
        return admin.rights.administers or admin.rights.secret.reads[RecordPart.ROLES] is Extent.ALL
    return is_open(admin.rights, operation, about)


def tab_trail(t: Translator, application: Application, tab: str) -> Sequence[tuple[str, str]]:
    """From the list of applications to a tab of one, for a page below it."""
    number = application.application_id
    return [
        (application.name, application_path(number)),
        (t(f"applications.tab_{tab}"), application_path(number, tab)),
    ]


def key_text(t: Translator, key_id: str, comment: str) -> str:
    return t("applications.key_named", comment=comment or t("applications.no_comment"), id=key_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedSecret:
    """A secret of an application; the texts are `applications.secret_<name>` and `…_text`."""

    name: str
    tab: str
    back: str
    value: str
    command: str = ""  # a line that uses it
    about: str = ""


def render_secret(
    view: ConsoleView, request: Request, admin: AdminRequest, model: ApplicationModel, secret: CreatedSecret
) -> Response:
    t = view.words(request)
    context = NewSecretContext(
        title=t(f"applications.secret_{secret.name}"),
        trail=tab_trail(t, model.application, secret.tab),
        text=t("applications.secret_once") + " " + t(f"applications.secret_{secret.name}_text", about=secret.about),
        value=secret.value,
        command=secret.command,
        back=secret.back,
    )
    return view.render(request, admin, ENTRY, context)
