"""Registrations that wait for the proof of their address, each in the browser that began it (docs/decisions/0050).

The link in the email finishes the registration there. Opened in another browser it shows a code to type into the
first one, so that no browser is signed in because a link was opened elsewhere.
"""

from enum import StrEnum
from typing import Final

import msgspec

from gatehouse.accounts.email_links import EMAIL_LINK_LIFETIME, NO_USER_ID, LinkRequester
from gatehouse.accounts.errors import EmailCodeWrong, EmailSignInGone, UserNotFound
from gatehouse.accounts.model import FlowReference, PendingRegistrationRecord, User
from gatehouse.accounts.store import AccountStore, EmailLinkStore
from gatehouse.fields.secrets import SecretRecord
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import hmac_sha256, sha256
from gatehouse.kernel.sealing import SecretSealer

REGISTRATION_LIFETIME: Final = 2 * EMAIL_LINK_LIFETIME  # seconds: its link may be sent again
CODE_DIGITS: Final = 8  # as for sign-in by email: no password precedes it
MAX_TYPED_CODE_LENGTH: Final = 40  # characters, spaces included
SEALING_PURPOSE: Final = "registration"
NO_FLOW: Final = FlowReference()


class RegistrationState(StrEnum):
    """What the browser that registered waits for."""

    WAITING = "waiting"
    CONFIRMED = "confirmed"  # in this browser
    ELSEWHERE = "elsewhere"  # in another browser, with another password
    OVER = "over"


class _Content(msgspec.Struct, frozen=True, kw_only=True):
    """Sealed, because it names a person and a sign-in flow."""

    login: str
    flow: FlowReference


class PendingRegistration(SecretRecord, frozen=True, kw_only=True):
    user_id: str  # NO_USER_ID for an address that had an account
    login: str  # as typed
    flow: FlowReference


class PendingRegistrations:
    def __init__(
        self, *, store: EmailLinkStore, accounts: AccountStore, sealer: SecretSealer, key: bytes, clock: Clock
    ) -> None:
        """`key` is the installation's: a stolen database alone must not allow guessing a code."""
        self._store = store
        self._accounts = accounts
        self._sealer = sealer
        self._key = key
        self._clock = clock

    def prepare(self, login: str, requester: LinkRequester, user_id: str = NO_USER_ID) -> PendingRegistrationRecord:
        """Return what the registration stores with its account; for a known address it waits in vain (LG-05)."""
        now = self._clock.now()
        content = msgspec.json.encode(_Content(login=login, flow=requester.flow))
        return PendingRegistrationRecord(
            browser=bytes.fromhex(requester.browser),
            user_id=user_id,
            sealed=self._sealer.seal(content, purpose=SEALING_PURPOSE),
            created_at=now,
            expires_at=now + REGISTRATION_LIFETIME,
        )

    async def find(self, browser: bytes) -> PendingRegistration | None:
        """Return the registration that this browser began last."""
        registration = await self._store.find_registration(browser, self._clock.now())
        if registration is None:
            return None
        user_id, sealed = registration
        plain = self._sealer.try_open(sealed, purpose=SEALING_PURPOSE)
        if plain is None:
            return None
        content = msgspec.json.decode(plain, type=_Content)
        return PendingRegistration(user_id=user_id, login=content.login, flow=content.flow)

    async def find_of(self, user: User) -> PendingRegistration | None:
        """Return the registration of this account in the browser that chose its password."""
        pending = await self.find(bytes.fromhex(user.password_browser)) if user.password_browser else None
        return pending if pending is not None and pending.user_id == user.user_id else None

    async def find_state(
        self, browser: bytes, pending: PendingRegistration | None, signed_in: str
    ) -> RegistrationState:
        """Return what became of it; `signed_in` is the user ID of the browser's session."""
        if pending is None:
            return RegistrationState.OVER
        try:
            user = await self._accounts.user(pending.user_id)  # also for no account: it takes as long (LG-05)
        except UserNotFound:
            return RegistrationState.WAITING if pending.user_id == NO_USER_ID else RegistrationState.OVER
        if not user.email_verified:
            return RegistrationState.WAITING
        is_own = user.user_id == signed_in or user.password_browser == browser.hex()
        return RegistrationState.CONFIRMED if is_own else RegistrationState.ELSEWHERE

    def code_of(self, secret: str) -> str:
        """Return the code that an open link shows in another browser than the one that registered."""
        code = self._code_digits(sha256(secret))
        return f"{code[:4]} {code[4:]}"

    async def check_code(self, code: str, *, browser: bytes) -> bytes:
        """Return the digest of the link that shows this code; nothing is used up but wrong tries.

        Raises EmailCodeWrong, and EmailSignInGone, also after too many wrong ones.
        """
        typed = "".join(code[:MAX_TYPED_CODE_LENGTH].split())
        outcome = await self._store.try_registration_code(browser, typed, self._code_digits, self._clock.now())
        if isinstance(outcome, EmailCodeWrong):
            raise outcome
        if outcome is None:
            raise EmailSignInGone
        return outcome

    def _code_digits(self, link: bytes) -> str:
        number = int.from_bytes(hmac_sha256(self._key, b"registration:" + link)[:16])
        return f"{number % 10**CODE_DIGITS:0{CODE_DIGITS}}"
