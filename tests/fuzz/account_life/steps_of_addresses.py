"""Steps: prove an address, reset the password, change the address."""

from tests.fuzz.account_life.machine import (
    ADDRESSES,
    MAILBOXES,
    MachineBase,
    free_addresses,
    signed_in_people,
    used_addresses,
)
from tests.fuzz.account_life.outcomes import IN
from tests.fuzz.account_life.steps import step


def mostly_free_addresses(machine: MachineBase) -> list[str]:
    return [*ADDRESSES, *2 * free_addresses(machine)]


class AddressSteps(MachineBase):
    @step(address=used_addresses)
    def confirm(self, address: str) -> None:
        text, reader = self.address(address), MAILBOXES[address]
        assert self.do(self.players[reader].confirm(text)) == self.model.confirm(reader, text)

    @step(address=used_addresses)
    def reset(self, address: str) -> None:
        text, reader = self.address(address), MAILBOXES[address]
        assert self.do(self.players[reader].reset(text)) == self.model.reset(reader, text)

    @step(person=signed_in_people, address=mostly_free_addresses)
    def change_address(self, person: str, address: str) -> None:
        """The reader of the mailbox opens the link that anyone asked for."""
        text, reader = self.address(address), MAILBOXES[address]
        link = self.do(self.players[person].ask_for_address(text))
        is_changed = bool(link) and self.do(self.players[reader].open_link(link))
        assert is_changed == (self.model.change_address(person, reader, text) == IN)
