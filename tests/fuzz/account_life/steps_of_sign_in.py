"""Steps: register, sign in and out, in the browser and on the device."""

from typing import Final

from gatehouse.kernel.times import HOUR
from tests.fuzz.account_life.installation import NAMES, OTHER, SHOP, STEAM, VENDOR
from tests.fuzz.account_life.machine import (
    ADDRESSES,
    MAILBOXES,
    MachineBase,
    free_addresses,
    id_of,
    signed_in_people,
    used_addresses,
)
from tests.fuzz.account_life.model.records import GUEST, Identity
from tests.fuzz.account_life.steps import RARELY, step

A_WHILE: Final = 2 * HOUR  # after which sessions are no longer fresh, and a ban of an hour has ended
ADDRESS_OR_NONE: Final = (*ADDRESSES, "")
APPLICATION_OR_NONE: Final = (SHOP, OTHER, "")


class SignInSteps(MachineBase):
    @step(person=NAMES, address=free_addresses)
    def register(self, person: str, address: str) -> None:
        text = self.address(address)
        self.do(self.players[person].register(text))
        self.model.register(person, text, self.user_id_at(text))

    @step(person=NAMES, address=used_addresses)
    def sign_in(self, person: str, address: str) -> None:
        text = self.address(address)
        ended = self.do(self.players[person].sign_in(text, id_of(self.model.account_at(text))))
        assert ended == self.model.sign_in(person, text)

    @step(address=used_addresses)
    def sign_in_by_email(self, address: str) -> None:
        text, reader = self.address(address), MAILBOXES[address]
        ended = self.do(self.players[reader].sign_in_by_email(text, id_of(self.model.account_at(text))))
        assert ended == self.model.sign_in_by_email(reader, text)

    @step(person=NAMES, address=(*ADDRESSES, "", "", ""), provider=(VENDOR, VENDOR, STEAM))
    def sign_in_with_provider(self, person: str, address: str, provider: str = VENDOR) -> None:
        """The provider has verified an address of theirs, or names none; Steam never names one."""
        text = self.own_address(person, address) if provider == VENDOR else ""
        identity = Identity(provider, person)
        app = id_of(self.model.account_of(identity))
        ended = self.do(self.players[person].sign_in_with_provider(provider, text, app))
        assert ended == self.model.sign_in_with_provider(identity, text, self.user_id_of(identity))

    @step(weight=RARELY, person=signed_in_people)
    def sign_out(self, person: str) -> None:
        self.do(self.players[person].sign_out())
        del self.model.sessions[person]

    @step(person=NAMES, provider=(VENDOR, STEAM))
    def send_ticket(self, person: str, provider: str) -> None:
        identity = Identity(provider, person)
        app = id_of(self.model.account_of(identity))
        ended = self.do(self.players[person].send_ticket(provider, SHOP, app))
        assert ended == self.model.log_in_with(identity, SHOP, self.user_id_of(identity))

    @step(person=NAMES, application=APPLICATION_OR_NONE)
    def sign_in_as_guest(self, person: str, application: str) -> None:
        identity = Identity(GUEST, person)
        guest = id_of(self.model.account_of(identity))
        ended = self.do(self.players[person].sign_in_as_guest(application, guest))
        assert ended == self.model.log_in_with(identity, application, self.user_id_of(identity))

    @step(weight=RARELY)
    def wait(self) -> None:
        self.bench.wait(A_WHILE)
