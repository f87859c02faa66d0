"""GET and POST /proxy/oauth/userinfo (interface §4.2)."""

from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.oauth.userinfo import UserInfo
from gatehouse.web.dialects import Dialect
from gatehouse.web.oauth.credentials import access_token_of
from gatehouse.web.responses import json_response
from gatehouse.web.routes.table import Cors, Endpoint, RateClass, RequiredAuth


class UserInfoResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Claims by scope, plus the client's mapped claims."""

    status: Literal["ok"]
    sub: str
    email: str = ""
    email_verified: bool = False
    nickname: str = ""
    phone_verified: bool = False


class UserInfoEndpoint:
    def __init__(self, userinfo: UserInfo) -> None:
        self._userinfo = userinfo

    async def show(self, request: Request) -> Response:
        return json_response(await self._userinfo.claims_for(await access_token_of(request)))

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="oauth.userinfo",
            path="/proxy/oauth/userinfo",
            methods=("GET", "POST"),
            handler=self.show,
            dialect=Dialect.OAUTH,
            rate_class=RateClass.TOKEN,
            section="interface §4.2",
            summary="Claims about the owner of the access token",
            answers={200: UserInfoResponse},
            auth=RequiredAuth.ACCESS_TOKEN,
            cors=Cors.CLIENTS,
        )
