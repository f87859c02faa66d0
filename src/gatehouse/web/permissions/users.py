"""POST /api/permissions/user, user/info, user/tags and user/purchases (interface §4.5, §4.14, R1)."""

from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import User
from gatehouse.permissions.callers.credentials import DEFAULT_POLICY, USER_INFO
from gatehouse.permissions.commands.users import UserLabelCommands
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import CredentialFields
from gatehouse.web.permissions.envelope import data_response, permission_endpoint
from gatehouse.web.permissions.front_desk import RequestAuthenticator
from gatehouse.web.permissions.moments import iso8601
from gatehouse.web.responses import json_response
from gatehouse.web.routes.table import Endpoint


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


class UserEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Account data (R1), without credentials."""

    user_id: str
    login: str | None  # a service account has none
    nick: str
    lang: str
    country: str
    level: str
    registered: str
    email_verified: bool
    blocked: bool
    tags: tuple[str, ...]
    purchases: tuple[str, ...]
    version: int


class UserResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: UserEntry


class UserTagsData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str
    tags: list[object] | None  # null takes all of them away (R6)


class UserTagsRequest(CredentialFields, frozen=True, kw_only=True):
    data: UserTagsData


class PurchasesData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str
    purchases: list[object] | None


class PurchasesRequest(CredentialFields, frozen=True, kw_only=True):
    data: PurchasesData


class UserEndpoints:
    def __init__(self, *, people: UserLabelCommands, authenticator: RequestAuthenticator) -> None:
        self._people = people
        self._authenticator = authenticator

    async def info(self, request: Request) -> Response:
        ask = await read_json(
            request, CallerInfoRequest, may_be_empty=True
        )  # credentials only, and those may be headers
        visit = await self._authenticator.authenticate(request, ask, USER_INFO)
        return json_response(
            CallerInfoResponse(status="OK", projects=await self._people.count_projects(visit.caller.user_id))
        )

    async def get(self, request: Request) -> Response:
        ask = await read_json(request, UserRequest)
        actor = await self._authenticator.authenticate_actor(request, ask, DEFAULT_POLICY)
        return data_response(user_entry(await self._people.get(actor, ask.data.user_id)))

    async def save_tags(self, request: Request) -> Response:
        ask = await read_json(request, UserTagsRequest)
        actor = await self._authenticator.authenticate_actor(request, ask, DEFAULT_POLICY)
        saved = await self._people.save_tags(actor, ask.data.user_id, ask.data.tags or ())
        return data_response({"user_id": saved.user_id, "tags": sorted(saved.tags)})

    async def save_purchases(self, request: Request) -> Response:
        ask = await read_json(request, PurchasesRequest)
        actor = await self._authenticator.authenticate_actor(request, ask, DEFAULT_POLICY)
        saved = await self._people.save_purchases(actor, ask.data.user_id, ask.data.purchases or ())
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
                "user",
                self.get,
                name="user",
                request=UserRequest,
                section="interface §4.14",
                summary="Account: get",
                answers=UserResponse,
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


def user_entry(user: User) -> UserEntry:
    return UserEntry(
        user_id=user.user_id,
        login=user.login,
        nick=user.nick,
        lang=user.lang,
        country=user.country,
        level=user.level,
        registered=iso8601(user.reg_time),
        email_verified=user.email_verified,
        blocked=user.blocked,
        tags=tuple(sorted(user.tags)),
        purchases=tuple(sorted(user.purchases)),
        version=user.version,
    )
