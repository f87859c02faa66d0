"""Sessions in browsers: whose they are, what they proved, and when they end."""

from gatehouse.audit.events import AuditEvent
from tests.fuzz.account_life.model.bans import Bans
from tests.fuzz.account_life.model.records import (
    FRESH_SECONDS,
    PASSWORD,
    SESSION_SECONDS,
    TOTP,
    Account,
    Identity,
    Name,
    Session,
)
from tests.fuzz.account_life.outcomes import BANNED, FACTOR, IN, REFUSED, STALE


class Sessions(Bans):
    def session_of(self, person: Name) -> Session | None:
        """Return the session of the person's browser, if it counts now."""
        session = self.sessions.get(person)
        if session is None or session.account.gone or session.account.blocked:
            return None
        is_live = session.rev == session.account.rev and self.now < session.since + SESSION_SECONDS
        return session if is_live and not self.is_banned(session.account) else None

    def is_fresh(self, session: Session) -> bool:
        """Who has a password confirms with that: the provider may not have asked."""
        is_silent = session.by_provider and session.account.password
        return not is_silent and self.now < session.since + FRESH_SECONDS

    def accept_first_factor(
        self, person: Name, account: Account, *proved: str | Identity, by_provider: bool = False
    ) -> str:
        if account.totp and account.totp != person:
            return FACTOR
        if self.is_banned(account):
            return BANNED
        before, methods = self.sessions.get(person), {*proved, *([TOTP] if account.totp else [])}
        if before is not None and before.account is account and before.rev == account.rev:
            methods |= before.proved
        self.sessions[person] = Session(
            account=account,
            rev=account.rev,
            since=self.now,
            proved=methods,
            by_provider=by_provider and not account.totp,
            has_second_factor=bool(account.totp),
        )
        self.record(AuditEvent.SIGNED_IN, account)
        return IN

    def sign_in_with_new_password(self, person: Name, account: Account) -> None:
        """The page that set it signs in; a person with a second factor leaves it there."""
        if not account.totp:
            self.accept_first_factor(person, account, PASSWORD)

    def end_sessions(self, account: Account, *, keep: Session | None = None) -> None:
        """And all tokens of the account."""
        account.rev += 1
        if keep is not None:
            keep.rev = account.rev

    def fresh_session(self, person: Name) -> Session | str:
        session = self.session_of(person)
        if session is None:
            return REFUSED
        return session if self.is_fresh(session) else STALE
