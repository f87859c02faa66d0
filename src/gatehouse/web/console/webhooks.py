"""Webhooks: their addresses, events, secrets and deliveries."""

from collections.abc import Sequence
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.paging import PAGE_SIZE, Page
from gatehouse.admin.webhooks import DeliveryListStore
from gatehouse.fields.derive import entry_columns
from gatehouse.outbound.forecast import CallForecast
from gatehouse.outbound.targets import RefusedAddress
from gatehouse.web.api.permissions.webhooks import DeliveryEntry, WebhookEntry, delivery_entry, webhook_entry
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.forms import VersionedForm
from gatehouse.web.console.frame import ApiCall, NewSecretContext
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.settings import SETTINGS_TABS
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.webhooks.model import DELIVERY_FIELDS, WEBHOOK_FIELDS, Delivery, DeliveryState, Topic, Webhook
from gatehouse.webhooks.service import WebhookDraft, Webhooks, WebhookWithSecret

ENTRY: Final = ConsoleEntry.SETTINGS
PATH: Final = f"{ENTRY.path}/webhooks"


class WebhookForm(VersionedForm, frozen=True, kw_only=True):
    url: str = ""
    description: str = ""
    events: list[str] = msgspec.field(default_factory=list)
    enabled: str = ""
    new_secret: str = ""


class DeliveryQuery(ListQuery, frozen=True, kw_only=True):
    state: str = ""

    @property
    def chosen(self) -> str:
        return self.state if self.state in list(DeliveryState) else ""


class DeliveryForm(CsrfForm, frozen=True, kw_only=True):
    delivery_id: str = ""


NO_DELIVERIES: Final[Page[Delivery]] = Page(rows=(), total=0)
DEFAULT_DELIVERY_QUERY: Final = DeliveryQuery()


class WebhooksContext(PageContext, frozen=True, kw_only=True):
    template = "console/webhooks/list.html"

    path: str = PATH
    settings_tabs: Sequence[tuple[str, str]] = SETTINGS_TABS
    webhooks: Sequence[Webhook]
    call: ApiCall


class WebhookContext(PageContext, frozen=True, kw_only=True):
    """A webhook to be made when there is none yet."""

    template = "console/webhooks/one.html"

    path: str = PATH
    webhook: Webhook | None = None
    topics: Sequence[Topic] = tuple(Topic)
    found: Page[Delivery] = NO_DELIVERIES  # of its deliveries
    query: DeliveryQuery = DEFAULT_DELIVERY_QUERY
    states: Sequence[DeliveryState] = tuple(DeliveryState)
    given_up: DeliveryState = DeliveryState.GIVEN_UP
    delivered: DeliveryState = DeliveryState.DELIVERED
    refused: RefusedAddress | None = None  # its URL, which the service would not call
    call: ApiCall | None = None
    log_call: ApiCall | None = None


