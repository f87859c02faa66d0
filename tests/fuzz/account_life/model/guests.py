"""The ends of a guest: upgraded to an account, or merged into one (R10)."""

from gatehouse.audit.events import AuditEvent
from tests.fuzz.account_life.installation import PURCHASE
from tests.fuzz.account_life.model.account_page import AccountPage
from tests.fuzz.account_life.model.records import GUEST, Account, Identity, Name
from tests.fuzz.account_life.outcomes import IN, REFUSED


class Guests(AccountPage):
    def is_new(self, account: Account, since: int) -> bool:
        """Whether the account was made since then and holds nothing yet."""
        holds = (
            account.has_role
            or account.is_manager
            or account.totp
            or account.took_over
            or PURCHASE in account.all_labels
            or any(account is ban.account or account in ban.copies for ban in self.bans)
        )
        return account.made_at > since and not holds

    def end_guest(self, person: Name, application: str, since: int) -> str:
        """The person has signed in, confirms, and the game takes its answer."""
        session = self.sessions[person]
        account, guest = session.account, self.account_of(Identity(GUEST, person))
        assert guest is not None
        if session.by_provider and account.password:  # the provider may not have asked
            return REFUSED
        if self.may_use(account, application) != IN:
            return REFUSED
        if guest.login or len(guest.identities) > 1:  # it would lose them, or is the account itself
            return REFUSED
        is_new = self.is_new(account, since)
        in_force = [*self.bans_on(guest), *self.bans_on(account), *self.bans_of_devices(guest, guest.devices)]
        if in_force and not is_new:  # wherever they count
            return REFUSED
        kept = self.upgrade(guest, account) if is_new else self.merge(guest, account)
        self.retired_keys[person] = kept
        self.record(AuditEvent.GAME_CONFIRMED, kept)
        kept.was_used = kept.took_over = True
        self.end_login(person, kept, application)
        return IN

    def upgrade(self, guest: Account, new: Account) -> Account:
        """The guest keeps its ID and becomes the account."""
        self.give_up(guest, set(guest.identities))
        for name in ("joined", "login", "verified", "password", "browser", "identities", "totp", "owners"):
            setattr(guest, name, getattr(new, name))
        guest.labels, guest.tags = new.labels, guest.tags | new.tags
        guest.sanctions |= new.sanctions
        guest.rev += 1
        for session in self.sessions.values():
            if session.account is new:
                session.account, session.rev = guest, guest.rev
        for link in self.kept_links:
            link.account = guest if link.account is new else link.account
        new.gone = True
        self.record(AuditEvent.ACCOUNT_UPGRADED, guest)
        return guest

    def merge(self, guest: Account, account: Account) -> Account:
        """What the guest has is united with what the account has; a restriction beats a right."""
        account.tags |= guest.tags
        account.sanctions |= guest.sanctions
        account.has_role |= guest.has_role
        account.is_denied |= guest.is_denied
        for ban in self.bans:  # none is active, and an exemption stays one
            if guest in ban.copies:
                ban.copies.setdefault(account, ban.copies.pop(guest))
        guest.gone = True
        self.record(AuditEvent.ACCOUNT_MERGED, account)
        return account
