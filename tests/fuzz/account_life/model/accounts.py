"""The accounts of a life, and the audit records that its steps must make."""

from collections.abc import Callable

from gatehouse.audit.events import AuditEvent
from tests.fuzz.account_life.model.records import Account, Ban, Identity, KeptLink, Name, Session, Token


class Accounts:
    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self.accounts: list[Account] = []
        self.sessions: dict[Name, Session] = {}
        self.jwts: dict[Name, Token] = {}  # the newest one on each device
        self.grants: dict[tuple[Name, str], Token] = {}  # the newest one of each browser, by application
        self.bans: list[Ban] = []
        self.kept_links: list[KeptLink] = []
        self.retired_keys: dict[Name, Account] = {}  # of the devices of former guests
        self.guests_only_in = ""  # an application
        self.records: list[tuple[AuditEvent, Account]] = []  # that the last step must have made

    @property
    def now(self) -> int:
        return self._now()

    @property
    def live_accounts(self) -> list[Account]:
        return [account for account in self.accounts if not account.gone]

    def account_at(self, address: str) -> Account | None:
        return next((one for one in self.live_accounts if one.login == address), None)

    def account_of(self, identity: Identity) -> Account | None:
        return next((one for one in self.live_accounts if identity in one.identities), None)

    def record(self, event: AuditEvent, account: Account) -> None:
        self.records.append((event, account))

    def add_account(self, user_id: str, event: AuditEvent, **fields: object) -> Account:
        account = Account(user_id=user_id, made_at=self.now, **fields)  # type: ignore[arg-type]
        self.accounts.append(account)
        self.record(event, account)
        return account
