"""Sites behind a reverse proxy that an application protects, for administrators (R9)."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.commands.applications import ApplicationCommands, ApplicationDraft, SavedApplication
from gatehouse.permissions.documents.rules import schema_rules
from gatehouse.permissions.documents.sites import is_site_origin
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.protected_site import MAX_PROTECTED_SITES
from gatehouse.permissions.questions.parsing import read_rule
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import (
    ApplicationHead,
    application_call,
    application_head,
    application_path,
    tab_trail,
)
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved, named_application
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.list_screen import CsvFile
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

TAB: Final = "sites"
COLUMNS: Final = {"origin": lambda site: site.origin, "permission": lambda site: site.rule}


class SiteForm(CsrfForm, frozen=True, kw_only=True):
    site_origin: str = ""
    rule: str = ""


class SiteQuery(msgspec.Struct, frozen=True, kw_only=True):
    site_origin: str = ""


class SiteRow(msgspec.Struct, frozen=True, kw_only=True):
    origin: str
    rule: str
    is_rule_known: bool  # in the schema


class SitesContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/sites.html"

    head: ApplicationHead
    application: Application
    sites: Sequence[SiteRow]
    max_sites: int
    is_proxy_trusted: bool
    call: ApiCall


class SiteScreens:
    def __init__(
        self, *, applications: ApplicationCommands, view: ConsoleView, is_proxy_trusted: bool, base_url: str
    ) -> None:
        self._applications = applications
        self._view = view
        self._base_url = base_url
        self._is_proxy_trusted = is_proxy_trusted

    async def _add(self, _request: Request, admin: AdminRequest, model: ApplicationModel, form: SiteForm) -> Saved:
        application = model.application
        origin, rule = form.site_origin.strip().removesuffix("/"), form.rule.strip()
        if not is_site_origin(origin):
            raise Malformed(
                "site_origin: enter an origin like https://wiki.example (http on loopback only)"
            ).on_screen("site_origin")
        if origin in application.protected_sites:
            raise Malformed("site_origin: this site is in the list; remove it to change its permission").on_screen(
                "site_listed"
            )
        read_rule(rule, "rule")
        saved = await self._save(admin, application, {**application.protected_sites, origin: rule})
        message = "site_added_second" if saved.warnings else "site_added"
        return Saved(address=application_path(application.application_id, TAB), message=message)

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Confirmation:
        application = admin.authenticated.require_application(Operation.ADMINISTER).application
        origin, t = read_query(request, SiteQuery).site_origin, self._view.words(request)
        if origin not in application.protected_sites:
            raise NotFound("no such site")
        return Confirmation(
            title=t("applications.site_remove_title"),
            trail=tab_trail(t, application, TAB),
            text=t("applications.site_remove_text"),
            consequences=[origin],
            hidden=[("site_origin", origin)],
            button=t("applications.site_remove"),
        )

    async def remove(self, request: Request, admin: AdminRequest, form: SiteForm) -> Response:  # noqa: ARG002
        application = admin.authenticated.require_application(Operation.ADMINISTER).application
        left = {origin: rule for origin, rule in application.protected_sites.items() if origin != form.site_origin}
        await self._save(admin, application, left)
        return self._view.redirect_with_flash(application_path(application.application_id, TAB), "site_removed")

    async def _save(
        self, admin: AdminRequest, application: Application, sites: Mapping[str, str]
    ) -> SavedApplication:
        """Replace the sites, unless someone else changed the application since it was read."""
        draft = ApplicationDraft(
            application_id=application.application_id, protected_sites=dict(sites), version=application.version
        )
        return await self._applications.save(admin.actor, draft)

    async def _page(
        self, _request: Request, admin: AdminRequest, model: ApplicationModel, _draft: FormDraft[SiteForm]
    ) -> SitesContext:
        return SitesContext(
            head=application_head(admin, model, TAB),
            application=model.application,
            sites=await run_off_loop(OFF_LOOP_WEIGHT, site_rows, model),
            max_sites=MAX_PROTECTED_SITES,
            is_proxy_trusted=self._is_proxy_trusted,
            call=application_call(model.application, self._base_url),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/applications/{application_id:int}/sites"
        sites = EditScreen(
            view=view,
            path=path,
            form=SiteForm,
            load=named_application(Operation.ADMINISTER),
            page=self._page,
            save=self._add,
            file=sites_file,
            fresh=True,
        )
        return [
            *sites.routes(),
            *view.confirmation(f"{path}/remove", SiteForm, self.confirm_removal, self.remove),
        ]


def sites_file(page: SitesContext) -> CsvFile[SiteRow]:
    return CsvFile(name=f"protected-sites-{page.head.application_id}", columns=COLUMNS, rows=page.sites)


def site_rows(model: ApplicationModel) -> Sequence[SiteRow]:
    known = schema_rules(model.schema.private_data, model.schema.public_data)
    return [
        SiteRow(origin=origin, rule=rule, is_rule_known=any(one in known for one in read_rule(rule, "rule").rules))
        for origin, rule in model.application.protected_sites.items()
    ]
