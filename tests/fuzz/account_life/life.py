"""The whole machine: all steps, and the states that a life begins in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from tests.fuzz.account_life.checks import Checks
from tests.fuzz.account_life.installation import ANNA, OTHER, SAM, SHOP, STEAM, VENDOR
from tests.fuzz.account_life.model.records import GUEST, Identity
from tests.fuzz.account_life.steps_of_account_page import AccountPageSteps
from tests.fuzz.account_life.steps_of_addresses import AddressSteps
from tests.fuzz.account_life.steps_of_administrators import AdministrationSteps
from tests.fuzz.account_life.steps_of_guests import GuestSteps

ANNAS: Final = Identity(VENDOR, ANNA)
SAMS: Final = Identity(VENDOR, SAM)


class Steps(GuestSteps, AddressSteps, AccountPageSteps, AdministrationSteps):
    """All steps."""


Begin: TypeAlias = Callable[[Steps], None]


@dataclass(frozen=True, slots=True)
class Start:
    """How a life begins, and the steps that fit: those that meet what is there."""

    begin: Begin
    fitting: frozenset[str] = frozenset()


def names_of(*steps: Callable[..., None]) -> frozenset[str]:
    return frozenset(one.__name__ for one in steps)


STARTS: Final[dict[str, Start]] = {"nothing": Start(lambda _: None)}


def start(*fitting: Callable[..., None]) -> Callable[[Begin], Begin]:
    def decorate(begin: Begin) -> Begin:
        STARTS[begin.__name__] = Start(begin, names_of(*fitting))
        return begin

    return decorate


PROOFS: Final = (Steps.confirm, Steps.reset, Steps.sign_in_by_email)
ENDS_OF_GUESTS: Final = (Steps.upgrade_guest, Steps.merge_guest, Steps.end_guest_with_provider)
WITH_ADDRESS: Final = names_of(Steps.register, Steps.confirm, Steps.sign_in_by_email)
WITH_IDENTITY: Final = {
    VENDOR: names_of(Steps.sign_in_with_provider),
    STEAM: names_of(Steps.send_ticket, Steps.sign_in_with_provider),
    GUEST: names_of(Steps.sign_in_as_guest),
}
WITHOUT_PASSWORD: Final = (Steps.sign_in_with_provider, Steps.sign_in_by_email)


@start(*PROOFS, Steps.sign_in_with_provider, Steps.sign_in, Steps.invite)
def annas_address_was_imported_with_sams_methods(life: Steps) -> None:
    life.import_account(address="anna", password=SAM, identity=SAMS, totp=SAM, verified=False)


@start(*PROOFS, Steps.sign_in, Steps.set_address, Steps.change_address, Steps.sign_in_with_provider)
def sam_registered_annas_address(life: Steps) -> None:
    life.register(person=SAM, address="anna")
    life.sign_in(person=SAM, address="anna")


@start(Steps.disconnect, Steps.change_address, Steps.delete_account)
def anna_came_from_the_provider_and_is_banned(life: Steps) -> None:
    life.sign_in_with_provider(person=ANNA, address="anna")
    life.ban(number=0, scope=SHOP, by_moderator=True, ends=False, device=False)


@start(*WITHOUT_PASSWORD)
def banned_anna_has_another_address(life: Steps) -> None:
    anna_came_from_the_provider_and_is_banned(life)
    life.change_address(person=ANNA, address="anna.new")


@start(*WITHOUT_PASSWORD)
def banned_anna_erased_the_account(life: Steps) -> None:
    anna_came_from_the_provider_and_is_banned(life)
    life.delete_account(person=ANNA)


@start(*ENDS_OF_GUESTS, Steps.ban, Steps.edit)
def anna_has_an_account_and_a_guest(life: Steps) -> None:
    life.register(person=ANNA, address="anna")
    life.sign_in_as_guest(person=ANNA, application=SHOP)


@start(Steps.merge_guest)
def anna_has_an_account_and_a_restricted_guest(life: Steps) -> None:
    anna_has_an_account_and_a_guest(life)
    life.edit(number=0, tag=False, role=True, denied=False)  # which the restriction takes away
    life.edit(number=1, tag=True, role=False, denied=True)


@start(Steps.merge_guest)
def anna_has_an_account_and_a_banned_guest(life: Steps) -> None:
    anna_has_an_account_and_a_guest(life)
    life.ban(number=1, scope=OTHER, by_moderator=False, ends=False, device=False)


@start(*WITHOUT_PASSWORD, Steps.connect, Steps.disconnect, Steps.switch_totp, Steps.ban, Steps.make_manager)
def anna_is_signed_in(life: Steps) -> None:
    life.register(person=ANNA, address="anna")
    life.confirm(address="anna")
    life.sign_in(person=ANNA, address="anna")


@start(*ENDS_OF_GUESTS, Steps.sign_in_as_guest, Steps.admit_guests_to)
def a_guest_of_one_application(life: Steps) -> None:
    life.admit_guests_to(application=SHOP)
    life.sign_in_as_guest(person=ANNA, application=SHOP)


class AccountLife(Steps, Checks):
    fitting_to_start: frozenset[str] = frozenset()

    @property
    def fitting_steps(self) -> frozenset[str]:
        """What a banned person would do next, or what meets the start of this life."""
        given_up = self.model.keys_of_shed_bans
        if not given_up:
            return self.fitting_to_start
        kinds = {key.provider if isinstance(key, Identity) else "" for key in given_up}
        return frozenset().union(*(WITH_IDENTITY.get(kind, WITH_ADDRESS) for kind in kinds))

    @initialize(start=st.sampled_from(list(STARTS)))
    def begin(self, *, start: str) -> None:
        STARTS[start].begin(self)
        self.fitting_to_start = STARTS[start].fitting
