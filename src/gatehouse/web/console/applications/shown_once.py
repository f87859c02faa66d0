"""A secret that was just made: shown on the answer to its form, and on no other page."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head
from gatehouse.web.console.desk import AdminRequest, ConsoleView
from gatehouse.web.pages.contexts import PageContext


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedSecret:
    """The words are `applications.secret_<name>` and `…_text`."""

    name: str
    tab: str
    back: str
    value: str
    command: str = ""  # a line that uses it
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSecretContext(PageContext):
    template = "console/applications/secret.html"

    head: ApplicationHead
    secret: CreatedSecret


def render_secret(
    view: ConsoleView, request: Request, admin: AdminRequest, model: ApplicationModel, secret: CreatedSecret
) -> Response:
    return view.render(
        request,
        admin,
        ENTRY,
        ApplicationSecretContext(head=application_head(admin, model, secret.tab), secret=secret),
    )
