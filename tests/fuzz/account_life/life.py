"""The whole machine: all steps, and the states that a life begins in."""

from collections.abc import Callable
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


def anna_is_signed_in(life: Steps) -> None:
    life.register(person=ANNA, address="anna")
    life.confirm(address="anna")
    life.sign_in(person=ANNA, address="anna")


def sam_registered_annas_address(life: Steps) -> None:
    life.register(person=SAM, address="anna")
    life.sign_in(person=SAM, address="anna")


def annas_address_was_imported_with_sams_methods(life: Steps) -> None:
    life.import_account(address="anna", password=SAM, identity=SAMS, totp="", verified=False)


def anna_came_from_the_provider_and_is_banned(life: Steps) -> None:
    life.sign_in_with_provider(person=ANNA, address="anna")
    life.ban(number=0, scope=SHOP, by_moderator=True, ends=False, device=False)


def anna_has_an_account_and_a_guest(life: Steps) -> None:
    life.register(person=ANNA, address="anna")
    life.sign_in_as_guest(person=ANNA, application=SHOP)


def a_guest_of_one_application(life: Steps) -> None:
    life.admit_guests_to(application=SHOP)
    life.sign_in_as_guest(person=ANNA, application=SHOP)


STARTS: Final[dict[str, Callable[[Steps], None]]] = {
    start.__name__: start
    for start in (
        anna_is_signed_in,
        sam_registered_annas_address,
        annas_address_was_imported_with_sams_methods,
        anna_came_from_the_provider_and_is_banned,
        anna_has_an_account_and_a_guest,
        a_guest_of_one_application,
    )
}


class AccountLife(Steps, Checks):
    @initialize(start=st.sampled_from([*STARTS, ""]))
    def begin(self, *, start: str) -> None:
        if start:
            STARTS[start](self)
