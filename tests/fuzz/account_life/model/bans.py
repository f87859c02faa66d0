"""Bans: where they count, and how they follow a person to other accounts (R10, R14)."""

from collections.abc import Iterator

from gatehouse.audit.events import AuditEvent
from tests.fuzz.account_life.model.accounts import Accounts
from tests.fuzz.account_life.model.records import INSTALLATION, Account, Ban, Key, Name


class Bans(Accounts):
    def active_bans(self) -> Iterator[Ban]:
        return (ban for ban in self.bans if ban.is_active(self.now))

    def bans_on(self, account: Account) -> list[Ban]:
        return [ban for ban in self.active_bans() if ban.is_on(account)]

    def is_banned(self, account: Account, application: str = "", device: Name = "") -> bool:
        """Whether a ban of the account or of the person's device counts there."""
        found = [*self.bans_on(account), *self.bans_of_devices(account, {device})]
        return any(ban.is_about(application) for ban in found)

    def bans_of_devices(self, account: Account, devices: set[Name]) -> list[Ban]:
        """Return the bans of devices that count for this account."""
        return [ban for ban in self.active_bans() if ban.devices & devices and ban.could_be_on(account)]

    def refuses_new_account(self, keys: set[Key]) -> bool:
        return any(ban.scope == INSTALLATION and ban.keys & keys for ban in self.active_bans())

    def give_up(self, account: Account, keys: set[Key]) -> None:
        """The bans of the account go on for what it gives up."""
        for ban in self.bans_on(account):
            ban.keys |= keys

    def copy_bans(self, account: Account) -> None:
        """The account has the bans of what it has got."""
        for ban in self.active_bans():
            if account is ban.account or account in ban.copies or not ban.could_be_on(account):
                continue
            if ban.keys & account.keys:
                ban.copies[account] = True
                self.record(AuditEvent.USER_BANNED, account)

    def ban(self, account: Account, scope: str, *, by_moderator: bool, until: int, device: bool) -> bool:
        if by_moderator and (account.is_manager or (device and self.managers_on_devices(account))):
            return False
        devices = frozenset(account.devices if device else ())
        new = Ban(account=account, scope=scope, by_moderator=by_moderator, until=until, devices=devices)
        for old in [one for one in self.bans_on(account) if one.scope == scope]:
            if old.account is account:
                new.keys, new.seen, new.copies, old.lifted = old.keys, old.seen, old.copies, True
            else:
                old.copies[account] = False
        self.bans.append(new)
        self.record(AuditEvent.USER_BANNED, account)
        return True

    def managers_on_devices(self, account: Account) -> bool:
        return any(one.is_manager and one.devices & account.devices for one in self.live_accounts)

    def lift(self, account: Account, scope: str) -> bool:
        found = [one for one in self.active_bans() if one.is_on(account) and one.scope == scope]
        for ban in found:
            self.record(AuditEvent.USER_BAN_LIFTED, account)
            if ban.account is account:
                ban.lifted = True
                for copy in ban.accounts_with_copy:
                    self.record(AuditEvent.USER_BAN_LIFTED, copy)
            else:
                ban.copies[account] = False
        return bool(found)
