"""Links to mailboxes: confirm an address, reset the password, change the address."""

from gatehouse.audit.events import AuditEvent
from tests.fuzz.account_life.model.games import Games
from tests.fuzz.account_life.model.records import RESET, Account, KeptLink, Name, Session
from tests.fuzz.account_life.outcomes import IN, REFUSED


class Addresses(Games):
    def confirm(self, person: Name, address: str) -> bool:
        account = self.account_at(address)
        if account is None or account.verified or account.blocked or not account.password:
            return False
        if not self.may_verify(person, account):
            return False
        own = self.session_of(person)
        is_elsewhere = account.browser not in {"", person} and (own is None or own.account is not account)
        signs_in = is_elsewhere or account.browser == person
        if is_elsewhere:
            account.password, account.browser = person, ""
        self.prove_address(person, account, sets_password=is_elsewhere)
        self.record(AuditEvent.EMAIL_VERIFIED, account)
        if signs_in:
            self.sign_in_with_new_password(person, account)
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
        self.sign_in_with_new_password(person, account)
        return True

    def open_link(self, link: KeptLink) -> bool:
        """It is still about the account and address that it was mailed for."""
        if link.session is not None:
            return self.finish_change(link.session, link.reader, link.address) == IN
        if self.account_at(link.address) is not link.account:
            return False
        step = self.reset if link.does == RESET else self.confirm
        return step(link.reader, link.address)

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
        return session if isinstance(session, str) else self.finish_change(session, reader, address)

    def finish_change(self, asked: Session, reader: Name, address: str) -> str:
        account, own = asked.account, self.session_of(reader)
        if account.login == address or self.account_at(address) is not None:
            return REFUSED
        if own is None or own.account is not account or not (own is asked or own.has_second_factor):
            return REFUSED
        if account.owners is None:  # it ends nothing (R10): who has a way in keeps it
            account.owners = frozenset(account.entrants)
        account.owners |= {reader}
        self.note_proof(account)
        self.set_address(account, address, verified=True)
        self.record(AuditEvent.EMAIL_CHANGED, account)
        return IN
