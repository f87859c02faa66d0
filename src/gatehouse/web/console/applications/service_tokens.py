"""Static service JWTs of an application, and its `with_email` secrets: both for administrators (R2, R3)."""

from collections.abc import Callable, Sequence
from typing import Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.service_tokens import EmailSecretCommands, ServiceTokenCommands
from gatehouse.permissions.errors import KeyNotFound
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.service_token import EmailSecret, ServiceToken
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.api.permissions.email_secrets import email_secret_entry as secret_entry
from gatehouse.web.api.permissions.service_tokens import service_token_entry as token_entry
from gatehouse.web.console.applications.head import (
    ApplicationHead,
    CreatedSecret,
    application_head,
    application_path,
    key_text,
    render_secret,
    tab_trail,
)
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, named_application
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.list_screen import CsvFile
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.template_filters import exact_time

TAB: Final = "service_tokens"
COLUMNS: Final = {
    "jti": lambda token: token.jti,
    "comment": lambda token: token.comment,
    "created": lambda token: token.created_at,
    "ends": lambda token: token.ends_at,
    "revoked": lambda token: token.revoked,
}


class NewServiceTokenForm(CsrfForm, frozen=True, kw_only=True):
    comment: str = ""
    days: int = 0  # 0: as the settings say


class ServiceTokensContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/service_tokens.html"

    head: ApplicationHead
    tokens: Sequence[ServiceToken]
    usual_days: int
    secrets: Sequence[EmailSecret]
    call: ApiCall
    secrets_call: ApiCall


class ServiceTokenScreens:
    def __init__(
        self,
        *,
        tokens: ServiceTokenCommands,
        email_secrets: EmailSecretCommands,
        view: ConsoleView,
        base_url: str,
        usual_days: Callable[[], int],
    ) -> None:
        self._tokens = tokens
        self._email_secrets = email_secrets
        self._view = view
        self._base_url = base_url
        self._usual_days = usual_days

    async def _issue(
        self, request: Request, admin: AdminRequest, model: ApplicationModel, form: NewServiceTokenForm
    ) -> Response:
        application_id = model.application.application_id
        issued = await self._tokens.issue(
            admin.actor, application_id, days=form.days or None, comment=form.comment.strip()
        )
        secret = CreatedSecret(
            name="service_token",
            tab=TAB,
            back=application_path(application_id, TAB),
            value=issued.jwt,
            command=token_command(self._base_url, issued.jwt),
        )
        return render_secret(self._view, request, admin, model, secret)

    async def confirm_revocation(self, request: Request, admin: AdminRequest) -> Confirmation:
        application = admin.authenticated.require_application(Operation.ADMINISTER).application
        tokens, t = await self._tokens.list(admin.actor, application.application_id), self._view.words(request)
        found = next((token for token in tokens if token.jti == request.path_params["jti"]), None)
        if found is None:
            raise KeyNotFound
        end = t("applications.token_until") + " " + exact_time(t, found.ends_at)
        return Confirmation(
            title=t("applications.token_revoke_title"),
            trail=tab_trail(t, application, TAB),
            text=t("applications.token_revoke_text"),
            consequences=[key_text(t, found.jti, found.comment), end],
            button=t("applications.token_revoke"),
        )

    async def revoke(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        application_id = request.path_params["application_id"]
        await self._tokens.revoke(admin.actor, application_id, request.path_params["jti"])
        return self._view.redirect_with_flash(application_path(application_id, TAB), "token_revoked")

    async def create_email_secret(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        model = admin.authenticated.require_application(Operation.ADMINISTER)
        application_id = model.application.application_id
        value = await self._email_secrets.create(admin.actor, application_id)
        secret = CreatedSecret(name="email_secret", tab=TAB, back=application_path(application_id, TAB), value=value)
        return render_secret(self._view, request, admin, model, secret)

    async def confirm_email_secret_revocation(self, request: Request, admin: AdminRequest) -> Confirmation:
        application = admin.authenticated.require_application(Operation.ADMINISTER).application
        secrets, t = (
            await self._email_secrets.list(admin.actor, application.application_id),
            self._view.words(request),
        )
        found = next((secret for secret in secrets if secret.ref == request.path_params["ref"]), None)
        if found is None:
            raise KeyNotFound
        created = t("applications.email_secret_made") + " " + exact_time(t, found.created_at)
        return Confirmation(
            title=t("applications.email_secret_revoke_title"),
            trail=tab_trail(t, application, TAB),
            text=t("applications.email_secret_revoke_text"),
            consequences=[Markup("<code>{}</code> · {}").format(found.ref, created)],
            button=t("applications.token_revoke"),
        )

    async def revoke_email_secret(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        application_id = request.path_params["application_id"]
        await self._email_secrets.revoke(admin.actor, application_id, request.path_params["ref"])
        return self._view.redirect_with_flash(application_path(application_id, TAB), "email_secret_revoked")

    async def _page(
        self, _request: Request, admin: AdminRequest, model: ApplicationModel, _draft: FormDraft[NewServiceTokenForm]
    ) -> ServiceTokensContext:
        application = model.application
        tokens = () if application.removed else await self._tokens.list(admin.actor, application.application_id)
        secrets = (
            () if application.removed else await self._email_secrets.list(admin.actor, application.application_id)
        )
        return ServiceTokensContext(
            head=application_head(admin, model, TAB),
            tokens=sorted(tokens, key=lambda token: token.created_at, reverse=True),
            usual_days=self._usual_days(),
            secrets=secrets,
            call=ApiCall(
                path="serviceToken",
                body={"action": "get", "application_id": application.application_id},
                record=[token_entry(token) for token in tokens],
            ),
            secrets_call=ApiCall(
                path="emailSecret",
                body={"action": "get", "application_id": application.application_id},
                record=[secret_entry(secret) for secret in secrets],
            ),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/applications/{application_id:int}/service_tokens"
        tokens = EditScreen(
            view=view,
            path=path,
            form=NewServiceTokenForm,
            load=named_application(Operation.ADMINISTER),
            form_of=lambda _model: NewServiceTokenForm(days=self._usual_days()),
            page=self._page,
            save=self._issue,
            file=service_tokens_file,
            fresh=True,
        )
        return [
            *tokens.routes(),
            view.page(f"{path}/email_secret", tokens.show),
            view.form(f"{path}/email_secret", CsrfForm, self.create_email_secret, fresh=True),
            *view.confirmation(
                f"{path}/email_secret/{{ref}}/revoke",
                CsrfForm,
                self.confirm_email_secret_revocation,
                self.revoke_email_secret,
            ),
            *view.confirmation(f"{path}/{{jti}}/revoke", CsrfForm, self.confirm_revocation, self.revoke),
        ]


def service_tokens_file(page: ServiceTokensContext) -> CsvFile[ServiceToken]:
    return CsvFile(name=f"service-tokens-{page.head.application_id}", columns=COLUMNS, rows=page.tokens)


def token_command(base_url: str, jwt: str) -> str:
    """What the owner of a JWT may do, asked by the application that the service JWT is of (R6)."""
    return (
        f"curl -X POST '{base_url}/api/permissions/meta/data' -H \"Authorization: Bearer $JWT\" "
        f"-H 'Service-JWT: {jwt}' -H 'Content-Type: application/json' "
        '-d \'{"action":"get","data":{"type":"list_short"}}\''
    )
