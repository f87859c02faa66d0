"""Storage of game sessions, and what they need of other packages."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from gatehouse.accounts.login_result import IdTokenRequest
from gatehouse.accounts.model import User
from gatehouse.accounts.session_model import LoginTokenRecord
from gatehouse.audit.model import AuditOrigin, AuditRecord, Refusal
from gatehouse.gamesessions.model import (
    CloseStatus,
    GameSession,
    PollId,
    PollMark,
    SessionConfirmation,
    SessionSnapshot,
)
from gatehouse.sign_in_flow.model import SignInProof
from gatehouse.sign_in_flow.questions import ConsentRequest


class GameSessionStore(Protocol):
    """Storage of game sessions; callers have checked the proofs."""

    async def register_session(self, session: GameSession) -> None:
        """Insert a new session."""

    async def find_session(self, gsid: str, now: int) -> GameSession | None:
        """Return the session unless it has expired."""

    async def session_snapshots(self, gsids: Collection[str], now: int) -> Mapping[str, SessionSnapshot]:
        """Return those of the sessions that have not expired, in one query."""

    async def record_polls(self, marks: Sequence[PollMark], node: str) -> None:
        """Record polls of this node: times only increase, and so do numbers while this node is the holder.

        Only a session that is not over yet is extended.
        """

    async def claim_session(self, mark: PollMark, node: str, *, tell: bool) -> int:
        """Make this node the holder, and record the poll as the newest of all nodes.

        Returns its number: the mark's, or a higher one. With `tell`, waiting polls read the session again.
        """

    async def record_presence(self, gsids: Collection[str], node: str, now: int) -> None:
        """Update last_seen of these sessions, and of the sockets of their owners at this node."""

    async def record_progress(self, gsid: str, now: int, *, signing_in: bool) -> None:
        """Record that the page was opened or is about to be answered; the first time counts."""

    async def confirm_session(self, confirmation: SessionConfirmation, now: int, entry: AuditRecord) -> bool:
        """Confirm the session for a person: once, while it is pending and the account's rev is unchanged."""

    async def fail_session(
        self, gsid: str, now: int, refusal: Refusal, max_refusals: int, *, user_id: str = ""
    ) -> bool:
        """Fail the session with the reason in the refusal; False when it is over or was delivered.

        `user_id` is the account that was denied access.
        """

    async def take_answer(
        self, gsid: str, poll_id: PollId, now: int, login: LoginTokenRecord, entry: AuditRecord
    ) -> bool:
        """Mark the answer as delivered and store what it issues, in one transaction, at most once.

        False when there is no answer to take, when a newer poll is known, here or at another node, or when the
        account is no longer as it was at the confirmation. Raises OutcomeUnknown.
        """

    async def return_answer(self, gsid: str, poll_id: PollId, login: LoginTokenRecord, entry: AuditRecord) -> None:
        """Undo a take whose answer was never sent, and what it issued, if it was committed at all.

        The session can then be delivered to a later poll, but never to this one. May be repeated.
        """

    async def close_session(
        self, gsid: str, now: int, closing: CloseStatus, refusal: Refusal, max_refusals: int
    ) -> bool:
        """Store the result that the game reports.

        Before the delivery this ends the session with the reason in the refusal.
        """

    async def close_session_by_admin(
        self, gsid: str, now: int, refusal: Refusal, max_refusals: int, *, entry: AuditRecord
    ) -> bool:
        """End a session that is not delivered yet, with the reason in the refusal; False when it is over."""

    async def add_socket_node(self, gsid: str, node: str, now: int) -> None:
        """Record that a socket of the owner is open at this node."""

    async def remove_socket_node(self, gsid: str, node: str, now: int) -> bool:
        """Record that the last socket at this node closed; True, and counted, when no other node has one."""

    async def forget_node(self, node: str) -> None:
        """Remove this node's sockets because it stops; no session is canceled."""

    async def count_pending(self, now: int, most: int) -> int:
        """Count the pending sessions up to a limit, away from the event loop."""

    def listen_for_changes(self, listener: Callable[[str], object]) -> Callable[[], None]:
        """Call the listener with the gsid of every changed session; "" when changes may have been missed."""


# What game sessions need of other packages; the services provide it.


class IdTokenIssuer(Protocol):
    """id_tokens for other back ends, issued by `oauth` for a client of the session's application (R10)."""

    async def check_request(self, request: IdTokenRequest, application_id: int | None) -> IdTokenRequest:
        """Return the request with the scopes of its client. Raises BadInput for a client that gets none."""

    async def consent_request(
        self, request: IdTokenRequest, application_id: int | None, user_id: str
    ) -> ConsentRequest | None:
        """Return what the person has to allow first. Raises LoginDenied when the client gets no id_token any more."""

    async def give_consent(
        self, request: IdTokenRequest, application_id: int | None, user_id: str, origin: AuditOrigin
    ) -> None:
        """Record the consent if it is needed. Raises LoginDenied."""

    async def issue(self, request: IdTokenRequest, application_id: int | None, user: User, proof: SignInProof) -> str:
        """Sign the id_token. Raises LoginDenied, also when a consent is missing or was withdrawn."""


class ClientConnection(Protocol):
    """The connection a poll came on."""

    def is_open(self) -> bool:
        """Whether the client is connected, as far as this machine knows."""

    def when_lost(self, callback: Callable[[], object]) -> None:
        """Call the function once when the client disconnects."""


class GameLoginSettings(Struct, frozen=True, kw_only=True):
    """The settings of an application for game logins."""

    name: str = ""  # its name; empty when there is no such application
    enabled: bool = True
    logo: str = ""  # path of its logo
    code_match: bool = False  # people in another network choose the code that the game shows


# Returns the settings of an application, or the defaults if there is none.
GameSettingsReader = Callable[[int], Awaitable[GameLoginSettings]]
