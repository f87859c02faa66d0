"""Browser sessions of accounts, and what they were made with.

`Session.proved` names it, and what its owner added in it: a second factor by its `Factor`, a passkey by its ID.
"""

from typing import Final

from msgspec import Struct

from gatehouse.accounts.model import SessionStrength, SignInMethod, User

PASSWORD_PROOF: Final = "password"  # noqa: S105 - a name
IDENTITY_PROOF: Final = "identity:"  # begins one


def identity_proof(issuer: str, subject: str) -> str:
    return f"{IDENTITY_PROOF}{issuer} {subject}"


def passkey_proof(passkey_id: str) -> str:
    return f"passkey:{passkey_id}"


class Session(Struct, frozen=True, kw_only=True):
    digest: bytes
    session_id: str
    user_id: str
    rev: int
    auth: SignInMethod
    second_factor: str = ""  # the `Factor` that was used after a password
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
