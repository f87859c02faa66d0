"""Steps: prove an address, reset the password, change the address; at once, or with a link that is opened later."""

from typing import Final

from tests.fuzz.account_life.machine import (
    ADDRESSES,
    MAILBOXES,
    MachineBase,
    free_addresses,
    signed_in_people,
    used_addresses,
)
from tests.fuzz.account_life.model.records import CONFIRM, RESET, KeptLink
from tests.fuzz.account_life.outcomes import IN
from tests.fuzz.account_life.steps import RARELY, step

LINK_PAGES: Final = {RESET: "/forgot", CONFIRM: "/verify-email/again"}
CHANGE: Final = "change"


def kept_links(machine: MachineBase) -> range:
    return range(len(machine.model.kept_links))


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

    @step(weight=RARELY, does=(RESET, CONFIRM), address=used_addresses)
    def keep_link(self, does: str, address: str) -> None:
        """Ask for a link, and open it later."""
        text, reader = self.address(address), MAILBOXES[address]
        account = self.model.account_at(text)
        assert account is not None
        self.keep(
            KeptLink(does=does, account=account, address=text, reader=reader, text=self.ask(does, reader, text))
        )

    def ask(self, does: str, reader: str, address: str) -> str:
        return self.do(self.players[reader].ask_for_link(LINK_PAGES[does], address))

    def keep(self, link: KeptLink) -> None:
        if link.text:
            self.model.kept_links.append(link)

    @step(weight=RARELY, person=signed_in_people, address=ADDRESSES)
    def keep_link_to_change_address(self, person: str, address: str) -> None:
        text, session = self.address(address), self.model.sessions[person]
        link = self.do(self.players[person].ask_for_address(text))
        self.keep(
            KeptLink(
                does=CHANGE,
                account=session.account,
                address=text,
                reader=MAILBOXES[address],
                text=link,
                session=session,
            )
        )

    @step(number=kept_links)
    def open_kept_link(self, *, number: int) -> None:
        """It may be over, but does nothing else than when it was asked for."""
        link = self.model.kept_links.pop(number)
        player = self.players[link.reader]
        is_used = self.do((player.set_password_with if link.does == RESET else player.open_link)(link.text))
        assert not is_used or self.model.open_link(link), link

    @step(person=signed_in_people, address=mostly_free_addresses)
    def change_address(self, person: str, address: str) -> None:
        """The reader of the mailbox opens the link that anyone asked for."""
        text, reader = self.address(address), MAILBOXES[address]
        link = self.do(self.players[person].ask_for_address(text))
        is_changed = bool(link) and self.do(self.players[reader].open_link(link))
        assert is_changed == (self.model.change_address(person, reader, text) == IN)
