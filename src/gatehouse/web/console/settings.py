"""Settings: general, email, sign-in, sessions, languages, health, configuration, and signing keys.

The fields that change settings are in settings_form.py; the tab of branding is branding.py.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.phones.model import PhonesOff
from gatehouse.accounts.phones.text_messages import TextMessages, TextMessageStatus
from gatehouse.admin.key_admin import KeyAdmin
from gatehouse.admin.keys import KeyBar, KeyLineTimeline, KeyTimeline
from gatehouse.admin.paging import Page
from gatehouse.admin.settings import MailServer, OutboxListItem, SettingListItem
from gatehouse.kernel.errors import NotFound, TooMany
from gatehouse.keys.model import KeyLine, KeyPurpose, KeyState
from gatehouse.keys.rotation import DAY, RotationPolicy
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate, OutboxStatus, Undelivered
from gatehouse.mail.outbox import OutboxWorker
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.api.permissions import setting_parts
from gatehouse.web.api.permissions.installation import Installation, InstallationReader, InstallationStatus
from gatehouse.web.api.permissions.setting_parts import ROTATION_MODES, keys_part, parse_key_line
from gatehouse.web.api.permissions.settings import SettingsPart
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.frame import ApiCall, settings_call
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.paths import CONSOLE, ConsoleEntry
from gatehouse.web.console.settings_form import SettingFormData, SettingForms
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import see_other
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

ENTRY: Final = ConsoleEntry.SETTINGS
TAB_NAMES: Final = (
    *("general", "branding", "email", "phone", "sign_in", "sessions", "languages", "providers", "terms"),
    *("webhooks", "keys", "health", "configuration"),
)
TAB_PATHS: Final = {
    tab: "/settings" if tab == "general" else f"/settings/{tab.replace('_', '-')}" for tab in TAB_NAMES
}
SETTINGS_TABS: Final = tuple((tab, f"{CONSOLE}{path}") for tab, path in TAB_PATHS.items())
FORM_TABS: Final = ("general", "sign_in", "sessions", "languages")  # that show nothing but their form
API_PARTS: Final[Mapping[str, Callable[[Installation], SettingsPart]]] = {
    "general": setting_parts.risks_part,
    "sign_in": setting_parts.policies_part,
    "sessions": setting_parts.policies_part,
    "languages": setting_parts.configuration_part,
}
BAD_REQUEST: Final = 400
TOO_MANY_REQUESTS: Final = 429
BAD_GATEWAY: Final = 502
OUTBOX_COLUMNS: Final = {
    "id": lambda one: one.mail_id,
    "letter": lambda one: one.template,
    "written": lambda one: one.created_at,
    "tries": lambda one: one.tries,
    "next_try": lambda one: one.next_try_at or "",
    "trouble": lambda one: one.trouble,
}
SETTING_COLUMNS: Final = {
    "setting": lambda line: line.name,
    "value": lambda line: line.value,
    "unit": lambda line: line.unit,
    "source": lambda line: line.source,
}


class SettingTabContext(PageContext, frozen=True, kw_only=True):
    template = "console/settings/tab.html"

    tab: str
    form: SettingFormData
    installation: Installation
    call: ApiCall
    settings_tabs: Sequence[tuple[str, str]] = SETTINGS_TABS


class EmailSettingsContext(PageContext, frozen=True, kw_only=True):
    template = "console/settings/email.html"

    form: SettingFormData
    server: MailServer
    waiting: OutboxStatus
    found: Page[OutboxListItem]
    login: str  # where a test email goes
    call: ApiCall
    settings_tabs: Sequence[tuple[str, str]] = SETTINGS_TABS
    trouble: str = ""  # why the test email was not sent


class PhoneSettingsContext(PageContext, frozen=True, kw_only=True):
    template = "console/settings/phone.html"

    form: SettingFormData
    messages: TextMessageStatus
    call: ApiCall
    settings_tabs: Sequence[tuple[str, str]] = SETTINGS_TABS
    typed: str = ""  # the number for a test message
    trouble: str = ""  # why it was not sent


class HealthContext(PageContext, frozen=True, kw_only=True):
    template = "console/settings/health.html"

    health: InstallationStatus
    call: ApiCall
    settings_tabs: Sequence[tuple[str, str]] = SETTINGS_TABS


class ConfigurationContext(PageContext, frozen=True, kw_only=True):
    template = "console/settings/configuration.html"

    lines: Sequence[SettingListItem]
    total: int
    call: ApiCall
    settings_tabs: Sequence[tuple[str, str]] = SETTINGS_TABS


class SettingTabScreens:
    """The tabs that show nothing but a form."""

    def __init__(self, *, forms: SettingForms, view: ConsoleView) -> None:
        self._forms = forms
        self._view = view

    async def _page(
        self, tab: str, _request: Request, admin: AdminRequest, installed: Installation, draft: FormDraft[CsrfForm]
    ) -> SettingTabContext:
        return SettingTabContext(
            tab=tab,
            form=self._forms.load(admin, tab, dict(SETTINGS_TABS)[tab], draft),
            installation=installed,
            call=settings_call(API_PARTS[tab](installed)),
        )

    async def redirect_to_risks(self, request: Request, admin: AdminRequest) -> Response:  # noqa: ARG002
        return see_other(f"{ENTRY.path}#risks")

    def routes(self) -> Sequence[ConsoleRoute]:
        screens = [self._forms.screen(self._view, tab, TAB_PATHS[tab], partial(self._page, tab)) for tab in FORM_TABS]
        return [
            self._view.page("/settings/risks", self.redirect_to_risks),
            *(route for screen in screens for route in screen.routes()),
        ]


class TestMessageForm(CsrfForm, frozen=True, kw_only=True):
    phone: str


class PhoneSettingScreens(Struct, kw_only=True, eq=False):
    """The tab of phone numbers: its form, what was sent, and a test message."""

    installation: InstallationReader
    forms: SettingForms
    messages: TextMessages
    view: ConsoleView

    async def _page(
        self, _request: Request, admin: AdminRequest, _installed: Installation, draft: FormDraft[CsrfForm]
    ) -> PhoneSettingsContext:
        status = await self.messages.status()
        return PhoneSettingsContext(
            form=self.forms.load(admin, "phone", f"{ENTRY.path}/phone", draft),
            messages=status,
            call=settings_call(setting_parts.phone_part(status)),
        )

    async def send_test(self, request: Request, admin: AdminRequest, form: TestMessageForm) -> Response:
        """Send a message past the outbox, so that the sender's response is shown at once."""
        require_operation(admin.rights, Operation.ADMINISTER)
        try:
            await self.messages.send_test(admin.user, form.phone)
        except Undelivered as error:
            trouble, status = error.detail or error.public, BAD_GATEWAY
        except (BadAccount, PhonesOff) as error:
            trouble, status = error.detail or error.public, BAD_REQUEST
        except TooMany as error:
            trouble, status = error.public, TOO_MANY_REQUESTS
        else:
            return self.view.redirect_with_flash(f"{ENTRY.path}/phone", "test_message_sent")
        draft = FormDraft(form=self.forms.form_type())
        page = await self._page(request, admin, self.installation.installation(admin.actor), draft)
        page = replace(page, trouble=trouble, typed=form.phone)
        return self.view.render(request, admin, ENTRY, page, status=status, more={"problem": None})

    def routes(self) -> Sequence[ConsoleRoute]:
        return [
            *self.forms.screen(self.view, "phone", "/settings/phone", self._page).routes(),
            self.view.form("/settings/phone/test", TestMessageForm, self.send_test),
        ]


