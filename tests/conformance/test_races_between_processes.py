"""Single use, unique ids and exact counts hold between processes, on both databases."""

from collections import Counter

from gatehouse.accounts.sign_in import ACCOUNT_LIMIT, SOURCE_LIMIT
from gatehouse.storage.database import open_storage
from gatehouse.throttle.limits import AttemptLimit
from tests.support import racers
from tests.support.builders import NOW, a_client, a_game_session, a_record, a_setup_link, a_user
from tests.support.racers import FAST_PASSWORDS, WON, race, run_races

TRIES = 20  # four processes, five attempts each


async def test_setup_link_creates_one_administrator(migrated_url: str) -> None:
    async with open_storage(migrated_url, migrate=False) as storage:
        await storage.accounts.put_setup_link(a_setup_link(b"link"), a_record())
    outcomes = race(racers.take_setup_link, migrated_url)
    assert outcomes[WON] == 1
    assert outcomes["SetupLinkDead"] + outcomes["SetupClosed"] == TRIES - 1
    async with open_storage(migrated_url, migrate=False) as storage:
        events = Counter(record.event for record in await storage.audit.unsealed_records(100))
    assert events == {"user.created": 2, "setup.closed": 1}  # one of the two records has the link itself


async def test_login_is_assigned_to_one_account(migrated_url: str) -> None:
    assert race(racers.take_login, migrated_url) == {WON: 1, "LoginTaken": TRIES - 1}


async def test_lg_34_login_is_assigned_to_one_account_in_whatever_spelling(migrated_url: str) -> None:
    assert race(racers.take_spelling_of_login, migrated_url) == {WON: 1, "LoginTaken": TRIES - 1}


async def test_user_id_is_assigned_once(migrated_url: str) -> None:
    assert race(racers.take_user_id, migrated_url) == {WON: 1, "UserIdTaken": TRIES - 1}


async def test_client_id_is_assigned_once(migrated_url: str) -> None:
    assert race(racers.take_client_id, migrated_url) == {WON: 1, "ClientExists": TRIES - 1}


async def test_two_secrets_at_most(migrated_url: str) -> None:
    async with open_storage(migrated_url, migrate=False) as storage:
        await storage.clients.create_client(a_client(), a_record())
        assert race(racers.rotate_client_secret, migrated_url) == {WON: TRIES}
        assert len((await storage.clients.client("web")).secrets) == 2


async def test_every_failed_guess_is_counted_across_processes(migrated_url: str) -> None:
    assert race(racers.guess, migrated_url) == {WON: TRIES}
    async with open_storage(migrated_url, migrate=False) as storage:
        limit = AttemptLimit(free_attempts=TRIES + 1, first_delay=5)
        assert await storage.throttle.record_failures([("anna", limit)], NOW) == NOW + 5


async def test_lg_06_no_more_passwords_are_checked_at_once_than_one_after_the_other(migrated_url: str) -> None:
    async with open_storage(migrated_url, migrate=False) as storage:
        anna = a_user(login="anna@studio.example", password_hash=await FAST_PASSWORDS.hash("right"))
        await storage.accounts.create_user(anna, a_record())
    allowed = {"SignInRefused": ACCOUNT_LIMIT.free_attempts, "TooMany": TRIES - ACCOUNT_LIMIT.free_attempts}
    assert race(racers.guess_password_of_anna, migrated_url) == allowed
    assert race(racers.guess_password_of_no_one, migrated_url) == allowed


async def test_lg_10_one_password_at_many_accounts_is_checked_no_more_often_at_once(migrated_url: str) -> None:
    outcomes = race(racers.try_one_password_everywhere, migrated_url, each=30)
    assert outcomes == {"SignInRefused": SOURCE_LIMIT.free_attempts, "TooMany": 4 * 30 - SOURCE_LIMIT.free_attempts}


async def test_the_answer_of_a_game_session_is_taken_once_by_the_newest_poll_of_all_nodes(migrated_url: str) -> None:
    async with open_storage(migrated_url, migrate=False) as storage:
        await storage.accounts.create_user(a_user(user_id=racers.RACED_USER), a_record())
        await storage.game_sessions.register_session(a_game_session(racers.GSID))
    assert race(racers.confirm_game, migrated_url) == {WON: 1, "SecondFactorWrong": TRIES - 1}
    outcomes = run_races([racers.claim_game, racers.take_game_answer], migrated_url, racers=4, each=5)
    assert outcomes == {
        "claim_game": {str(number): 1 for number in range(1, TRIES + 1)},
        "take_game_answer": {f"taken by {TRIES}": 1, "SecondFactorWrong": TRIES - 1},
    }
    async with open_storage(migrated_url, migrate=False) as storage:
        events = Counter(record.event for record in await storage.audit.unsealed_records(100))
    assert (events["game.confirmed"], events["login.done"]) == (1, 1)
