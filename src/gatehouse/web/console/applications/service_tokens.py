"""Static service JWTs of an application, and its `with_email` secrets: both for who administers (R2, R3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.application_credentials import EmailSecretCommands, ServiceTokenCommands
from gatehouse.permissions.errors import KeyNotFound
from gatehouse.permissions.model.application import EmailSecret, ServiceToken
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.api.permissions.service_accounts import email_secret_entry as secret_entry
from gatehouse.web.api.permissions.service_accounts import service_token_entry as token_entry
from gatehouse.web.console.applications.head import (
    ENTRY,
    ApplicationHead,
    CreatedSecret,
    application_head,
    application_path,
    render_secret,
)
from gatehouse.web.console.forms import csv_file, read_list_query
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTokensContext(PageContext):
    template = "console/applications/service_tokens.html"

    head: ApplicationHead
    tokens: Sequence[ServiceToken]
    form: NewServiceTokenForm
    usual_days: int
    secrets: Sequence[EmailSecret]
    call: ApiCall
    secrets_call: ApiCall
    problem: FormProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeEmailSecretContext(PageContext):
    template = "console/applications/revoke_secret.html"

    head: ApplicationHead
    secret: EmailSecret


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeServiceTokenContext(PageContext):
    template = "console/applications/revoke_token.html"

    head: ApplicationHead
    token: ServiceToken


class ServiceTokenScreens:
    def __init__(
        self,
        *,
        tokens: ServiceTokenCommands,
        email_secrets: EmailSecretCommands,
        view: ConsoleView,
        base_url: str,
        usual_days: int,
    ) -> None:
        self._tokens = tokens
        self._email_secrets = email_secrets
        self._view = view
        self._base_url = base_url
        self._usual_days = usual_days

    async def list(self, request: Request, admin: AdminRequest) -> Response:
        return await self._render_list(request, admin, NewServiceTokenForm(days=self._usual_days))

    async def issue(self, request: Request, admin: AdminRequest, form: NewServiceTokenForm) -> Response:
        model = admin.authenticated.require_application(Operation.ADMINISTER)
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

    async def rerender_list(
        self, request: Request, admin: AdminRequest, form: NewServiceTokenForm, problem: FormProblem
    ) -> Response:
        return await self._render_list(request, admin, form, problem)

    async def confirm_revocation(self, request: Request, admin: AdminRequest) -> Response:
        model = admin.authenticated.require_application(Operation.ADMINISTER)
        tokens = await self._tokens.list(admin.actor, model.application.application_id)
        found = next((token for token in tokens if token.jti == request.path_params["jti"]), None)
        if found is None:
            raise KeyNotFound
        context = RevokeServiceTokenContext(head=application_head(admin, model, TAB), token=found)
        return self._view.render(request, admin, ENTRY, context)

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

    async def confirm_email_secret_revocation(self, request: Request, admin: AdminRequest) -> Response:
        model = admin.authenticated.require_application(Operation.ADMINISTER)
        secrets = await self._email_secrets.list(admin.actor, model.application.application_id)
        found = next((one for one in secrets if one.ref == request.path_params["ref"]), None)
        if found is None:
            raise KeyNotFound
        return self._view.render(
            request, admin, ENTRY, RevokeEmailSecretContext(head=application_head(admin, model, TAB), secret=found)
        )

    async def revoke_email_secret(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        application_id = request.path_params["application_id"]
        await self._email_secrets.revoke(admin.actor, application_id, request.path_params["ref"])
        return self._view.redirect_with_flash(application_path(application_id, TAB), "email_secret_revoked")

    async def _render_list(
        self, request: Request, admin: AdminRequest, form: NewServiceTokenForm, problem: FormProblem | None = None
    ) -> Response:
        model = admin.authenticated.require_application(Operation.ADMINISTER)
        application = model.application
        tokens = () if application.removed else await self._tokens.list(admin.actor, application.application_id)
        newest = sorted(tokens, key=lambda token: token.created_at, reverse=True)
        if problem is None and read_list_query(request).is_file:
            return csv_file(f"service-tokens-{application.application_id}", COLUMNS, newest)
        secrets = (
            () if application.removed else await self._email_secrets.list(admin.actor, application.application_id)
        )
        context = ServiceTokensContext(
            head=application_head(admin, model, TAB),
            tokens=newest,
            form=form,
            usual_days=self._usual_days,
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
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context, status=problem.status if problem else None)

    def routes(self) -> Sequence[ConsoleRoute]:
        desk, path = self._view, "/applications/{application_id:int}/service_tokens"
        return [
            desk.page(path, self.list),
            desk.form(path, NewServiceTokenForm, self.issue, rerender=self.rerender_list, fresh=True),
            desk.page(f"{path}/email_secret", self.list),
            desk.form(f"{path}/email_secret", CsrfForm, self.create_email_secret, fresh=True),
            desk.page(f"{path}/email_secret/{{ref}}/revoke", self.confirm_email_secret_revocation, fresh=True),
            desk.form(f"{path}/email_secret/{{ref}}/revoke", CsrfForm, self.revoke_email_secret, fresh=True),
            desk.page(f"{path}/{{jti}}/revoke", self.confirm_revocation, fresh=True),
            desk.form(f"{path}/{{jti}}/revoke", CsrfForm, self.revoke, fresh=True),
        ]


def token_command(base_url: str, jwt: str) -> str:
    """What the owner of a JWT may do, asked by the application that the service JWT is of (R6)."""
    return (
        f"curl -X POST '{base_url}/api/permissions/meta/data' -H \"Authorization: Bearer $JWT\" "
        f"-H 'Service-JWT: {jwt}' -H 'Content-Type: application/json' "
        '-d \'{"action":"get","data":{"type":"list_short"}}\''
    )