class WebhookScreens:
    def __init__(
        self, *, webhooks: Webhooks, lists: DeliveryListStore, forecast: CallForecast, view: ConsoleView
    ) -> None:
        self._webhooks = webhooks
        self._forecast = forecast
        self._lists = lists
        self._view = view

    async def _list(self, _request: Request, admin: AdminRequest, _query: ListQuery) -> WebhooksContext:
        found = await self._webhooks.list(admin.actor)
        return WebhooksContext(webhooks=found, call=webhooks_call(found))

    async def _require_right(self, _request: Request, admin: AdminRequest) -> None:
        await self._webhooks.list(admin.actor)

    async def _new_page(
        self, _request: Request, _admin: AdminRequest, _record: None, _draft: FormDraft[WebhookForm]
    ) -> WebhookContext:
        return WebhookContext()

    async def _create(self, request: Request, admin: AdminRequest, _record: None, form: WebhookForm) -> Response:
        created = await self._webhooks.create(admin.actor, draft_from_form(form))
        return self._render_secret(request, admin, created)

    async def _save(
        self, request: Request, admin: AdminRequest, webhook: Webhook, form: WebhookForm
    ) -> Saved | Response:
        changed = await self._webhooks.change(admin.actor, draft_from_form(form, webhook))
        if changed.secret:
            return self._render_secret(request, admin, changed)
        return Saved(address=f"{PATH}/{webhook.webhook_id}")

    async def rotate(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        rotated = await self._webhooks.rotate_secret(admin.actor, request.path_params["webhook_id"])
        t = self._view.words(request)
        return self._render_secret(request, admin, rotated, text=t("webhooks.secret_rotated"))

    async def send_test(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        webhook_id = request.path_params["webhook_id"]
        await self._webhooks.send_ping(admin.actor, webhook_id)
        return self._view.redirect_with_flash(f"{PATH}/{webhook_id}", "webhook_tested")

    async def redeliver(self, request: Request, admin: AdminRequest, form: DeliveryForm) -> Response:
        webhook_id = request.path_params["webhook_id"]
        await self._webhooks.redeliver(admin.actor, webhook_id, form.delivery_id)
        return self._view.redirect_with_flash(f"{PATH}/{webhook_id}", "webhook_redelivered")

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Confirmation:
        webhook, t = await self._load_webhook(request, admin), self._view.words(request)
        waiting = await self._webhooks.list_deliveries(admin.actor, webhook.webhook_id, state=DeliveryState.WAITING)
        name = webhook.description or t("webhooks.one")
        return Confirmation(
            title=t("webhooks.remove_title"),
            trail=[(t("webhooks.title"), PATH), (name, f"{PATH}/{webhook.webhook_id}")],
            text=t("webhooks.remove_text", url=webhook.url),
            consequences=[t("webhooks.breaks_waiting", count=len(waiting)), t("webhooks.breaks_log")],
            button=t("webhooks.remove"),
        )

    async def remove(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        await self._webhooks.remove(admin.actor, request.path_params["webhook_id"])
        return self._view.redirect_with_flash(PATH, "webhook_removed")

    def _render_secret(
        self, request: Request, admin: AdminRequest, created: WebhookWithSecret, *, text: str = ""
    ) -> Response:
        t = self._view.words(request)
        context = NewSecretContext(
            title=t("webhooks.secret_title"),
            trail=[(t("webhooks.title"), PATH)],
            text=text or t("webhooks.secret_text"),
            value=created.secret,
            back=f"{PATH}/{created.webhook.webhook_id}",
        )
        return self._view.render(request, admin, ENTRY, context)

    async def _load_webhook(self, request: Request, admin: AdminRequest) -> Webhook:
        return await self._webhooks.get(admin.actor, request.path_params["webhook_id"])

    async def _page(
        self, request: Request, admin: AdminRequest, webhook: Webhook, _draft: FormDraft[WebhookForm]
    ) -> WebhookContext:
        query = read_query(request, DeliveryQuery)
        return WebhookContext(
            webhook=webhook,
            found=await self._lists.deliveries(webhook.webhook_id, query.page_request, query.chosen),
            query=query,
            refused=await self._forecast.refusal(webhook.url),
            call=ApiCall(
                path="webhook",
                body={"action": "get", "data": {"webhook_id": webhook.webhook_id}},
                record=[webhook_entry(webhook)],
            ),
            log_call=await self._log_call(admin, webhook.webhook_id),
        )

    async def _log_call(self, admin: AdminRequest, webhook_id: str) -> ApiCall:
        """Return the call for the newest deliveries; the API has no pages for them."""
        found = await self._webhooks.list_deliveries(admin.actor, webhook_id, limit=PAGE_SIZE)
        return ApiCall(
            path="webhook",
            body={"action": "deliveries", "data": {"webhook_id": webhook_id, "limit": PAGE_SIZE}},
            record=[delivery_entry(one) for one in found],
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/settings/webhooks"
        one = f"{path}/{{webhook_id}}"
        webhooks = ListScreen(view=view, path=path, query=ListQuery, page=self._list, file=webhooks_file)
        new = EditScreen(
            view=view,
            path=f"{path}/new",
            form=WebhookForm,
            load=self._require_right,
            form_of=lambda _record: WebhookForm(events=[topic.value for topic in Topic], enabled="1"),
            page=self._new_page,
            save=self._create,
            fresh=True,
        )
        webhook = EditScreen(
            view=view,
            path=one,
            form=WebhookForm,
            load=self._load_webhook,
            form_of=form_of,
            page=self._page,
            save=self._save,
            undoable=True,
            file=deliveries_file,
            fresh=True,
        )
        return [
            *webhooks.routes(),
            *new.routes(),
            *webhook.routes(),
            view.form(f"{one}/rotate", CsrfForm, self.rotate, fresh=True, form_suffix="/rotate"),
            view.form(f"{one}/test", CsrfForm, self.send_test),
            view.form(f"{one}/redeliver", DeliveryForm, self.redeliver),
            *view.confirmation(f"{one}/remove", CsrfForm, self.confirm_removal, self.remove),
        ]


def draft_from_form(form: WebhookForm, webhook: Webhook | None = None) -> WebhookDraft:
    given = WebhookDraft(url=form.url.strip(), description=form.description.strip(), events=list(form.events))
    if webhook is None:
        return given
    return msgspec.structs.replace(
        given,
        webhook_id=webhook.webhook_id,
        enabled=form.enabled == "1",
        new_secret=bool(form.new_secret),
        version=form.version,
    )


def form_of(webhook: Webhook) -> WebhookForm:
    return WebhookForm(
        url=webhook.url,
        description=webhook.description,
        events=[topic.value for topic in webhook.topics],
        enabled="1" if webhook.enabled else "",
        version=webhook.version,
    )


def webhooks_call(webhooks: Sequence[Webhook]) -> ApiCall:
    return ApiCall(path="webhook", body={"action": "get"}, record=[webhook_entry(webhook) for webhook in webhooks])


def webhooks_file(page: WebhooksContext) -> CsvFile[WebhookEntry]:
    columns = entry_columns(WEBHOOK_FIELDS)
    return CsvFile(name="webhooks", columns=columns, rows=map(webhook_entry, page.webhooks))


def deliveries_file(page: WebhookContext) -> CsvFile[DeliveryEntry]:
    columns = entry_columns(DELIVERY_FIELDS)
    return CsvFile(name="deliveries", columns=columns, rows=map(delivery_entry, page.found.rows))
