"""The account page: providers, password, second factor, deletion."""

from gatehouse.audit.events import AuditEvent
from tests.fuzz.account_life.model.addresses import Addresses
from tests.fuzz.account_life.model.records import PASSWORD, TOTP, Account, Identity, Name
from tests.fuzz.account_life.outcomes import IN, REFUSED, STALE


class AccountPage(Addresses):
    def connect(self, identity: Identity) -> str:
        session = self.fresh_session(identity.person)
        if isinstance(session, str):
            return session
        account = session.account
        if not account.address_is_settled or self.account_of(identity) is not None:
            return REFUSED
        self.add_identities(account, identity)
        if account.owners is not None:
            account.owners |= {identity.person}
        self.copy_bans(account)
        self.say_labels(account, identity, in_browser=True)
        self.record(AuditEvent.IDENTITY_LINKED, account)
        return IN

    def disconnect(self, person: Name, identity: Identity) -> str:
        session = self.fresh_session(person)
        if isinstance(session, str):
            return session
        account = session.account
        others = account.identities - {identity}
        if not (others or (account.login and (account.password or account.verified))):
            return REFUSED
        self.drop_identity(account, identity)
        self.record(AuditEvent.IDENTITY_UNLINKED, account)
        return IN

    def change_password(self, person: Name) -> str:
        """It keeps this session and ends every other one, with all tokens."""
        session = self.session_of(person)
        if session is None:
            return REFUSED
        account = session.account
        if account.password not in ("", person):
            return REFUSED
        if not account.password and not self.is_fresh(session):
            return STALE
        account.password, account.browser = person, ""
        session.proved.add(PASSWORD)
        self.end_sessions(account, keep=session)
        self.record(AuditEvent.PASSWORD_CHANGED, account)
        return IN

    def set_up_totp(self, person: Name) -> str:
        session = self.fresh_session(person)
        if isinstance(session, str):
            return session
        account = session.account
        if account.totp or not account.address_is_settled:
            return REFUSED
        account.totp = person
        session.proved.add(TOTP)
        self.record(AuditEvent.FACTOR_ADDED, account)
        return IN

    def remove_totp(self, person: Name) -> str:
        session = self.fresh_session(person)
        if isinstance(session, str):
            return session
        session.account.totp = ""
        self.record(AuditEvent.FACTOR_REMOVED, session.account)
        return IN

    def sign_out_elsewhere(self, person: Name) -> str:
        session = self.fresh_session(person)
        if isinstance(session, str):
            return session
        self.end_sessions(session.account, keep=session)
        self.record(AuditEvent.SIGNED_OUT_EVERYWHERE, session.account)
        return IN

    def delete_account(self, person: Name) -> str:
        session = self.fresh_session(person)
        if isinstance(session, str):
            return session
        self.erase(session.account)
        return IN

    def erase(self, account: Account) -> None:
        self.give_up(account, account.keys)
        for ban in self.active_bans():
            if ban.account is account:
                ban.lifted = not (ban.keys or ban.devices)  # no one could match it
        account.gone = True
        self.record(AuditEvent.USER_ERASED, account)
