"""Proofs of an address: the first one ends what its browser did not prove itself (R10)."""

from gatehouse.audit.events import AuditEvent
from tests.fuzz.account_life.model.records import (
    PASSWORD,
    PROVED,
    TOTP,
    UNPROVED_ORIGINS,
    Account,
    Identity,
    Name,
)
from tests.fuzz.account_life.model.sessions import Sessions


class Proofs(Sessions):
    def may_verify(self, person: Name, account: Account) -> bool:
        """Whether a mailed proof counts: of an address that was set later, only after the second factor."""
        session = self.session_of(person)
        is_proved = session is not None and session.account is account and session.has_second_factor
        return is_proved or not account.needs_factor_for_address

    def prove_address(
        self, person: Name, account: Account, *, sets_password: bool = False, ends_sessions: bool = False
    ) -> None:
        """The first proof ends what this browser did not prove itself (R10)."""
        session = self.session_of(person)
        keep = session if session is not None and session.account is account else None
        is_first = not account.address_is_settled
        if is_first:
            self.end_unproved(person, account, keep.proved if keep else set(), sets_password=sets_password)
            account.owners = frozenset({person})
        if is_first or ends_sessions:
            self.end_sessions(account, keep=None if ends_sessions else keep)
        account.verified = True
        self.note_proof(account)
        self.copy_bans(account)

    def note_proof(self, account: Account) -> None:
        if account.joined in UNPROVED_ORIGINS:
            account.joined = PROVED

    def end_unproved(
        self, person: Name, account: Account, proved: set[str | Identity], *, sets_password: bool
    ) -> None:
        before = (account.password, set(account.identities), account.totp)
        if not sets_password and PASSWORD not in proved and account.browser != person:
            account.password = ""
        for identity in account.identities - proved:
            self.drop_identity(account, identity)
        if TOTP not in proved:
            account.totp = ""
        if before != (account.password, account.identities, account.totp):
            self.record(AuditEvent.METHODS_ENDED, account)

    def drop_identity(self, account: Account, identity: Identity) -> None:
        account.identities.discard(identity)
        account.labels.pop(identity, None)
        self.give_up(account, {identity})
