"""The login of guests: POST /proxy/api/guest (R10)."""

from functools import partial
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.guests.model import CHALLENGE_SECONDS, ChallengeIntent, DeviceProof
from gatehouse.accounts.guests.sign_in import GuestSignIn
from gatehouse.accounts.login_result import LoginOptions, LoginResult
from gatehouse.accounts.model import SignInMethod
from gatehouse.fields.derive import copy_as
from gatehouse.fields.secrets import SecretText
from gatehouse.kernel.errors import BadInput
from gatehouse.throttle.proof_of_work import Puzzle, PuzzleUnsolved
from gatehouse.web.api.login import LoginFields, LoginResponse, read_login_options
from gatehouse.web.api.login_completion import LoginCompletion, ProvedLogin, SecondFactorFields, refuse_other_sites
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect, Failure
from gatehouse.web.http.parse import ANY_BODY, read_json_or_form
from gatehouse.web.http.responses import json_response
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.rendering import PageRenderer

ACTOR: Final = "guest"  # until the account is known


class GuestRequest(LoginFields, frozen=True, kw_only=True):
    """Without a signature it asks for a challenge; with `request_id` it brings the second factor."""

    device_key: str = ""
    challenge: str = ""
    signature: str = ""
    intent: str = ""  # of the challenge: `upgrade` for getGsid
    puzzle: str = ""  # as received, with its solution
    solution: str = ""
    otp: SecretText = ""
    request_id: str = ""
    method: str = ""


class GuestResponse(LoginResponse, frozen=True, kw_only=True, omit_defaults=True):
    """One of: CHALLENGE, PUZZLE, OK with the login data, LOGINERROR, 2STEP, 2STEPERROR, TERMS, BLOCKED, DENIED."""

    challenge: str = ""
    expires_in: int = 0  # seconds until the challenge ends
    puzzle: Puzzle | None = None  # for a new guest, while proof of work is required
    created: bool = False  # the account is new


class GuestEndpoint(Struct, kw_only=True, eq=False):
    """`pages` knows the language of a request, for the new account."""

    guests: GuestSignIn
    login_result: LoginResult
    completion: LoginCompletion
    pages: PageRenderer

    async def log_in(self, request: Request) -> Response:
        refuse_other_sites(request)
        body = await read_json_or_form(request, GuestRequest)
        if not body.signature and not body.request_id:
            return json_response(await self._challenge("CHALLENGE", request, body))
        step = SecondFactorFields(request_id=body.request_id, otp=body.otp, method=body.method)
        try:
            return await self.completion.respond(request, step, partial(self._prove, request, body))
        except PuzzleUnsolved:
            return json_response(await self._challenge("PUZZLE", request, body))

    async def _read_options(self, request: Request, body: GuestRequest) -> LoginOptions:
        """Return the options with all named applications: guests may sign in to some only."""
        options = read_login_options(body, str(caller_address_of(request.scope).address))
        return await self.login_result.with_service_application(options)

    async def _challenge(self, status: str, request: Request, body: GuestRequest) -> dict[str, object]:
        intent = read_intent(body.intent)
        challenge = self.guests.challenge(intent, (await self._read_options(request, body)).applications)
        puzzle = await self.guests.puzzle_for(body.device_key) if intent is ChallengeIntent.SIGN_IN else None
        answer = {"status": status, "challenge": challenge, "expires_in": CHALLENGE_SECONDS}
        return answer if puzzle is None else {**answer, "puzzle": puzzle}

    async def _prove(self, request: Request, body: GuestRequest) -> ProvedLogin:
        options = await self._read_options(request, body)
        sign_in = await self.guests.sign_in(
            copy_as(DeviceProof, body),
            options.applications,
            lang=self.pages.language_of(request),
            source=caller_address_of(request.scope).source,
            origin=origin_of(request, ACTOR),
        )
        return ProvedLogin(
            user=sign_in.user,
            method=SignInMethod.GUEST,
            options=options,
            more={"created": True} if sign_in.created else {},
        )

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="guest",
            path="/proxy/api/guest",
            methods=("POST",),
            handler=self.log_in,
            dialect=Dialect.PLAIN,
            rate_class=RateClass.LOGIN,
            section="interface §4.17",
            summary="Sign in a guest with a device key; the status shows the result",
            request=GuestRequest,
            accepts=ANY_BODY,
            answers={200: GuestResponse, 403: Failure},
        )


def read_intent(text: str) -> ChallengeIntent:
    try:
        return ChallengeIntent(text or ChallengeIntent.SIGN_IN)
    except ValueError as error:
        raise BadInput("intent must be guest or upgrade") from error
