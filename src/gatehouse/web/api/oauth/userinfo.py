"""GET and POST /proxy/oauth/userinfo (interface §4.2)."""

from typing import Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import CLAIM_FIELDS
from gatehouse.fields.derive import with_members
from gatehouse.oauth.userinfo import UserInfo
from gatehouse.web.api.oauth.credentials import access_token_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import json_response
from gatehouse.web.http.routing import Cors, Endpoint, RateClass, RequiredAuth


@with_members(lambda: ((claim_field.field.claim, str, "") for claim_field in CLAIM_FIELDS))
class UserInfoResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Claims by scope, plus the client's mapped claims. Claims that are too long are named in claims_omitted."""

    status: Literal["ok"]
    sub: str
    email: str = ""
    email_verified: bool = False
    name: str = ""
    nickname: str = ""
    preferred_username: str = ""
    picture: str = ""
    locale: str = ""
    updated_at: int = 0
    phone_verified: bool = False
    phone_number: str = ""
    phone_number_verified: bool = False
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()
    claims_omitted: tuple[str, ...] = ()


class UserInfoEndpoint(Struct, eq=False):
    userinfo: UserInfo

    async def show(self, request: Request) -> Response:
        return json_response(await self.userinfo.claims_for(await access_token_of(request)))

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
