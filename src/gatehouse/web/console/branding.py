"""Settings: branding, with the logos that administrators upload or name by a URL."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.settings import SettingListItem
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.api.permissions import setting_parts
from gatehouse.web.api.permissions.installation import Installation, SaveSettings
from gatehouse.web.console.branding_preview import PREVIEW_PATH, SCREENS, THEMES
from gatehouse.web.console.edit_screen import FormDraft
from gatehouse.web.console.frame import ApiCall, settings_call
from gatehouse.web.console.image_forms import LogoForm, logo_routes
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.settings import ENTRY, SETTINGS_TABS
from gatehouse.web.console.settings_form import SettingFormData, SettingForms
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.context import content_security_policy
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

PATH: Final = "/settings/branding"
LOGO_SETTINGS: Final[Mapping[str, str]] = {"light": "branding.logo", "dark": "branding.logo_dark"}  # by theme


class BrandingContext(PageContext, frozen=True, kw_only=True):
    template = "console/settings/branding.html"

    form: SettingFormData
    logos: Mapping[str, SettingListItem]  # by theme
    call: ApiCall
    preview: str = f"{ConsoleEntry.HOME.path}{PREVIEW_PATH}"
    screens: Sequence[str] = SCREENS
    themes: Sequence[str] = tuple(THEMES)
    settings_tabs: Sequence[tuple[str, str]] = SETTINGS_TABS


class BrandingScreens:
    def __init__(self, *, forms: SettingForms, save: SaveSettings, view: ConsoleView) -> None:
        self._forms = forms
        self._save = save
        self._view = view

    async def upload(self, request: Request, admin: AdminRequest, form: LogoForm) -> Response:
        return await self._change(request, admin, form.given, "logo_saved")

    async def remove(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        return await self._change(request, admin, None, "logo_removed")

    async def _change(
        self, request: Request, admin: AdminRequest, logo: bytes | str | None, message: str
    ) -> Response:
        require_operation(admin.rights, Operation.ADMINISTER)
        await self._save({requested_setting(request): logo}, admin.actor.origin)
        return self._view.redirect_with_flash(f"{ENTRY.path}/branding", message)

    async def _page(
        self, _request: Request, admin: AdminRequest, installed: Installation, draft: FormDraft[CsrfForm]
    ) -> BrandingContext:
        by_name = {line.name: line for line in installed.branding}
        return BrandingContext(
            form=self._forms.load(admin, "branding", f"{ENTRY.path}/branding", draft),
            logos={theme: by_name[name] for theme, name in LOGO_SETTINGS.items()},
            call=settings_call(setting_parts.branding_part(installed)),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        screen = self._forms.screen(self._view, "branding", PATH, self._page)
        screen = replace(screen, headers={"Content-Security-Policy": content_security_policy(frames=True)})
        logos = [
            route
            for theme in LOGO_SETTINGS
            for route in logo_routes(screen, self.upload, self.remove, suffix=f"/{theme}")
        ]
        return [*screen.routes(), *logos]


def requested_setting(request: Request) -> str:
    """Return the setting of the theme that the address names."""
    path: str = request.scope["path"].removesuffix("/remove")
    return LOGO_SETTINGS[path.rpartition("/")[2]]
