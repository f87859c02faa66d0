"""A secret that was just made: shown on the answer to its form, and on no other page."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.web.console.applications.head import HERE, ApplicationHead, head
from gatehouse.web.console.desk import ConsoleDesk, Guest
from gatehouse.web.pages.contexts import PageContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """The words are `applications.secret_<name>` and `…_text`."""

    name: str
    tab: str
    back: str
    value: str
    command: str = ""  # a line that uses it
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretContext(PageContext):
    template = "console/applications/secret.html"

    head: ApplicationHead
    secret: Secret


def show_once(desk: ConsoleDesk, request: Request, guest: Guest, model: ApplicationModel, secret: Secret) -> Response:
    return desk.show(request, guest, HERE, SecretContext(head=head(guest, model, secret.tab), secret=secret))
