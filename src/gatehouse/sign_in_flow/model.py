"""What can go wrong on the way."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from gatehouse.accounts.model import Session, SessionStrength, User
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.errors import Conflict, NotFound


class SignInFlowGone(NotFound):
    """It has ended, was finished, or belongs to another browser; all three look alike."""

    public = "This page has expired or was opened in another browser. Start again."


class SignInPurposeEnded(SignInFlowGone):
    """What it was for was answered elsewhere, or has ended: there is nothing to start again here."""


class SignInFlowMoved(Conflict):
    public = "This sign-in continued in another window."


# One sign-in under way.


FLOW_LIFETIME: Final = 600  # seconds from the first request to the end of the sign-in; interface §8
MAX_FAILURES: Final = 10  # wrong codes after which the way starts anew
BROWSER: Final = "browser"  # reserved in `ask`: whose way it is
SIGN_IN_ID_DIGITS: Final = 16
PROOF: Final = "proof"  # reserved in `ask`: the session that was proved
FIRST_FACTOR: Final = "first"  # reserved in `ask`: the account's rev when the password was right


class FlowStep(StrEnum):
    LOGIN = "login"
    FACTOR = "factor"
    CONSENT = "consent"
    CONFIRM = "confirm"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInFlow:
    digest: bytes
    kind: str  # whose occasion it is: account, login, authorize, game, device
    step: FlowStep = FlowStep.LOGIN
    ask: Mapping[str, str]  # what it is for, as its kind wrote it, and the reserved ones
    user_id: str | None = None
    auth: str = ""  # empty until everything asked for was proved
    failures: int = 0
    created_at: int
    ends_at: int
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInProof:
    """How somebody proved who he is: the browser session that came of it."""

    user_id: str
    rev: int  # the account's at that moment
    session_id: str  # stays the same when he signs in once more
    sign_in_id: str  # and this does not
    auth: str
    proved_at: int
    limited: bool = False  # from a short-lived token: signs in to first-party clients only (R1)
    is_new: bool = False  # came of this very way; a session that was brought along never is


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """What a sign-in is for, as its pages tell it; empty when it is about the account alone."""

    application: str = ""  # its name
    returns_to: str = ""  # the host the browser is sent back to
    form_action: str = ""  # the source a form's last redirect may lead to (Content-Security-Policy)
    login_hint: str = ""
    ui_locales: str = ""
    hand_over: str = ""  # a path of ours where the person may go on with another device; empty when there is none


def with_first_factor(flow: SignInFlow, user: User) -> SignInFlow:
    """The interaction of somebody whose second factor is still asked for."""
    ask = {**flow.ask, FIRST_FACTOR: str(user.rev)}
    return replace(flow, step=FlowStep.FACTOR, user_id=user.user_id, auth="", ask=ask)


def first_factor_is_valid(flow: SignInFlow, user: User) -> bool:
    """Not after a changed password or a sign-out everywhere: what was proved before them is worth nothing (R2)."""
    return flow.ask[FIRST_FACTOR] == str(user.rev)


def proof_of_session(session: Session, *, is_new: bool = False) -> SignInProof:
    return SignInProof(
        user_id=session.user_id,
        rev=session.rev,
        session_id=session.session_id,
        sign_in_id=sign_in_id_of(session),
        auth=session.auth.value,
        proved_at=session.proved_at,
        limited=session.strength is not SessionStrength.FULL,
        is_new=is_new,
    )


def sign_in_id_of(session: Session) -> str:
    """Tells two sign-ins under one session id apart; good for nothing else."""
    return session.digest.hex()[:SIGN_IN_ID_DIGITS]


def with_proof(flow: SignInFlow, proof: SignInProof) -> SignInFlow:
    """The interaction of somebody who has proved everything; the session is kept beside what it is for."""
    marks = f"{int(proof.limited)} {int(proof.is_new)}"
    kept = f"{proof.session_id} {proof.sign_in_id} {proof.rev} {proof.proved_at} {marks}"
    return replace(flow, user_id=proof.user_id, auth=proof.auth, ask={**flow.ask, PROOF: kept})


def proof_of_flow(flow: SignInFlow) -> SignInProof:
    """Raises KeyError where nothing was proved yet."""
    session_id, sign_in, rev, proved_at, limited, is_new = flow.ask[PROOF].split(" ")
    return SignInProof(
        user_id=flow.user_id or "",
        rev=int(rev),
        session_id=session_id,
        sign_in_id=sign_in,
        auth=flow.auth,
        proved_at=int(proved_at),
        limited=limited == "1",
        is_new=is_new == "1",
    )


# What a sign-in under way needs kept.


class SignInFlowStore(Protocol):
    async def create_flow(self, flow: SignInFlow) -> None:
        """Keep a new one."""

    async def find_flow(self, digest: bytes, now: int) -> SignInFlow | None:
        """Return it while it lasts."""

    async def update_flow(self, flow: SignInFlow) -> SignInFlow:
        """Replace step, user, auth, failures and ask if the version is still the one that was read.

        Of two windows that move one interaction exactly one succeeds; the other gets InteractionMoved.
        Returns it with its new version.
        """

    async def take_flow(self, digest: bytes, now: int, record: AuditRecord | None = None) -> SignInFlow | None:
        """Take it away and return it, once: of any number of callers one gets it, and leaves the record."""