class SettingScreens:
    def __init__(
        self,
        *,
        installation: InstallationReader,
        forms: SettingForms,
        composer: Composer,
        outbox_worker: OutboxWorker,
        view: ConsoleView,
    ) -> None:
        self._installation = installation
        self._forms = forms
        self._composer = composer
        self._outbox_worker = outbox_worker
        self._view = view

    async def send_test(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        """Send a test email to oneself only, bypassing the outbox, so that the server's response is shown at once."""
        require_operation(admin.rights, Operation.ADMINISTER)
        message = self._composer.compose(MailTemplate.TEST, to=admin.user.login or "", lang=admin.user.lang)
        try:
            await self._outbox_worker.deliver_now(message)
        except Undelivered as error:
            draft = FormDraft(form=self._forms.form_type())
            page = await self._email_page(request, admin, self._installation.installation(admin.actor), draft)
            page = replace(page, trouble=error.detail or error.public)
            more = {"problem": None}
            return self._view.render(request, admin, ENTRY, page, status=BAD_GATEWAY, more=more)
        return self._view.redirect_with_flash(f"{ENTRY.path}/email", "test_sent")

    async def _email_page(
        self, request: Request, admin: AdminRequest, _installed: Installation, draft: FormDraft[CsrfForm]
    ) -> EmailSettingsContext:
        query = read_query(request, ListQuery)
        mail = await self._installation.mail_status(admin.actor, query.page_request)
        return EmailSettingsContext(
            form=self._forms.load(admin, "email", f"{ENTRY.path}/email", draft),
            server=mail.server,
            waiting=mail.waiting,
            found=mail.mails,
            login=admin.user.login or "",
            call=settings_call(setting_parts.email_part(mail), page=query.page_request.page),
        )

    async def health(self, request: Request, admin: AdminRequest) -> Response:
        health = await self._installation.status(admin.actor)
        context = HealthContext(health=health, call=settings_call(setting_parts.health_part(health)))
        return self._view.render(request, admin, ENTRY, context)

    async def _configuration(self, _request: Request, admin: AdminRequest, query: ListQuery) -> ConfigurationContext:
        installed = self._installation.installation(admin.actor)
        return ConfigurationContext(
            lines=installed.search_settings(query.q),
            total=len(installed.lines),
            call=settings_call(setting_parts.configuration_part(installed)),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        email = replace(
            self._forms.screen(view, "email", "/settings/email", self._email_page),
            file=lambda page: CsvFile(name="outbox", columns=OUTBOX_COLUMNS, rows=page.found.rows),
        )
        configuration = ListScreen(
            view=view,
            path="/settings/configuration",
            query=ListQuery,
            page=self._configuration,
            file=lambda page: CsvFile(name="configuration", columns=SETTING_COLUMNS, rows=page.lines),
        )
        return [
            *email.routes(),
            view.form("/settings/email/test", CsrfForm, self.send_test),
            view.page("/settings/health", self.health),
            *configuration.routes(),
        ]


# Settings: signing keys on their time line, and their rotation before its time.


SIGNING_KEY_COLUMNS: Final = {
    "kid": lambda one: one[1].kid,
    "purpose": lambda one: one[0].purpose,
    "alg": lambda one: one[1].alg,
    "state": lambda one: one[1].state,
    "published": lambda one: one[1].created_at,
    "signs_from": lambda one: one[1].signs_from,
    "signs_until": lambda one: one[1].signs_until or "",
    "verifies_until": lambda one: one[1].verifies_until or "",
}


class KeysContext(PageContext, frozen=True, kw_only=True):
    template = "console/settings/keys.html"

    picture: KeyTimeline
    rotate_days: int
    call: ApiCall
    states: Sequence[KeyState] = tuple(KeyState)
    settings_tabs: Sequence[tuple[str, str]] = SETTINGS_TABS


class RotateContext(PageContext, frozen=True, kw_only=True):
    template = "console/settings/rotate.html"

    line: KeyLine
    strip: KeyLineTimeline
    modes: Sequence[str]
    chosen: str
    lead_minutes: int


class RotateQuery(msgspec.Struct, frozen=True, kw_only=True):
    purpose: str = ""
    alg: str = ""


class RotateForm(CsrfForm, frozen=True, kw_only=True):
    purpose: str = ""
    alg: str = ""
    manner: str = ""


class SigningKeyScreens:
    def __init__(self, *, key_admin: KeyAdmin, view: ConsoleView) -> None:
        self._key_admin = key_admin
        self._view = view

    @property
    def _policy(self) -> RotationPolicy:
        return self._key_admin.policy

    async def _page(self, _request: Request, admin: AdminRequest, _query: ListQuery) -> KeysContext:
        picture = await self._key_admin.timeline(admin.actor)
        return KeysContext(
            picture=picture,
            rotate_days=self._policy.interval // DAY,
            call=settings_call(keys_part(picture, every=self._policy.interval)),
        )

    async def _load_line(self, request: Request, admin: AdminRequest) -> RotateForm:
        await self._key_admin.timeline(admin.actor)
        asked = read_query(request, RotateQuery)
        return RotateForm(purpose=asked.purpose, alg=asked.alg)

    async def _rotation_page(
        self, _request: Request, admin: AdminRequest, _asked: RotateForm, draft: FormDraft[RotateForm]
    ) -> RotateContext:
        line = parse_key_line(draft.form.purpose, draft.form.alg)
        strips = (await self._key_admin.timeline(admin.actor)).strips
        strip = next((one for one in strips if one.line == line), None)
        if strip is None:
            raise NotFound("no such keys")
        modes = [name for name in ROTATION_MODES if is_mode_offered(name, strip)]
        return RotateContext(
            line=line,
            strip=strip,
            modes=modes,
            chosen=draft.form.manner if draft.form.manner in modes else modes[0],
            lead_minutes=self._policy.publish_lead // 60,
        )

    async def _rotate(self, _request: Request, admin: AdminRequest, _asked: RotateForm, form: RotateForm) -> Saved:
        if form.manner not in ROTATION_MODES:
            raise NotFound("no such rotation method")
        await self._key_admin.rotate(admin.actor, parse_key_line(form.purpose, form.alg), ROTATION_MODES[form.manner])
        return Saved(address=f"{ENTRY.path}/keys", message=f"key_{form.manner}")

    def routes(self) -> Sequence[ConsoleRoute]:
        keys = ListScreen(
            view=self._view, path="/settings/keys", query=ListQuery, page=self._page, file=signing_keys_file
        )
        rotation = EditScreen(
            view=self._view,
            path="/settings/keys/rotate",
            form=RotateForm,
            load=self._load_line,
            page=self._rotation_page,
            save=self._rotate,
            fresh=True,
            fresh_page=True,
        )
        return [*keys.routes(), *rotation.routes()]


def signing_keys_file(page: KeysContext) -> CsvFile[tuple[KeyLine, KeyBar]]:
    rows = [(strip.line, bar) for strip in page.picture.strips for bar in strip.bars]
    return CsvFile(name="keys", columns=SIGNING_KEY_COLUMNS, rows=rows)


def is_mode_offered(mode: str, strip: KeyLineTimeline) -> bool:
    """Whether the mode is offered: no second rotation while one is pending, and no distrust of audit log keys."""
    if mode == "planned":
        return not strip.waits
    return mode != "distrust" or strip.line.purpose is not KeyPurpose.AUDIT
