"""The forms that replace and remove an image: a file, or the URL of one that is fetched once."""

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from gatehouse.web.console.edit_screen import EditScreen
from gatehouse.web.console.view import ConsoleRoute, FormHandler
from gatehouse.web.pages.forms import CsrfForm


class LogoForm(CsrfForm, frozen=True, kw_only=True):
    logo: bytes = b""
    logo_uri: str = ""

    @property
    def upload(self) -> bytes | UnsetType:
        """The file, unless a URL was entered alone; an empty one is refused like any other bad image."""
        return self.logo if self.logo or not self.url else UNSET

    @property
    def given(self) -> bytes | str:
        """What was sent, for a single field; the file if both were."""
        return self.logo or self.url or b""

    @property
    def url(self) -> str | UnsetType:
        return self.logo_uri.strip() or UNSET


def logo_routes(
    screen: EditScreen[Any, Any, Any],
    upload: FormHandler[LogoForm],
    remove: FormHandler[CsrfForm],
    *,
    suffix: str = "/logo",
) -> Sequence[ConsoleRoute]:
    """Return the routes of the forms that replace and remove a logo; the screen's page has both forms."""
    view, path, show_again = screen.view, f"{screen.path}{suffix}", screen.show_again
    return [
        view.form(path, LogoForm, upload, show_again=show_again, fresh=True, form_suffix=suffix, file_field="logo"),
        view.form(
            f"{path}/remove", CsrfForm, remove, show_again=show_again, fresh=True, form_suffix=f"{suffix}/remove"
        ),
    ]
