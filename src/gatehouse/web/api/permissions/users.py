"""POST /api/permissions/user/info, user/tags and user/purchases (interface §4.5, R1)."""

from typing import Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY, USER_INFO
from gatehouse.permissions.commands.users import UserLabelCommands
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, permission_endpoint
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.responses import json_response
from gatehouse.web.http.routing import Endpoint


class CallerInfoRequest(CredentialFields, frozen=True, kw_only=True):
    pass


class CallerInfoResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    projects: int  # that the token's owner made and that are not removed


class UserData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str


class UserRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get"]
    data: UserData


class UserTagsData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str
    tags: list[object] | None  # null removes all of them (R6)


class UserTagsRequest(CredentialFields, frozen=True, kw_only=True):
    data: UserTagsData


class PurchasesData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str
    purchases: list[object] | None


class PurchasesRequest(CredentialFields, frozen=True, kw_only=True):
    data: PurchasesData


class UserEndpoints(Struct, kw_only=True, eq=False):
    people: UserLabelCommands
    authenticator: Authenticator

    async def info(self, request: Request) -> Response:
        body = await read_json(
            request, CallerInfoRequest, may_be_empty=True
        )  # credentials only, and those may be headers
        authenticated = await self.authenticator.authenticate(credentials_of(request, body), USER_INFO)
        return json_response(
            CallerInfoResponse(status="OK", projects=await self.people.count_projects(authenticated.caller.user_id))
        )

    async def save_tags(self, request: Request) -> Response:
        body = await read_json(request, UserTagsRequest)
        actor = actor_of(
            request, await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        )
        saved = await self.people.save_tags(actor, body.data.user_id, body.data.tags or ())
        return data_response({"user_id": saved.user_id, "tags": sorted(saved.tags)})

    async def save_purchases(self, request: Request) -> Response:
        body = await read_json(request, PurchasesRequest)
        actor = actor_of(
            request, await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        )
        saved = await self.people.save_purchases(actor, body.data.user_id, body.data.purchases or ())
        return data_response({"user_id": saved.user_id, "purchases": sorted(saved.purchases)})

    def endpoints(self) -> list[Endpoint]:
        return [
            permission_endpoint(
                "user/info",
                self.info,
                name="user_info",
                request=CallerInfoRequest,
                section="interface §4.5",
                summary="Number of projects the caller created",
                answers=CallerInfoResponse,
            ),
            permission_endpoint(
                "user/tags",
                self.save_tags,
                name="user_tags",
                request=UserTagsRequest,
                section="interface §4.5",
                summary="Replace the tags of an account",
            ),
            permission_endpoint(
                "user/purchases",
                self.save_purchases,
                name="user_purchases",
                request=PurchasesRequest,
                section="interface §4.5",
                summary="Replace the purchases of an account",
            ),
        ]
