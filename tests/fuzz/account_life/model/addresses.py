"""Links to mailboxes: confirm an address, reset the password, change the address."""

from gatehouse.audit.events import AuditEvent
from tests.fuzz.account_life.model.games import Games
from tests.fuzz.account_life.model.records import Account, Name
from tests.fuzz.account_life.outcomes import IN, REFUSED


class Addresses(Games):
    def confirm(self, person: Name, address: str) -> bool:
        account = self.account_at(address)
        if account is None or account.verified or account.blocked or not account.password:
            return False
        if not self.may_verify(person, account):
            return False
        self.prove_address(person, account)
        self.record(AuditEvent.EMAIL_VERIFIED, account)
        return True

    def reset(self, person: Name, address: str) -> bool:
        account = self.account_at(address)
        if account is None or account.blocked:
            return False
        account.password, account.browser = person, ""
        if self.may_verify(person, account):
            self.prove_address(person, account, sets_password=True, ends_sessions=True)
        else:
            self.end_sessions(account)
        self.record(AuditEvent.PASSWORD_RESET, account)
        return True

    def set_address(self, account: Account, address: str, *, verified: bool) -> None:
        """Its bans go on for the address that it gives up."""
        former = account.login if account.verified else None
        account.login, account.verified = address, verified
        if former is not None and former != (address if verified else None):
            self.give_up(account, {former})
        self.copy_bans(account)

    def change_address(self, person: Name, reader: Name, address: str) -> str:
        """A person asks for another address, and the reader of its mailbox opens the link in their own browser."""
        session = self.fresh_session(person)
        if isinstance(session, str):
            return session
        account, own = session.account, self.session_of(reader)
        if account.login == address or self.account_at(address) is not None:
            return REFUSED
        may = own is not None and own.account is account and (reader == person or own.has_second_factor)
        if not may:
            return REFUSED
        if account.owners is None:  # it ends nothing (R10): who has a way in keeps it
            account.owners = frozenset(account.entrants)
        account.owners |= {reader}
        self.note_proof(account)
        self.set_address(account, address, verified=True)
        self.record(AuditEvent.EMAIL_CHANGED, account)
        return IN
