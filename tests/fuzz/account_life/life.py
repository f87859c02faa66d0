"""The whole machine: all steps, and the states that a life begins in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from tests.fuzz.account_life.checks import Checks
from tests.fuzz.account_life.installation import ANNA, SAM, SHOP, VENDOR
from tests.fuzz.account_life.model.records import Identity
from tests.fuzz.account_life.steps_of_account_page import AccountPageSteps
from tests.fuzz.account_life.steps_of_addresses import AddressSteps
from tests.fuzz.account_life.steps_of_administrators import AdministrationSteps
from tests.fuzz.account_life.steps_of_guests import GuestSteps

ANNAS: Final = Identity(VENDOR, ANNA)
SAMS: Final = Identity(VENDOR, SAM)


class Steps(GuestSteps, AddressSteps, AccountPageSteps, AdministrationSteps):
    """All steps."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a life begins, and the steps that fit: those that meet what is there."""

    begin: Callable[[Steps], None]
    fitting: frozenset[str] = frozenset()


STARTS: Final[dict[str, Start]] = {"nothing": Start(lambda _: None)}


def start(*fitting: Callable[..., None]) -> Callable[[Callable[[Steps], None]], None]:
    def decorate(begin: Callable[[Steps], None]) -> None:
        STARTS[begin.__name__] = Start(begin, frozenset(one.__name__ for one in fitting))

    return decorate


PROOFS: Final = (Steps.confirm, Steps.reset, Steps.sign_in_by_email)
ENDS_OF_GUESTS: Final = (Steps.end_guest_with_password, Steps.end_guest_with_provider)
WITH_WHAT_WAS_GIVEN_UP: Final = frozenset(
    one.__name__
    for one in (Steps.sign_in_with_provider, Steps.connect, Steps.register, Steps.confirm, Steps.change_address)
)
WITHOUT_PASSWORD: Final = (Steps.sign_in_with_provider, Steps.sign_in_by_email)


@start(*PROOFS, Steps.sign_in_with_provider, Steps.sign_in, Steps.invite)
def annas_address_was_imported_with_sams_methods(life: Steps) -> None:
    life.import_account(address="anna", password=SAM, identity=SAMS, totp=SAM, verified=False)


@start(*PROOFS, Steps.sign_in, Steps.set_address, Steps.change_address, Steps.sign_in_with_provider)
def sam_registered_annas_address(life: Steps) -> None:
    life.register(person=SAM, address="anna")
    life.sign_in(person=SAM, address="anna")


@start(*WITHOUT_PASSWORD, Steps.disconnect, Steps.change_address, Steps.delete_account, Steps.confirm, Steps.connect)
def anna_came_from_the_provider_and_is_banned(life: Steps) -> None:
    life.sign_in_with_provider(person=ANNA, address="anna")
    life.ban(number=0, scope=SHOP, by_moderator=True, ends=False, device=False)


@start(*ENDS_OF_GUESTS, Steps.sign_in_as_guest, Steps.ban, Steps.lift, Steps.edit)
def anna_has_an_account_and_a_guest(life: Steps) -> None:
    life.register(person=ANNA, address="anna")
    life.sign_in_as_guest(person=ANNA, application=SHOP)


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
        return WITH_WHAT_WAS_GIVEN_UP if self.model.has_ban_to_shed else self.fitting_to_start

    @initialize(start=st.sampled_from(list(STARTS)))
    def begin(self, *, start: str) -> None:
        STARTS[start].begin(self)
        self.fitting_to_start = STARTS[start].fitting
