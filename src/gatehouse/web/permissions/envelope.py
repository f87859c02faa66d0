"""The envelope of every answer (interface §4.1), and what an endpoint of this package has in common."""

from typing import Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.background import run_off_loop
from gatehouse.permissions.errors import Malformed
from gatehouse.web.dialects import Dialect
from gatehouse.web.middleware.body_limit import DEFAULT_BODY_LIMIT
from gatehouse.web.permissions.encoding import NARROWER_HINT, encode_bounded
from gatehouse.web.responses import NO_STORE, NOT_MODIFIED, entity_tag, json_response
from gatehouse.web.routes.table import Endpoint, Handler, RateClass, RequiredAuth

PRIVATE_CACHE_CONTROL: Final = "private, no-cache"  # may be kept, and is asked for again each time with its ETag

JSON: Final = "application/json"
T = TypeVar("T")


class OkResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str


class DataResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`data` depends on the endpoint; `warnings` lists ignored fields."""

    status: str
    data: object = None
    warnings: tuple[str, ...] = ()


def ok_response() -> Response:
    return json_response(OkResponse(status="OK"))


def data_response(data: object, *, warnings: tuple[str, ...] = ()) -> Response:
    return untagged_response(DataResponse(status="OK", data=data, warnings=warnings))


async def data_response_off_loop(
    weight: int, data: object, *, narrower: str = NARROWER_HINT, warnings: tuple[str, ...] = ()
) -> Response:
    """The same, encoded off the loop where it is heavy; `narrower`: what to ask for when it is too large."""
    value = DataResponse(status="OK", data=data, warnings=warnings)
    return await run_off_loop(weight, untagged_response, value, weight=weight, narrower=narrower)


def untagged_response(value: object, *, weight: int = 0, narrower: str = NARROWER_HINT) -> Response:
    return Response(encode_bounded(value, weight=weight, narrower=narrower), 200, NO_STORE, media_type=JSON)


def etag_response(request: Request, value: object) -> Response:
    """An answer that a caller may keep and ask for again with If-None-Match."""
    return or_not_modified(request, make_etag_response(value))


async def etag_response_off_loop(
    request: Request, weight: int, value: object, *, narrower: str = NARROWER_HINT
) -> Response:
    """The same, encoded off the loop where it is heavy; `narrower`: what to ask for when it is too large."""
    made = await run_off_loop(weight, make_etag_response, value, weight=weight, narrower=narrower)
    return or_not_modified(request, made)


def make_etag_response(value: object, *, weight: int = 0, narrower: str = NARROWER_HINT) -> Response:
    body = encode_bounded(value, weight=weight, narrower=narrower)
    headers = {"Cache-Control": PRIVATE_CACHE_CONTROL, "ETag": entity_tag(body), "Vary": "Authorization"}
    return Response(body, 200, headers, media_type=JSON)


def or_not_modified(request: Request, answer: Response) -> Response:
    known = request.headers.get("if-none-match")
    if known is None or answer.headers["ETag"] not in known:
        return answer
    return Response(None, NOT_MODIFIED, {name: answer.headers[name] for name in ("Cache-Control", "ETag", "Vary")})


def require_field(value: T | None, place: str) -> T:
    if value is None:
        raise Malformed(f"{place}: required")
    return value


def permission_endpoint(
    path: str,
    handler: Handler,
    *,
    name: str,
    request: type[msgspec.Struct],
    section: str,
    summary: str,
    answers: type = DataResponse,
    body_limit: int = DEFAULT_BODY_LIMIT,
    has_tag: bool = False,
    also_as: str = "",
) -> Endpoint:
    """One endpoint of the permissions interface."""
    return Endpoint(
        name=f"permissions.{name}",
        path=f"/api/permissions/{path}",
        methods=("POST",),
        handler=handler,
        dialect=Dialect.PERMISSIONS,
        rate_class=RateClass.ADMIN,
        section=section,
        summary=summary,
        request=request,
        answers={200: answers, NOT_MODIFIED: None} if has_tag else {200: answers},
        auth=RequiredAuth.USER_JWT_AND_FACTOR,
        body_limit=body_limit,
        also_as=also_as,
    )
