"""POST /api/permissions/simulate (R6)."""

from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.fields.derive import copy_as
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import ABOUT_APPLICATION, DEFAULT_POLICY
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.errors import ApplicationNotFound, Malformed
from gatehouse.permissions.questions.check import refuse_about_everyone
from gatehouse.permissions.questions.parsing import read_prefix
from gatehouse.permissions.questions.proposals import AnyProposal, ApplicationProposal, Proposer
from gatehouse.permissions.questions.simulate import Effect, Forecast, Simulation
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response_off_loop, permission_endpoint
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import SCHEMA_BODY_LIMIT, Endpoint

MAX_PEOPLE: Final = 1_000
CHARACTERS_PER_WEIGHT: Final = 40  # bytes of a usual rule: a unit of weight
SIMULATE_HINT: Final = "ask for a section or some of the rules with data.prefix"


class SimulateData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    change: AnyProposal
    after: str = ""
    limit: int = MAX_PEOPLE  # the number of people; with fewer, `after` is the start of the next page
    prefix: str | None = None  # only rules that begin with it: a section alone, or a section and a path


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
    people: tuple[EffectRecord, ...]  # people for whom something changes, by user id
    examined: int
    truncated: bool
    after: str | None  # to go on from, when truncated


class SimulateResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: ForecastRecord


class SimulationEndpoint(Struct, kw_only=True, eq=False):
    simulation: Simulation
    authenticator: Authenticator

    async def handle(self, request: Request) -> Response:
        body = await read_json(request, SimulateRequest)
        need = ABOUT_APPLICATION if isinstance(body.data.change, ApplicationProposal) else DEFAULT_POLICY
        authenticated = await self.authenticator.authenticate(
            credentials_of(request, body), need, application_id=parse_optional_application_id(body.application_id)
        )
        if authenticated.application_id is None:
            raise Malformed("application_id: required")
        refuse_about_everyone(authenticated)
        if authenticated.model is None:
            raise ApplicationNotFound
        by = Proposer(
            actor=actor_of(request, authenticated), model=authenticated.model, central=authenticated.central
        )
        after, limit = read_page(body.data.after, body.data.limit)
        prefix = None if body.data.prefix is None else read_prefix(body.data.prefix, "data.prefix")
        forecast = await self.simulation.run(body.data.change, by, after=after, limit=limit, prefix=prefix)
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


def effect_record(effect: Effect) -> EffectRecord:
    return copy_as(EffectRecord, effect)
