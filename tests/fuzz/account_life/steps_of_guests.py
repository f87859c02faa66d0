"""Steps: the ends of a guest, upgraded to a new account or merged into another one."""

from tests.fuzz.account_life.installation import NAMES, VENDOR
from tests.fuzz.account_life.machine import MachineBase, free_addresses, id_of, used_addresses
from tests.fuzz.account_life.model.records import GUEST, Identity
from tests.fuzz.account_life.outcomes import IN
from tests.fuzz.account_life.steps import step
from tests.fuzz.account_life.steps_of_sign_in import ADDRESS_OR_NONE, APPLICATION_OR_NONE, SignInSteps


def people_with_a_guest(machine: MachineBase) -> list[str]:
    found = {person: machine.model.account_of(Identity(GUEST, person)) for person in NAMES}
    return [person for person, guest in found.items() if guest is not None and not guest.blocked]


class GuestSteps(SignInSteps):
    @step(person=people_with_a_guest, address=free_addresses, application=APPLICATION_OR_NONE)
    def upgrade_guest(self, person: str, address: str, application: str) -> None:
        """Register an account while the game waits."""
        self.end_guest_with_password(person, address, application, registers=True)

    @step(person=people_with_a_guest, address=used_addresses, application=APPLICATION_OR_NONE)
    def merge_guest(self, person: str, address: str, application: str) -> None:
        """Sign in to an account that was there before."""
        self.end_guest_with_password(person, address, application)

    def end_guest_with_password(
        self, person: str, address: str, application: str, *, registers: bool = False
    ) -> None:
        player, text, since = self.players[person], self.address(address), self.model.now
        game = self.do(player.begin_upgrade(application))
        if registers:
            self.register(person, address)
        ended = self.do(player.upgrade_with_password(game, text, id_of(self.model.account_at(text))))
        expected = self.model.sign_in(person, text)
        assert ended == (self.model.end_guest(person, application, since) if expected == IN else expected)

    @step(person=people_with_a_guest, address=ADDRESS_OR_NONE, application=APPLICATION_OR_NONE)
    def end_guest_with_provider(self, person: str, address: str, application: str) -> None:
        player, text, since = self.players[person], self.own_address(person, address), self.model.now
        identity = Identity(VENDOR, person)
        game = self.do(player.begin_upgrade(application))
        ended = self.do(player.upgrade_with_provider(game, text, id_of(self.model.account_of(identity))))
        guest, made = self.model.account_of(Identity(GUEST, person)), self.user_id_of(identity)
        # An account that was made just now and became the guest's has no ID any more.
        expected = self.model.sign_in_with_provider(identity, text, "" if made == id_of(guest) else made)
        assert ended == (self.model.end_guest(person, application, since) if expected == IN else expected)
