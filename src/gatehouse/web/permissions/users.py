"""POST /api/permissions/user/info, user/tags and user/purchases (interface §4.5, R1)."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.callers.credentials import ORDINARY, USER_INFO
from gatehouse.permissions.commands.users import People
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import Asked
from gatehouse.web.permissions.envelope import answer, post
from gatehouse.web.permissions.front_desk import FrontDesk
from gatehouse.web.responses import json_answer
from gatehouse.web.routes.table import Endpoint


class InfoRequest(Asked, frozen=True, kw_only=True):
    pass


class InfoAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    projects: int  # that the token's owner made and that are not removed


class UserTagsData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str
    tags: list[object]


class UserTagsRequest(Asked, frozen=True, kw_only=True):
    data: UserTagsData


class PurchasesData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str
    purchases: list[object]


class PurchasesRequest(Asked, frozen=True, kw_only=True):
    data: PurchasesData


class UserEndpoints:
    def __init__(self, *, people: People, desk: FrontDesk) -> None:
        self._people = people
        self._desk = desk

    async def info(self, request: Request) -> Response:
        ask = await read_json(request, InfoRequest)
        visit = await self._desk.visit(request, ask, USER_INFO)
        return json_answer(InfoAnswer(status="OK", projects=await self._people.projects(visit.caller.user_id)))

    async def save_tags(self, request: Request) -> Response:
        ask = await read_json(request, UserTagsRequest)
        actor = await self._desk.actor(request, ask, ORDINARY)
        saved = await self._people.save_tags(actor, ask.data.user_id, ask.data.tags)
        return answer({"user_id": saved.user_id, "tags": sorted(saved.tags)})

    async def save_purchases(self, request: Request) -> Response:
        ask = await read_json(request, PurchasesRequest)
        actor = await self._desk.actor(request, ask, ORDINARY)
        saved = await self._people.save_purchases(actor, ask.data.user_id, ask.data.purchases)
        return answer({"user_id": saved.user_id, "purchases": sorted(saved.purchases)})

    def endpoints(self) -> list[Endpoint]:
        return [
            post(
                "user/info",
                self.info,
                name="user_info",
                request=InfoRequest,
                section="interface §4.5",
                summary="How many projects the caller made",
                answers=InfoAnswer,
            ),
            post(
                "user/tags",
                self.save_tags,
                name="user_tags",
                request=UserTagsRequest,
                section="interface §4.5",
                summary="Replace the tags of an account",
            ),
            post(
                "user/purchases",
                self.save_purchases,
                name="user_purchases",
                request=PurchasesRequest,
                section="interface §4.5",
                summary="Replace the purchases of an account",
            ),
        ]
