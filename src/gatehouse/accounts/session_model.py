"""Browser sessions of accounts, and what they were made with.

`Session.proved` names it, and what its owner added in it: a second factor by its `Factor`, a passkey by its ID.
"""

from typing import Final

from msgspec import Struct

from gatehouse.accounts.model import SessionStrength, SignInMethod, User

PASSWORD_PROOF: Final = "password"  # noqa: S105 - a name
IDENTITY_PROOF: Final = "identity:"  # begins one
PHONE_FACTOR: Final = "phone"  # a `Factor`
PHONE_WITHOUT_PASSWORD: Final = "phone_without_password"  # noqa: S105 - a name


def identity_proof(issuer: str, subject: str) -> str:
    return f"{IDENTITY_PROOF}{issuer} {subject}"


def passkey_proof(passkey_id: str) -> str:
    return f"passkey:{passkey_id}"


def is_phone_factor(second_factor: str) -> bool:
    return second_factor in (PHONE_FACTOR, PHONE_WITHOUT_PASSWORD)


def stored_factor(used: str, *, has_password: bool) -> str:
    """Return what a session stores of a second factor; `amr` names it beside the password (oauth/acr.py)."""
    if has_password:
        return used
    return PHONE_WITHOUT_PASSWORD if used == PHONE_FACTOR else ""


class Session(Struct, frozen=True, kw_only=True):
    digest: bytes
    session_id: str
    user_id: str
    rev: int
    auth: SignInMethod
    second_factor: str = ""  # the `Factor` that was used after a password; a phone also without one
    strength: SessionStrength
    created_at: int
    proved_at: int
    seen_at: int
    idle_ends_at: int
    ends_at: int
    address: str
    agent: str
    proved: tuple[str, ...] = ()  # sign-in methods that this browser proved or added

    def with_proofs(self, *more: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.proved, *more)))

    @property
    def has_second_factor(self) -> bool:
        """Whether a second factor, or a passkey, was used."""
        return self.auth in (SignInMethod.TWO_STEP, SignInMethod.PASSKEY)

    @property
    def is_confirmed_by_phone(self) -> bool:
        """Whether the last authentication was confirmed by a text message, and so never counts as recent (R11)."""
        return is_phone_factor(self.second_factor)


class UserSession(Struct, frozen=True, kw_only=True):
    session: Session
    user: User


class LoginTokenRecord(Struct, frozen=True, kw_only=True):
    """What is stored of a login: digests only."""

    user_id: str
    rev: int
    application_id: int
    token: bytes
    token_ends_at: int
    stoken: bytes | None
    stoken_ends_at: int
    auth: SignInMethod
    address: str  # stoken works only from this address
    now: int


class ShortTokenOwner(Struct, frozen=True, kw_only=True):
    user_id: str
    rev: int
    auth: SignInMethod  # how the person signed in to get the token


class LoginToken(Struct, frozen=True, kw_only=True):
    """The `token` of login data (R1): not an OAuth token, but its application can introspect it."""

    user_id: str
    application_id: int  # 0 for none
    ends_at: int
