"""What administrators do, and the whole model."""

from gatehouse.audit.events import AuditEvent
from tests.fuzz.account_life.model.guests import Guests
from tests.fuzz.account_life.model.records import CHANGED, GUEST, UNPROVED_ORIGINS, Account, Identity, Key, Name


class Model(Guests):
    """What should be. A step returns how it ends, as the step of a player does."""

    @property
    def keys_of_shed_bans(self) -> set[Key]:
        """Return what banned people gave up and no account has now; the key of a former guest opens nothing."""
        held = {key for account in self.live_accounts for key in account.keys}
        held |= {Identity(GUEST, person) for person in self.retired_keys if self.has_retired_key(person)}
        return {key for ban in self.active_bans() for key in ban.keys - held}

    def import_account(self, user_id: str, account: Account) -> bool:
        if account.login and self.account_at(account.login) is not None:
            return False
        if any(self.account_of(one) is not None for one in account.identities):
            return False
        if self.refuses_new_account(account.keys):
            return False
        account.user_id = user_id
        self.add_identities(account, *account.identities)
        self.accounts.append(account)
        self.record(AuditEvent.USER_IMPORTED, account)
        self.copy_bans(account)
        return True

    def block(self, account: Account, *, blocked: bool) -> None:
        account.blocked = blocked
        if blocked:
            self.end_sessions(account)
        self.record(AuditEvent.USER_BLOCKED if blocked else AuditEvent.USER_UNBLOCKED, account)

    def end_sessions_as_administrator(self, account: Account) -> None:
        self.end_sessions(account)
        self.record(AuditEvent.SIGNED_OUT_EVERYWHERE, account)

    def reset_factors(self, account: Account) -> None:
        account.totp = ""
        self.end_sessions(account)
        self.record(AuditEvent.FACTORS_RESET, account)

    def invite(self, reader: Name, account: Account) -> bool:
        """An administrator sends a link to set a password; the reader of the mailbox opens it."""
        if account.password or account.verified:
            return self.reset(reader, account.login or "")
        if account.blocked:
            return False
        self.record(AuditEvent.USER_INVITED, account)
        account.password, account.browser = reader, ""
        if self.may_verify(reader, account):
            self.prove_address(reader, account, sets_password=True)
        self.record(AuditEvent.INVITATION_ACCEPTED, account)
        self.sign_in_with_new_password(reader, account)
        return True

    def set_address_as_administrator(self, account: Account, reader: Name, address: str, *, verified: bool) -> bool:
        if account.login == address and account.verified == verified:
            return True
        if account.login != address and self.account_at(address) is not None:
            return False
        if account.login != address or (account.verified and account.joined not in UNPROVED_ORIGINS):
            account.joined = CHANGED
        if account.owners is not None:  # who changed it vouches for the reader
            account.owners |= {reader}
        self.set_address(account, address, verified=verified)
        self.record(AuditEvent.USER_CHANGED, account)
        return True
