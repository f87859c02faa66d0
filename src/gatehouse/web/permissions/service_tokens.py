"""POST /api/permissions/serviceToken: which static service JWTs an application has (interface §4.14, R2)."""

from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.callers.credentials import ORDINARY
from gatehouse.permissions.commands.service_tokens import ManagedServiceTokens
from gatehouse.permissions.documents.spelling import ApplicationId
from gatehouse.permissions.model.service_token import ServiceToken
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.app_schemas import id_of
from gatehouse.web.permissions.credentials import Asked
from gatehouse.web.permissions.envelope import answer, needed, post
from gatehouse.web.permissions.front_desk import FrontDesk, actor_of
from gatehouse.web.permissions.moments import moment
from gatehouse.web.routes.table import Endpoint


class ServiceTokenRequest(Asked, frozen=True, kw_only=True):
    action: Literal["get"]
    application_id: ApplicationId | None = None


class ServiceTokenEntry(msgspec.Struct, frozen=True, kw_only=True):
    jti: str
    application_id: int
    comment: str
    created: str
    ends: str
    revoked: bool


class ServiceTokenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: tuple[ServiceTokenEntry, ...]


class ServiceTokenEndpoint:
    def __init__(self, *, tokens: ManagedServiceTokens, desk: FrontDesk) -> None:
        self._tokens = tokens
        self._desk = desk

    async def act(self, request: Request) -> Response:
        ask = await read_json(request, ServiceTokenRequest)
        visit = await self._desk.visit(request, ask, ORDINARY, application_id=id_of(ask.application_id))
        listed = await self._tokens.list(actor_of(request, visit), needed(visit.application_id, "application_id"))
        return answer(tuple(map(entry, listed)))

    def endpoint(self) -> Endpoint:
        return post(
            "serviceToken",
            self.act,
            name="service_token",
            request=ServiceTokenRequest,
            section="interface §4.14",
            summary="List the static service JWTs of an application, without values: get",
            answers=ServiceTokenAnswer,
        )


def entry(token: ServiceToken) -> ServiceTokenEntry:
    return ServiceTokenEntry(
        jti=token.jti,
        application_id=token.application_id,
        comment=token.comment,
        created=moment(token.created_at),
        ends=moment(token.ends_at),
        revoked=token.revoked,
    )
