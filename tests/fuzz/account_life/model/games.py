"""Logins on a device: with a password, a ticket of a platform, or the key of a guest."""

from gatehouse.audit.events import AuditEvent
from tests.fuzz.account_life.model.records import GUEST, Account, Identity, Name, Token
from tests.fuzz.account_life.model.sign_in import SignIn
from tests.fuzz.account_life.outcomes import BANNED, FACTOR, IN, REFUSED


class Games(SignIn):
    def admits_guests(self, application: str) -> bool:
        return self.guests_only_in in ("", application)

    def has_retired_key(self, person: Name) -> bool:
        """Whether the guest of their device is an account now, which was not erased."""
        return person in self.retired_keys and not self.retired_keys[person].gone

    def may_use(self, account: Account, application: str, device: Name = "") -> str:
        """Whether the account may sign in to the application, on that device."""
        if self.is_banned(account, application, device):
            return BANNED
        return REFUSED if account.is_guest and not self.admits_guests(application) else IN

    def log_in(self, person: Name, address: str, application: str) -> str:
        account = self.account_at(address)
        if account is None or account.password != person or account.blocked:
            return REFUSED
        return self.end_login(person, account, application)

    def end_login(self, person: Name, account: Account, application: str) -> str:
        """What follows the first factor in a login without a browser."""
        if account.totp and account.totp != person:
            return FACTOR
        account.devices.add(person)
        ended = self.may_use(account, application, person)
        if ended == IN:
            account.was_used = True
            self.jwts[person] = Token(account=account, rev=account.rev)
            self.record(AuditEvent.LOGGED_IN, account)
        return ended

    def log_in_with(self, identity: Identity, application: str, user_id: str) -> str:
        """A ticket of a platform, or a device key."""
        account = self.account_of(identity)
        if identity.provider == GUEST and not self.admits_guests(application):
            return REFUSED
        if account is None:
            if identity.provider == GUEST and self.has_retired_key(identity.person):
                return REFUSED
            ended = self.make_account(identity, "", user_id)
            if ended != IN:
                return ended
            account = self.accounts[-1]
        if account.blocked:
            return REFUSED
        self.say_labels(account, identity)
        return self.end_login(identity.person, account, application)
