"""Steps on the account page: providers, password, second factor, deletion."""

from tests.fuzz.account_life.installation import STEAM, VENDOR
from tests.fuzz.account_life.machine import MachineBase, signed_in_people
from tests.fuzz.account_life.model.records import Account, Identity
from tests.fuzz.account_life.steps import RARELY, step


def connected_identities(machine: MachineBase) -> list[tuple[str, Identity]]:
    """Return whose browser shows which identities."""
    accounts = {person: machine.model.sessions[person].account for person in signed_in_people(machine)}
    return [(person, one) for person, account in accounts.items() for one in sorted(account.identities)]


class AccountPageSteps(MachineBase):
    def account_of(self, person: str) -> Account:
        return self.model.sessions[person].account

    @step(person=signed_in_people, provider=(VENDOR, STEAM))
    def connect(self, person: str, provider: str = VENDOR) -> None:
        ended = self.do(self.players[person].connect(provider))
        assert ended == self.model.connect(Identity(provider, person))

    @step(connected=connected_identities)
    def disconnect(self, connected: tuple[str, Identity]) -> None:
        person, identity = connected
        _, subject = self.names_of(identity)
        assert self.do(self.players[person].disconnect(subject)) == self.model.disconnect(person, identity)

    @step(person=signed_in_people)
    def change_password(self, person: str) -> None:
        is_first = not self.account_of(person).password
        assert self.do(self.players[person].change_password(is_first=is_first)) == self.model.change_password(person)

    @step(person=signed_in_people)
    def switch_totp(self, person: str) -> None:
        player, account = self.players[person], self.account_of(person)
        if account.totp:
            assert self.do(player.remove_totp()) == self.model.remove_totp(person)
        else:
            assert self.do(player.set_up_totp(account.user_id)) == self.model.set_up_totp(person)

    @step(weight=RARELY, person=signed_in_people)
    def sign_out_elsewhere(self, person: str) -> None:
        assert self.do(self.players[person].sign_out_elsewhere()) == self.model.sign_out_elsewhere(person)

    @step(weight=RARELY, person=signed_in_people)
    def delete_account(self, person: str) -> None:
        account = self.account_of(person)
        typed = account.login or self.nick_of(account)
        assert self.do(self.players[person].delete_account(typed)) == self.model.delete_account(person)

    def nick_of(self, account: Account) -> str:
        nick: str = self.do(self.administration.user("get", account.user_id))["data"]["nick"]
        return nick
