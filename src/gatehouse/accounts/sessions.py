"""Browser sessions: stored on the server, opaque, ended on every node before the response (S-07)."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from gatehouse.accounts.bans.model import find_ban
from gatehouse.accounts.model import SessionStrength, SignInMethod, User
from gatehouse.accounts.own_account.model import AGENT_KEY
from gatehouse.accounts.session_model import Session, UserSession
from gatehouse.accounts.short_tokens import may_be_silent
from gatehouse.accounts.store import SessionStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_record_id, new_secret
from gatehouse.mail.model import OutboxMail

MAX_AGENT_LENGTH: Final = 256
LAST_SEEN_INTERVAL: Final = 60  # seconds between two writes of "last seen"


class SessionLifetimes(Struct, frozen=True, kw_only=True):
    idle: int = 3 * 86_400  # seconds without a request
    absolute: int = 30 * 86_400
    unless_stay: int = 12 * 3_600  # for people who did not choose to stay signed in
    fresh: int = 600  # seconds after authentication in which a person may change how they sign in


class OpenedSession(Struct, frozen=True, kw_only=True):
    secret: str  # of the cookie
    session: Session


class Sessions:
    def __init__(
        self, *, store: SessionStore, recorder: Recorder, clock: Clock, lifetimes: Callable[[], SessionLifetimes]
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock
        self._lifetimes = lifetimes

    async def open(
        self,
        user: User,
        auth: SignInMethod,
        *,
        origin: AuditOrigin,
        agent: str,
        replaces: str | None = None,
        mails: Sequence[OutboxMail] = (),
        second_factor: str = "",
        strength: SessionStrength = SessionStrength.FULL,
        stays: bool = False,
        proved: Sequence[str] = (),
    ) -> OpenedSession:
        """Open a session for a person who has just authenticated. `stays`: they chose to stay signed in.

        `proved` names what they authenticated with (`Session.proved`).
        """
        secret = new_secret()
        now, lifetimes = self._clock.now(), self._lifetimes()
        session = Session(
            digest=sha256(secret),
            session_id=new_record_id(now),
            user_id=user.user_id,
            rev=user.rev,
            auth=auth,
            second_factor=second_factor,
            strength=strength,
            created_at=now,
            proved_at=now,
            seen_at=now,
            idle_ends_at=now + lifetimes.idle,
            ends_at=now + (lifetimes.absolute if stays else min(lifetimes.absolute, lifetimes.unless_stay)),
            address=origin.address,
            agent=agent[:MAX_AGENT_LENGTH],
            proved=tuple(proved),
        )
        entry = self._recorder.record(
            AuditEvent.SIGNED_IN,
            origin,
            subject=user.user_id,
            details={"auth": auth.value, "strength": strength.value},
            personal={AGENT_KEY: session.agent} if session.agent else {},
        )
        old = None if replaces is None else sha256(replaces)
        stored_session = await self._store.open_session(session, entry, replaces=old, mails=mails)
        return OpenedSession(secret=secret, session=stored_session)

    async def find(self, secret: str) -> UserSession | None:
        """Return the session of this cookie; an unknown secret is never adopted (LG-01).

        None while the person is banned from the installation; the session goes on when the ban is over.
        """
        now = self._clock.now()
        signed_in = await self._store.find_session(sha256(secret), now)
        if signed_in is None or find_ban(signed_in.user.bans, now) is not None:
            return None
        await self.record_use(signed_in.session)
        return signed_in

    async def record_use(self, session: Session) -> None:
        """Record that the session was used, at most once a minute; it idles out later."""
        now = self._clock.now()
        if session.seen_at + LAST_SEEN_INTERVAL <= now:
            await self._store.update_last_seen(session.digest, now, now + self._lifetimes().idle)
            self._recorder.note_seen(session.user_id)

    def is_fresh(self, signed_in: UserSession) -> bool:
        """Return whether the person authenticated recently enough to change how they sign in.

        A provider may have answered without asking: who has a password or passkey here confirms with that. A code by
        text message is never enough (R11).
        """
        session = signed_in.session
        if may_be_silent(session.auth, signed_in.user) or session.is_confirmed_by_phone:
            return False
        return (
            session.strength is SessionStrength.FULL
            and self._clock.now() < session.proved_at + self._lifetimes().fresh
        )

    async def end(self, signed_in: UserSession, session_id: str, origin: AuditOrigin) -> bool:
        entry = self._recorder.record(AuditEvent.SIGNED_OUT, origin, subject=signed_in.user.user_id)
        return await self._store.end_session(signed_in.user.user_id, session_id, entry)

    async def end_as_administrator(self, user_id: str, session_id: str, origin: AuditOrigin) -> bool:
        """End another person's session, at an administrator's request."""
        entry = self._recorder.record(AuditEvent.SESSION_CLOSED, origin, subject=user_id)
        return await self._store.end_session(user_id, session_id, entry)

    async def of_user(self, user_id: str) -> Sequence[Session]:
        return await self._store.sessions_of_user(user_id, self._clock.now())

    async def sign_out_everywhere(self, user_id: str, origin: AuditOrigin, *, keep: Session | None = None) -> None:
        entry = self._recorder.record(AuditEvent.SIGNED_OUT_EVERYWHERE, origin, subject=user_id)
        await self._store.revoke_user(user_id, entry, keep=keep.digest if keep else None, now=self._clock.now())
