"""POST /api/permissions/emailSecret: which `with_email` secrets an application has (interface §4.14, R1)."""

from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.callers.credentials import ORDINARY
from gatehouse.permissions.commands.service_tokens import EmailSecrets
from gatehouse.permissions.documents.spelling import ApplicationId
from gatehouse.permissions.model.service_token import EmailSecret
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.app_schemas import id_of
from gatehouse.web.permissions.credentials import Asked
from gatehouse.web.permissions.envelope import answer, needed, post
from gatehouse.web.permissions.front_desk import FrontDesk, actor_of
from gatehouse.web.permissions.moments import moment
from gatehouse.web.routes.table import Endpoint


class EmailSecretRequest(Asked, frozen=True, kw_only=True):
    action: Literal["get"]
    application_id: ApplicationId | None = None


class EmailSecretEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Identifier and age of a secret, without its value."""

    ref: str
    created: str


class EmailSecretAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: tuple[EmailSecretEntry, ...]


class EmailSecretEndpoint:
    def __init__(self, *, secrets: EmailSecrets, desk: FrontDesk) -> None:
        self._secrets = secrets
        self._desk = desk

    async def act(self, request: Request) -> Response:
        ask = await read_json(request, EmailSecretRequest)
        visit = await self._desk.visit(request, ask, ORDINARY, application_id=id_of(ask.application_id))
        listed = await self._secrets.list(actor_of(request, visit), needed(visit.application_id, "application_id"))
        return answer(tuple(map(entry, listed)))

    def endpoint(self) -> Endpoint:
        return post(
            "emailSecret",
            self.act,
            name="email_secret",
            request=EmailSecretRequest,
            section="interface §4.14",
            summary="List the `with_email` secrets of an application, without values: get",
            answers=EmailSecretAnswer,
        )


def entry(secret: EmailSecret) -> EmailSecretEntry:
    return EmailSecretEntry(ref=secret.ref, created=moment(secret.created_at))
