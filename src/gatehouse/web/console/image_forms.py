"""The forms that replace and remove an image: a file, or the URL of one that is fetched once."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from gatehouse.web.console.view import ConsoleRoute, ConsoleView, FormHandler, FormRerender
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
    view: ConsoleView,
    path: str,
    upload: FormHandler[LogoForm],
    remove: FormHandler[CsrfForm],
    *,
    rerender: FormRerender[CsrfForm],
    suffix: str = "/logo",
) -> Sequence[ConsoleRoute]:
    """Return the routes of the forms that replace and remove a logo; the page at `path` has both forms."""
    return [
        view.form(
            f"{path}{suffix}",
            LogoForm,
            upload,
            rerender=rerender,
            fresh=True,
            form_suffix=suffix,
            file_field="logo",
        ),
        view.form(
            f"{path}{suffix}/remove",
            CsrfForm,
            remove,
            rerender=rerender,
            fresh=True,
            form_suffix=f"{suffix}/remove",
        ),
    ]
