"""Steps of administrators and moderators: import, edit, ban, lift, block, erase."""

from typing import Final

import msgspec

from gatehouse.kernel.times import HOUR
from tests.fuzz.account_life.installation import NAMES, SHOP, STEAM, VENDOR
from tests.fuzz.account_life.machine import ADDRESSES, MAILBOXES, MachineBase, account_numbers, used_addresses
from tests.fuzz.account_life.model.records import IMPORTED, SCOPES, Account, Identity
from tests.fuzz.account_life.steps import EITHER, RARELY, step
from tests.fuzz.account_life.steps_of_sign_in import ADDRESS_OR_NONE

TAG: Final = "vip"
BAN_SECONDS: Final = HOUR
PERSON_OR_NONE: Final = (*NAMES, "")


def bans_on_accounts(machine: MachineBase) -> list[tuple[Account, str]]:
    """Return whom each active ban is on, in which scope: its person, erased or not, and accounts with a copy."""
    return [
        (account, ban.scope)
        for ban in machine.model.active_bans()
        for account in (ban.account, *ban.accounts_with_copy)
    ]


def people_without_rights(machine: MachineBase) -> list[str]:
    return [person for person, jwt in machine.model.jwts.items() if not jwt.account.is_manager]


def ban_numbers(machine: MachineBase) -> range:
    return range(len(bans_on_accounts(machine)))


class AdministrationSteps(MachineBase):
    @step(
        address=ADDRESS_OR_NONE,
        password=PERSON_OR_NONE,
        identity=(*(Identity(provider, person) for provider in (VENDOR, STEAM) for person in NAMES), None),
        totp=(*PERSON_OR_NONE, ""),
        verified=EITHER,
    )
    def import_account(
        self, *, address: str, password: str, identity: Identity | None, totp: str, verified: bool
    ) -> None:
        """An account of a system in which anyone may have registered the address."""
        if not address and identity is None:
            return
        account = Account(
            user_id="",
            made_at=self.model.now,
            joined=IMPORTED,
            login=self.address(address) or None,
            verified=verified and bool(address),
            password=password,
            identities=set() if identity is None else {identity},
            totp=totp,
        )
        is_imported = self.do(self.administration.import_account(self.bench.number(), self.entry_of(account)))
        user_id = self.user_id_at(account.login) if account.login else self.user_id_of(*account.identities)
        assert self.model.import_account(user_id, account) == is_imported
        if is_imported and totp:
            self.players[totp].secrets[user_id] = self.players[totp].former_secret

    def entry_of(self, account: Account) -> str:
        """Return a line of the file."""
        identities = [{"provider": one.provider, "subject": self.names_of(one)[1]} for one in account.identities]
        entry: dict[str, object] = {
            "login": account.login,
            "nick": "Imported",
            "email_verified": account.verified,
            "identities": identities,
        }
        if account.password:
            passwords = self.bench.service.services.accounts.passwords
            entry["password_hash"] = self.do(passwords.hash(self.players[account.password].password))
        if account.totp:
            entry["totp_secret"] = self.players[account.totp].former_secret
        return msgspec.json.encode(entry).decode()

    @step(number=account_numbers, address=ADDRESSES, verified=EITHER)
    def set_address(self, *, number: int, address: str, verified: bool) -> None:
        account, text = self.choose_account(number), self.address(address)
        answer = self.do(self.administration.user("save", account.user_id, login=text, email_verified=verified))
        may = self.model.set_address_as_administrator(account, MAILBOXES[address], text, verified=verified)
        assert (answer is not None) == may

    @step(number=account_numbers, scope=SCOPES, by_moderator=EITHER, ends=EITHER, device=EITHER)
    def ban(self, *, number: int, scope: str, by_moderator: bool, ends: bool, device: bool) -> None:
        account, by_moderator = self.choose_account(number), by_moderator and scope == SHOP
        until = self.model.now + BAN_SECONDS if ends else 0
        by = self.administration.moderator if by_moderator else self.administration.administrator
        done = self.do(self.administration.ban(account.user_id, scope, by=by, until=until, device=device))
        assert done == self.model.ban(account, scope, by_moderator=by_moderator, until=until, device=device)

    @step(number=ban_numbers)
    def lift(self, *, number: int) -> None:
        account, scope = bans_on_accounts(self)[number]
        assert self.do(self.administration.lift(account.user_id, scope)) == self.model.lift(account, scope)

    @step(weight=RARELY, number=account_numbers)
    def switch_block(self, *, number: int) -> None:
        account = self.choose_account(number)
        if account.lost:
            return
        blocked = not account.blocked
        assert self.do(self.administration.user("block" if blocked else "unblock", account.user_id)) is not None
        self.model.block(account, blocked=blocked)

    @step(weight=RARELY, number=account_numbers)
    def end_sessions(self, *, number: int) -> None:
        account = self.choose_account(number)
        assert self.do(self.administration.user("end_sessions", account.user_id)) is not None
        self.model.end_sessions_as_administrator(account)

    @step(weight=RARELY, number=account_numbers)
    def reset_factors(self, *, number: int) -> None:
        account = self.choose_account(number)
        assert self.do(self.administration.user("reset_factors", account.user_id, reason="lost")) is not None
        self.model.reset_factors(account)

    @step(weight=RARELY, address=used_addresses)
    def invite(self, *, address: str) -> None:
        """Send a link to set a password to the account of the address."""
        text, reader = self.address(address), MAILBOXES[address]
        account, player = self.model.account_at(text), self.players[reader]
        assert account is not None
        self.do(player.messages_to(text))
        self.do(self.administration.user("invite", account.user_id))
        is_set = self.do(player.set_password_with(self.do(player.link_to(text))))
        assert is_set == self.model.invite(reader, account)

    @step(person=people_without_rights, number=account_numbers)
    def try_to_administer(self, *, person: str, number: int) -> None:
        """A person asks for what only administrators may do, about their own account or another one."""
        player, account = self.players[person], self.choose_account(number)
        assert self.do(self.administration.accepted_of(player.jwt, player.factor, account.user_id)) == []

    @step(weight=RARELY, number=account_numbers)
    def erase(self, *, number: int) -> None:
        account = self.choose_account(number)
        assert self.do(self.administration.user("erase", account.user_id)) is not None
        self.model.erase(account)

    @step(number=account_numbers, tag=EITHER, role=EITHER, denied=EITHER)
    def edit(self, *, number: int, tag: bool, role: bool, denied: bool) -> None:
        """Set what an administrator sets by hand; the tags of providers stay."""
        account, own = self.choose_account(number), {TAG} if tag else set[str]()
        self.do(self.administration.edit(account.user_id, sorted(own), has_role=role, is_denied=denied))
        account.tags, account.has_role, account.is_denied = own, role, denied

    @step(weight=RARELY, number=account_numbers)
    def make_manager(self, *, number: int) -> None:
        """Of the project: no moderator can ban them."""
        account = self.choose_account(number)
        if not account.is_guest:
            self.do(self.administration.make_manager(account.user_id))
            account.is_manager = True

    @step(weight=RARELY, application=(SHOP, ""))
    def admit_guests_to(self, *, application: str) -> None:
        self.do(self.administration.admit_guests_to(application))
        self.model.guests_only_in = application
