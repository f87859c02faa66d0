"""The life of accounts against a model: any order of steps, and those orders that were bugs."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from gatehouse.accounts import email_links
from gatehouse.throttle.quotas import quota_limit
from tests.fuzz.account_life.installation import ANNA, ENVIRONMENT, OTHER, SAM, SHOP, STEAM, an_installation
from tests.fuzz.account_life.life import ANNAS, SAMS, STARTS, AccountLife
from tests.fuzz.account_life.model.records import Identity
from tests.fuzz.account_life.walk import walk_lives
from tests.fuzz.conftest import FACTOR, SEED
from tests.fuzz.stepped_service import run_machine, second_node, stepped_service
from tests.support.databases import installed_database

LIVES: Final = len(STARTS)  # each once, on each database
STEPS: Final = 12  # of a life; starts leave out what every life begins with


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The machine of all lives on one database; on PostgreSQL each person uses a node of their own."""
    data = tmp_path_factory.mktemp("lives")
    with (
        installed_database(request, request.param, data) as url,
        pytest.MonkeyPatch.context() as patches,
        stepped_service(url, data, ENVIRONMENT) as bench,
        ExitStack() as nodes,
    ):
        other = bench.service
        if request.param == "postgres":
            other = nodes.enter_context(second_node(bench, url, data, ENVIRONMENT))
        patches.setattr(email_links, "PER_ADDRESS_LIMIT", quota_limit(1_000, 1))  # people ask for many at once
        context = an_installation(bench.service, other)
        installation = bench.run(context.__aenter__())
        try:
            yield type("Life", (AccountLife,), {"bench": bench, "installation": installation})
        finally:
            bench.run(context.__aexit__(None, None, None))


@pytest.mark.both_databases
def test_fp_01_be_01_account_does_what_its_model_says(machine: Any, request: pytest.FixtureRequest) -> None:
    database = request.node.callspec.params["machine"]  # other lives on each
    walk_lives(machine, lives=LIVES * FACTOR, steps=STEPS * min(FACTOR, 3), seed=f"{SEED} {database}")
    run_machine(machine, short=2, steps=15)


# Orders of steps that were bugs.


class Life:
    """One life, step by step; after each step, what is checked after any, and everything after the last one."""

    def __init__(self, machine: AccountLife) -> None:
        self._machine = machine

    def __getattr__(self, name: str) -> Callable[..., None]:
        step = getattr(self._machine, name)

        def run_step(*args: object, **fields: object) -> None:
            step(*args, **fields)
            self._machine.check_step()

        return run_step


@pytest.fixture
def life(machine: Any) -> Iterator[Life]:
    one = machine()
    yield Life(one)
    one.check_everything()
    one.teardown()


def ban(life: Life, number: int, scope: str = SHOP, **fields: bool) -> None:
    life.ban(number=number, scope=scope, **{"by_moderator": False, "ends": False, "device": False, **fields})


@pytest.mark.parametrize("prove", ["reset", "confirm", "sign_in_by_email"])
def test_fp_01_first_proof_ends_what_an_import_brought(life: Life, prove: str) -> None:
    life.import_account(address="anna", password=SAM, identity=SAMS, totp="", verified=False)
    life.sign_in_with_provider(person=SAM, address="")
    getattr(life, prove)(address="anna")


def test_fp_01_first_proof_ends_what_a_stranger_registered(life: Life) -> None:
    life.register(person=SAM, address="anna")
    life.sign_in(person=SAM, address="anna")
    life.sign_in_by_email(address="anna")


def test_fp_03_password_of_an_upgraded_guest_stays_in_the_browser_that_registered(life: Life) -> None:
    life.sign_in_as_guest(person=ANNA, application=SHOP)
    life.upgrade_guest(person=ANNA, address="anna", application=SHOP)
    life.sign_out(person=ANNA)
    life.confirm(address="anna")


def test_be_01_disconnected_identity_keeps_its_ban(life: Life) -> None:
    life.register(person=ANNA, address="anna")
    life.confirm(address="anna")
    life.sign_in(person=ANNA, address="anna")
    life.connect(person=ANNA)
    ban(life, 0)
    life.disconnect(connected=(ANNA, ANNAS))
    life.sign_in_with_provider(person=ANNA, address="")


def test_be_02_erased_account_leaves_its_ban(life: Life) -> None:
    life.sign_in_with_provider(person=ANNA, address="anna")
    ban(life, 0)
    life.delete_account(person=ANNA)
    life.sign_in_with_provider(person=ANNA, address="")


def test_be_03_former_address_keeps_its_ban(life: Life) -> None:
    life.sign_in_with_provider(person=ANNA, address="anna")
    ban(life, 0)
    life.change_address(person=ANNA, address="anna.new")
    life.register(person=ANNA, address="anna")
    life.confirm(address="anna")


def test_gu_13_guests_are_limited_at_every_door(life: Life) -> None:
    life.admit_guests_to(application=SHOP)
    life.sign_in_as_guest(person=ANNA, application=SHOP)


def test_gu_08_ban_refuses_a_merge_whatever_application_the_game_names(life: Life) -> None:
    life.register(person=ANNA, address="anna")
    life.sign_in_as_guest(person=ANNA, application=SHOP)
    ban(life, 1, OTHER)
    life.merge_guest(person=ANNA, address="anna", application=SHOP)


def test_gu_08_restrictions_and_tags_go_over_with_a_merge(life: Life) -> None:
    life.register(person=ANNA, address="anna")
    life.edit(number=0, tag=False, role=True, denied=False)
    life.sign_in_as_guest(person=ANNA, application=SHOP)
    life.edit(number=1, tag=True, role=False, denied=True)
    life.merge_guest(person=ANNA, address="anna", application=SHOP)


def test_id_14_tags_and_purchases_go_with_their_identity(life: Life) -> None:
    life.import_account(address="anna", password=ANNA, identity=ANNAS, totp="", verified=True)
    life.sign_in_with_provider(person=ANNA, address="")
    life.disconnect(connected=(ANNA, ANNAS))
    life.import_account(address="sam", password=ANNA, identity=Identity(STEAM, ANNA), totp="", verified=False)
    life.send_ticket(person=ANNA, provider=STEAM)
    life.confirm(address="sam")
