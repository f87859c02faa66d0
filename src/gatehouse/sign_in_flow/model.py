"""A sign-in flow, its errors and its store.

On the wire and in the tables `interaction` is the handle of a flow.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.model import SessionStrength, SignInMethod, User
from gatehouse.accounts.session_model import Session
from gatehouse.audit.model import AuditRecord
from gatehouse.fields.secrets import HIDDEN, SecretRecord
from gatehouse.kernel.errors import Conflict, NotFound


class SignInFlowGone(NotFound):
    """The flow has expired, was completed, or belongs to another browser; all three look alike."""

    public = "This page has expired or was opened in another browser. Start again."


class SignInPurposeEnded(SignInFlowGone):
    """The purpose was completed elsewhere or has ended, so there is nothing to start again."""


class SignInFlowMoved(Conflict):
    public = "This sign-in continued in another window."


FLOW_LIFETIME: Final = 600  # seconds from the first request to the end of the sign-in; interface §8
MAX_FAILURES: Final = 10  # wrong codes after which the flow ends
BROWSER: Final = "browser"  # reserved in `ask`: digest of the browser's secret
SIGN_IN_ID_DIGITS: Final = 16
PROOF: Final = "proof"  # reserved in `ask`: the authenticated session
FIRST_FACTOR: Final = "first"  # reserved in `ask`: the account's rev at the first factor, and its method
FIRST_PROVED: Final = "proved"  # reserved in `ask`: what the first factor proved, as in `Session.proved`


class FlowStep(StrEnum):
    LOGIN = "login"
    FACTOR = "factor"
    TERMS = "terms"  # documents to accept, before the purpose's own questions
    CONSENT = "consent"
    CONFIRM = "confirm"
    DONE = "done"


class SignInFlow(Struct, frozen=True, kw_only=True):
    digest: bytes
    kind: str  # of the purpose: account, login, authorize, game, device
    step: FlowStep = FlowStep.LOGIN
    ask: Mapping[str, str]  # parameters of the purpose, and the reserved ones
    user_id: str | None = None
    auth: str = ""  # empty until authentication is complete
    failures: int = 0
    created_at: int
    ends_at: int
    version: int = 1


class SignInProof(Struct, frozen=True, kw_only=True):
    """A completed authentication: the browser session it created."""

    user_id: str
    rev: int  # of the account at that time
    session_id: str  # stays the same at the next sign-in of the same person
    sign_in_id: str  # changes with every sign-in
    auth: str
    second_factor: str = ""
    proved_at: int
    limited: bool = False  # from a short-lived token: signs in to first-party clients only (R1)
    is_new: bool = False  # created by this flow, not before it


class DestinationLink(Struct, frozen=True, kw_only=True):
    """A page about the application; the texts are `link.<name>`."""

    name: str
    uri: str
    host: str


class Destination(Struct, frozen=True, kw_only=True):
    """The purpose of a sign-in as pages show it; empty for the account pages."""

    application: str = ""  # its name
    application_ids: tuple[int, ...] = ()  # the first one is that of the name
    api_application_id: int = 0  # of the API that the application asks access to; 0 for none
    returns_to: str = ""  # the host the browser is sent back to
    start: str = ""  # an address where the application starts a sign-in of its own; empty if none is known
    form_action: str = ""  # the source a form's last redirect may lead to (Content-Security-Policy)
    login_hint: str = ""
    ui_locales: str = ""
    logo: str = ""  # path of the application's logo
    links: tuple[DestinationLink, ...] = ()
    hand_over: str = ""  # path of a page to continue on another device; empty without one
    guest: str = ""  # nick of the guest whose progress an account is to keep
    asks_again: bool = False  # a provider must ask the person, instead of answering from its own session

    @property
    def application_id(self) -> int:
        """The first application; 0 for none."""
        return next(iter(self.application_ids), 0)

    @property
    def deciding_applications(self) -> tuple[int, ...]:
        """The applications whose terms count."""
        return (*self.application_ids, *filter(None, (self.api_application_id,)))


class FormPost(SecretRecord, frozen=True, kw_only=True):
    """The end of a sign-in whose result the browser posts to another site."""

    action: str  # the address
    fields: Annotated[Mapping[str, str], HIDDEN]
    form_action: str  # its source in a Content-Security-Policy
    returns_to: str  # its host, for the person
    ui_locales: str = ""


Continuation = str | FormPost  # an address that the browser goes to, or a form that it posts


def with_first_factor(flow: SignInFlow, user: User, method: SignInMethod, proved: str = "") -> SignInFlow:
    """Return the flow with the first factor accepted and the second one next."""
    ask = {**flow.ask, FIRST_FACTOR: f"{user.rev} {method.value}", FIRST_PROVED: proved}
    return replace(flow, step=FlowStep.FACTOR, user_id=user.user_id, auth="", ask=ask)


def first_factor_is_valid(flow: SignInFlow, user: User) -> bool:
    """False after a password change or a sign-out everywhere, which end earlier authentication (R2)."""
    return flow.ask[FIRST_FACTOR].partition(" ")[0] == str(user.rev)


def first_method_of(flow: SignInFlow) -> SignInMethod:
    return SignInMethod(flow.ask[FIRST_FACTOR].partition(" ")[2])


def has_password_proof(flow: SignInFlow) -> bool:
    """Whether the first factor was a password."""
    return first_method_of(flow) is SignInMethod.LOGIN


def has_email_proof(flow: SignInFlow) -> bool:
    """Whether the first factor was a link or code by email."""
    return first_method_of(flow) is SignInMethod.EMAIL


def source_to_count(flow: SignInFlow, source: str) -> str:
    """Return the source that a text message counts for; none after a right password or passkey (R11)."""
    return "" if first_method_of(flow) in (SignInMethod.LOGIN, SignInMethod.PASSKEY) else source


def proof_of_session(session: Session, *, is_new: bool = False) -> SignInProof:
    return SignInProof(
        user_id=session.user_id,
        rev=session.rev,
        session_id=session.session_id,
        sign_in_id=sign_in_id_of(session),
        auth=session.auth.value,
        second_factor=session.second_factor,
        proved_at=session.proved_at,
        limited=session.strength is not SessionStrength.FULL,
        is_new=is_new,
    )


def sign_in_id_of(session: Session) -> str:
    """Return an ID that distinguishes two sign-ins under one session ID."""
    return session.digest.hex()[:SIGN_IN_ID_DIGITS]


def with_proof(flow: SignInFlow, proof: SignInProof) -> SignInFlow:
    """Return the flow with completed authentication; the session is stored in `ask`."""
    marks = f"{int(proof.limited)} {int(proof.is_new)} {proof.second_factor}".rstrip()
    kept = f"{proof.session_id} {proof.sign_in_id} {proof.rev} {proof.proved_at} {marks}"
    return replace(flow, user_id=proof.user_id, auth=proof.auth, ask={**flow.ask, PROOF: kept})


def proof_of_flow(flow: SignInFlow) -> SignInProof:
    """Return the authentication of the flow. Raises KeyError when there is none yet."""
    session_id, sign_in, rev, proved_at, limited, is_new, *second_factor = flow.ask[PROOF].split(" ")
    return SignInProof(
        user_id=flow.user_id or "",
        rev=int(rev),
        session_id=session_id,
        sign_in_id=sign_in,
        auth=flow.auth,
        second_factor="".join(second_factor),
        proved_at=int(proved_at),
        limited=limited == "1",
        is_new=is_new == "1",
    )


class SignInFlowStore(Protocol):
    async def create_flow(self, flow: SignInFlow) -> None:
        """Store a new flow."""

    async def find_flow(self, digest: bytes, now: int) -> SignInFlow | None:
        """Return the flow until it expires."""

    async def update_flow(self, flow: SignInFlow) -> SignInFlow:
        """Replace step, user, auth, failures and ask if the version has not changed.

        Of two windows that update one flow exactly one succeeds; the other gets SignInFlowMoved. Returns the flow
        with its new version.
        """

    async def take_flow(self, digest: bytes, now: int, record: AuditRecord | None = None) -> SignInFlow | None:
        """Delete and return the flow: of any number of callers one gets it, and stores the record."""
