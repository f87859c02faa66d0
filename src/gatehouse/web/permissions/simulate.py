"""POST /api/permissions/simulate (R6)."""

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.callers.credentials import ABOUT_APPLICATION, DEFAULT_POLICY
from gatehouse.permissions.callers.desk import Authenticator
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.spelling import ApplicationId
from gatehouse.permissions.errors import ApplicationNotFound, Malformed
from gatehouse.permissions.questions.asked import read_prefix
from gatehouse.permissions.questions.proposals import AnyProposal, ApplicationProposal, Proposer
from gatehouse.permissions.questions.sight import refuse_about_everyone
from gatehouse.permissions.questions.simulate import Effect, Forecast, Simulation
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.app_schemas import parse_optional_application_id
from gatehouse.web.permissions.credentials import CredentialFields, credentials_of
from gatehouse.web.permissions.envelope import data_response_off_loop, permission_endpoint
from gatehouse.web.permissions.front_desk import actor_of
from gatehouse.web.routes.table import SCHEMA_BODY_LIMIT, Endpoint

MAX_PEOPLE: Final = 1_000
CHARACTERS_PER_WEIGHT: Final = 40  # of a usual rule: a unit of weight
SIMULATE_HINT: Final = "ask for a section or some of the rules with data.prefix"


class SimulateData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    change: AnyProposal
    after: str = ""
    limit: int = MAX_PEOPLE  # of people; there may be fewer, and then `after` tells where to go on
    prefix: str | None = None  # only rules that begin so; a section alone, or in front of a path


class SimulateRequest(CredentialFields, frozen=True, kw_only=True):
    application_id: ApplicationId | None = None
    data: SimulateData


class EffectRecord(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    gains: tuple[str, ...]
    loses: tuple[str, ...]
    gains_roles: tuple[str, ...]
    loses_roles: tuple[str, ...]


class ForecastRecord(msgspec.Struct, frozen=True, kw_only=True):
    people: tuple[EffectRecord, ...]  # those for whom something changes, by user id
    examined: int
    truncated: bool
    after: str | None  # to go on from, when truncated


class SimulateResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: ForecastRecord


class SimulationEndpoint:
    def __init__(self, *, simulation: Simulation, authenticator: Authenticator) -> None:
        self._simulation = simulation
        self._authenticator = authenticator

    async def handle(self, request: Request) -> Response:
        ask = await read_json(request, SimulateRequest)
        need = ABOUT_APPLICATION if isinstance(ask.data.change, ApplicationProposal) else DEFAULT_POLICY
        visit = await self._authenticator.authenticate(
            await credentials_of(request, ask), need, application_id=parse_optional_application_id(ask.application_id)
        )
        if visit.application_id is None:
            raise Malformed("application_id: required")
        refuse_about_everyone(visit)
        if visit.model is None:
            raise ApplicationNotFound
        by = Proposer(actor=actor_of(request, visit), model=visit.model, central=visit.central)
        after, limit = read_page(ask.data.after, ask.data.limit)
        prefix = None if ask.data.prefix is None else read_prefix(ask.data.prefix, "data.prefix")
        forecast = await self._simulation.run(ask.data.change, by, after=after, limit=limit, prefix=prefix)
        weight = forecast.length // CHARACTERS_PER_WEIGHT
        return await data_response_off_loop(weight, forecast_record(forecast), narrower=SIMULATE_HINT)

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "simulate",
            self.handle,
            name="simulate",
            request=SimulateRequest,
            section="interface §4.14",
            summary="Preview who would gain or lose access by a save, without saving",
            answers=SimulateResponse,
            body_limit=SCHEMA_BODY_LIMIT,
        )


def read_page(after: str, limit: int) -> tuple[str, int]:
    if not 1 <= limit <= MAX_PEOPLE:
        raise Malformed(f"data.limit: must be 1 to {MAX_PEOPLE}")
    return grammar.check_user_id(after, "data.after") if after else "", limit


def forecast_record(forecast: Forecast) -> ForecastRecord:
    return ForecastRecord(
        people=tuple(map(effect_record, forecast.effects)),
        examined=forecast.examined,
        truncated=forecast.after is not None,
        after=forecast.after,
    )


def effect_record(one: Effect) -> EffectRecord:
    return EffectRecord(
        user_id=one.user_id,
        gains=one.gains,
        loses=one.loses,
        gains_roles=one.gains_roles,
        loses_roles=one.loses_roles,
    )
