"""Devices without a browser: they show a code, and a person confirms it elsewhere (RFC 8628)."""

import secrets
from typing import Final

from msgspec import Struct

from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import NotFound
from gatehouse.kernel.ids import new_secret
from gatehouse.oauth.errors import InvalidScope, NoDeviceGrant
from gatehouse.oauth.model import SCOPES, Client, DeviceRequest
from gatehouse.oauth.store import ClientStore, DeviceStore, scopes_for_api
from gatehouse.oauth.vocabulary import OPENID
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter, ThrottleSubject

USER_CODE_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so no words (RFC 8628 §6.1)
USER_CODE_LENGTH: Final = 8  # 34 bits for ten minutes; guesses are limited
HALF: Final = USER_CODE_LENGTH // 2
DEVICE_CODE_SECONDS: Final = 600  # seconds
INTERVAL: Final = 5  # seconds between two polls
# Few of 20^8 codes are live at a time; a few typing errors are not guessing (RFC 8628 §5.1).
USER_CODE_GUESS_LIMIT: Final = AttemptLimit(free_attempts=10, first_delay=60, max_delay=3_600, window=3_600)
MAX_TRIES: Final = 5  # to find an unused user code; one is almost always enough


class UnknownUserCode(NotFound):
    """The code is mistyped, expired or answered already; all look alike."""

    public = "No device is waiting for this code."


class DeviceAuthorizationResponse(SecretRecord, frozen=True, kw_only=True):
    """The response to a device."""

    device_code: SecretText
    user_code: str
    expires_in: int = DEVICE_CODE_SECONDS
    interval: int = INTERVAL


class DeviceAuthorization(Struct, kw_only=True, eq=False):
    store: DeviceStore
    clients: ClientStore
    guesses: AttemptLimiter
    clock: Clock

    async def start(
        self, client: Client, scope: str, *, resource: str = "", address: str
    ) -> DeviceAuthorizationResponse:
        """Store a request of an authenticated client. Raises NoDeviceGrant, InvalidScope, InvalidTarget."""
        if not client.device_grant:
            raise NoDeviceGrant(f"{client.client_id} cannot use the device grant")
        scopes = await self._scopes(client, scope, resource)
        code = new_secret()
        for _ in range(MAX_TRIES):
            request = self._new_request(client, code, scopes, address)
            if await self.store.create_request(request):
                return DeviceAuthorizationResponse(device_code=code, user_code=format_user_code(request.user_code))
        raise RuntimeError("no free user code")

    async def _scopes(self, client: Client, scope: str, resource: str) -> tuple[str, ...]:
        if not resource:
            return granted_scopes(client, scope)
        wanted = set(scope.split(" "))
        own = tuple(name for name in SCOPES if name in wanted and name in client.scopes)
        return await scopes_for_api(self.clients, client, resource, own=own, wanted=wanted)

    def _new_request(self, client: Client, code: str, scopes: tuple[str, ...], address: str) -> DeviceRequest:
        now = self.clock.now()
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
        """Return the request of the device that shows this code.

        Raises UnknownUserCode; TooMany for repeated guessing.
        """
        guess = await self.guesses.begin_attempt(
            [ThrottleSubject(("user-code", source), USER_CODE_GUESS_LIMIT, is_shared=True)]
        )
        request = await self.store.find_pending_request(normalize_user_code(typed), self.clock.now())
        if request is None:
            raise UnknownUserCode
        await self.guesses.mark_succeeded(guess)
        return request


def granted_scopes(client: Client, scope: str) -> tuple[str, ...]:
    """Return the requested scopes that the client may have.

    Unknown ones are not granted, and openid is required (R3).
    """
    wanted = set(scope.split(" ")) if scope else {OPENID}
    if OPENID not in wanted:
        raise InvalidScope("openid is missing")
    return tuple(name for name in SCOPES if name in wanted and name in client.scopes)


def normalize_user_code(typed: str) -> str:
    """Normalize a typed code: small letters, spaces and a missing hyphen are accepted (RFC 8628 §6.1)."""
    return "".join(letter for letter in typed.upper() if letter in USER_CODE_LETTERS)


def format_user_code(user_code: str) -> str:
    return f"{user_code[:HALF]}-{user_code[HALF:]}"
