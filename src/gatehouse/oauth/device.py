"""Devices without a browser: they show a code, and somebody confirms it elsewhere (RFC 8628)."""

import secrets
from dataclasses import dataclass, field
from typing import Final

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import NotFound
from gatehouse.kernel.ids import new_secret
from gatehouse.oauth.errors import InvalidScope, NoDeviceGrant
from gatehouse.oauth.model import SCOPES, Client, DeviceRequest
from gatehouse.oauth.store import DeviceStore
from gatehouse.oauth.vocabulary import OPENID
from gatehouse.throttle.guesses import AttemptLimiter, ThrottleSubject
from gatehouse.throttle.model import AttemptLimit

USER_CODE_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so no words (RFC 8628 §6.1)
USER_CODE_LENGTH: Final = 8  # 34 bit, for ten minutes, behind the guesses
HALF: Final = USER_CODE_LENGTH // 2
DEVICE_CODE_SECONDS: Final = 600  # seconds
INTERVAL: Final = 5  # seconds between two polls
# Of 20^8 codes few are ever live; whoever types one wrongly a few times is no guesser (RFC 8628 §5.1).
USER_CODE_GUESS_LIMIT: Final = AttemptLimit(free_attempts=10, first_delay=60, max_delay=3_600, window=3_600)
MAX_TRIES: Final = 5  # for a user code that nobody has: one is enough but for a miracle


class UnknownUserCode(NotFound):
    """Mistyped, too old, or answered already: all alike."""

    public = "No device is waiting for this code."


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAuthorizationResponse:
    """What a device is told."""

    device_code: str = field(repr=False)
    user_code: str
    expires_in: int = DEVICE_CODE_SECONDS
    interval: int = INTERVAL


class DeviceAuthorization:
    def __init__(self, *, store: DeviceStore, guesses: AttemptLimiter, clock: Clock) -> None:
        self._store = store
        self._guesses = guesses
        self._clock = clock

    async def start(self, client: Client, scope: str, *, address: str) -> DeviceAuthorizationResponse:
        """Keep a request of a client that has proved itself. Raises NoDeviceGrant, InvalidScope."""
        if not client.device_grant:
            raise NoDeviceGrant(f"{client.client_id} cannot use the device grant")
        scopes = granted_scopes(client, scope)
        code = new_secret()
        for _ in range(MAX_TRIES):
            request = self._new_request(client, code, scopes, address)
            if await self._store.create_request(request):
                return DeviceAuthorizationResponse(device_code=code, user_code=format_user_code(request.user_code))
        raise RuntimeError("no free user code")

    def _new_request(self, client: Client, code: str, scopes: tuple[str, ...], address: str) -> DeviceRequest:
        now = self._clock.now()
        return DeviceRequest(
            digest=sha256(code),
            user_code="".join(secrets.choice(USER_CODE_LETTERS) for _ in range(USER_CODE_LENGTH)),
            client_id=client.client_id,
            scopes=scopes,
            address=address,
            interval=INTERVAL,
            created_at=now,
            ends_at=now + DEVICE_CODE_SECONDS,
        )

    async def find_pending(self, typed: str, *, source: str) -> DeviceRequest:
        """The device that shows this code. Raises UnknownUserCode, and TooMany for someone who keeps guessing."""
        guess = await self._guesses.begin_attempt(
            [ThrottleSubject(("user-code", source), USER_CODE_GUESS_LIMIT, is_shared=True)]
        )
        request = await self._store.find_pending_request(normalize_user_code(typed), self._clock.now())
        if request is None:
            raise UnknownUserCode
        await self._guesses.mark_succeeded(guess)
        return request


def granted_scopes(client: Client, scope: str) -> tuple[str, ...]:
    """Those of the client that are asked for; unknown ones are not granted, and openid is what it is about (R3)."""
    wanted = set(scope.split(" ")) if scope else {OPENID}
    if OPENID not in wanted:
        raise InvalidScope("openid is missing")
    return tuple(one for one in SCOPES if one in wanted and one in client.scopes)


def normalize_user_code(typed: str) -> str:
    """People type small letters, blanks, and the hyphen or not (RFC 8628 §6.1)."""
    return "".join(letter for letter in typed.upper() if letter in USER_CODE_LETTERS)


def format_user_code(user_code: str) -> str:
    return f"{user_code[:HALF]}-{user_code[HALF:]}"
