"""Registration and sign-in in a browser."""

from gatehouse.audit.events import AuditEvent
from tests.fuzz.account_life.installation import ARTISTS, CHEATERS, PROVIDER_TAG, PURCHASE, STEAM, VENDOR
from tests.fuzz.account_life.model.proofs import Proofs
from tests.fuzz.account_life.model.records import PASSWORD, REGISTERED, Account, Identity, Name
from tests.fuzz.account_life.outcomes import BANNED, IN, NO_MAIL, REFUSED


class SignIn(Proofs):
    def register(self, person: Name, address: str, user_id: str) -> None:
        if self.account_at(address) is None:
            self.add_account(
                user_id, AuditEvent.USER_REGISTERED, joined=REGISTERED, login=address, password=person, browser=person
            )

    def sign_in(self, person: Name, address: str) -> str:
        account = self.account_at(address)
        if account is None or account.password != person or account.blocked:
            return REFUSED
        return self.accept_first_factor(person, account, PASSWORD)

    def sign_in_by_email(self, person: Name, address: str) -> str:
        account = self.account_at(address)
        if account is None or account.blocked:
            return NO_MAIL
        if not account.verified and self.may_verify(person, account):
            self.record(AuditEvent.EMAIL_VERIFIED, account)
            self.prove_address(person, account)
        return self.accept_first_factor(person, account)

    def sign_in_with_provider(self, identity: Identity, address: str, user_id: str) -> str:
        """`user_id` is that of the account that the service made, if it made one."""
        account = self.account_of(identity)
        if account is None:
            ended = self.make_account(identity, address, user_id, in_browser=True)
            if ended != IN:
                return ended
            account = self.accounts[-1]
        if account.blocked:
            return REFUSED
        self.say_labels(account, identity, in_browser=True)
        return self.accept_first_factor(identity.person, account, identity, by_provider=True)

    def make_account(self, identity: Identity, address: str, user_id: str, *, in_browser: bool = False) -> str:
        """A person comes from a provider for the first time."""
        former = self.account_at(address) if address else None
        if former is not None and not self.may_lose_address(former):
            return REFUSED
        if self.refuses_new_account({identity, *([address] if address else [])}):
            return BANNED
        if former is not None:
            self.lose_address(former)
        account = self.add_account(
            user_id,
            AuditEvent.USER_REGISTERED,
            login=address or None,
            verified=bool(address),
            owners=frozenset({identity.person}),
        )
        self.add_identities(account, identity)
        self.say_labels(account, identity, in_browser=in_browser)
        self.copy_bans(account)
        return IN

    def add_identities(self, account: Account, *identities: Identity) -> None:
        """Sanctions come along, whatever account the identity was connected to (R14)."""
        account.identities.update(identities)
        account.sanctions.update(one for one in identities if any(one in two.sanctions for two in self.live_accounts))

    def say_labels(self, account: Account, identity: Identity, *, in_browser: bool = False) -> None:
        """The provider says which tags and purchases its person has; Steam says nothing in a browser."""
        if identity.provider == STEAM:
            if in_browser:
                return
            if identity.person in CHEATERS:
                account.sanctions.add(identity)
        said = {VENDOR: {PROVIDER_TAG} if identity.person in ARTISTS else set(), STEAM: {PURCHASE}}
        account.labels[identity] = set(said.get(identity.provider, ()))

    def may_lose_address(self, account: Account) -> bool:
        """A self-registered account that never proved its address and holds nothing (R10)."""
        holds = (
            account.identities
            or account.has_role
            or account.is_denied
            or account.is_manager
            or account.was_used
            or any(account is ban.account or account in ban.copies for ban in self.bans)
        )
        return account.joined == REGISTERED and not account.verified and not holds

    def lose_address(self, account: Account) -> None:
        account.login, account.lost, account.blocked = None, True, True
        self.end_sessions(account)
        self.record(AuditEvent.ADDRESS_LOST, account)
