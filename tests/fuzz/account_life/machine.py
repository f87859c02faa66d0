"""The base of the machine: players and administrators beside the model, and what steps choose from."""

from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from gatehouse.accounts.guests.model import GUEST_ISSUER, read_device_key
from gatehouse.accounts.model import User, login_key
from gatehouse.kernel.times import DAY
from gatehouse.storage.database import Storage
from tests.fuzz.account_life.administration import Administration
from tests.fuzz.account_life.installation import ANNA, NAMES, SAM, STEAM, VENDOR, Installation
from tests.fuzz.account_life.model.model import Model
from tests.fuzz.account_life.model.records import GUEST, Account, Identity
from tests.fuzz.account_life.players import Player
from tests.fuzz.stepped_service import SteppedService

T = TypeVar("T")

MAILBOXES: Final = {"anna": ANNA, "anna.new": ANNA, "sam": SAM}  # addresses, and who reads what is sent there
ADDRESSES: Final = tuple(MAILBOXES)


class MachineBase(RuleBasedStateMachine):
    """A step sends a request and takes the same step in the model; both must end alike."""

    bench: SteppedService
    installation: Installation

    def __init__(self) -> None:
        super().__init__()
        self.bench.wait(DAY)  # limits of attempts begin anew
        self.number = self.bench.number()
        self.model = Model(self.bench.now)
        self.players = {name: Player(name=name, installation=self.installation, number=self.number) for name in NAMES}
        self.administration: Administration = self.do(Administration.of(self.installation))

    def teardown(self) -> None:
        self.do(self.administration.admit_guests_to(""))
        for player in self.players.values():
            self.do(player.browser.client.aclose())

    def do(self, step: Coroutine[Any, Any, T]) -> T:
        return self.bench.run(step)

    @property
    def storage(self) -> Storage:
        return self.bench.service.services.storage

    # -- names: those of the model, and those of this life ---------------------------------------------

    def address(self, name: str) -> str:
        return f"{name}.{self.number}@studio.example" if name else ""

    def own_address(self, person: str, name: str) -> str:
        """Return the address if the person reads its mailbox."""
        return self.address(name) if MAILBOXES.get(name) == person else ""

    def names_of(self, identity: Identity) -> tuple[str, str]:
        """Return issuer and subject."""
        player = self.players[identity.person]
        return {
            VENDOR: (self.installation.issuer.issuer, player.subject),
            STEAM: (f"{self.installation.steam.base}/openid", player.steam_id),
            GUEST: (GUEST_ISSUER, read_device_key(player.device.public_key).subject),
        }[identity.provider]

    def user_id_at(self, address: str) -> str:
        return id_of(self.do(self.storage.accounts.user_by_login(login_key(address))))

    def user_id_of(self, identity: Identity) -> str:
        return id_of(self.do(self.storage.profile.user_by_identity(*self.names_of(identity))))

    def choose_account(self, number: int) -> Account:
        return self.model.live_accounts[number]


def id_of(account: Account | User | None) -> str:
    """Return the user ID, which is also what an authenticator app knows the account by."""
    return account.user_id if account else ""


def signed_in_people(machine: MachineBase) -> list[str]:
    return [person for person in NAMES if machine.model.session_of(person)]


def used_addresses(machine: MachineBase) -> list[str]:
    return [name for name in MAILBOXES if machine.model.account_at(machine.address(name))]


def free_addresses(machine: MachineBase) -> list[str]:
    return [name for name in MAILBOXES if not machine.model.account_at(machine.address(name))]


def account_numbers(machine: MachineBase) -> range:
    return range(len(machine.model.live_accounts))
