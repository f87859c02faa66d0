"""Races between processes: each racer opens the database, waits for the start signal, and prints its result.

`race` runs this module as a program; a race inside one event loop would test the loop's order, not the database's.
"""

import asyncio
import atexit
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from secrets import token_bytes, token_hex
from typing import Final, cast

from gatehouse.accounts.decoys import DecoyHashes
from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns
from gatehouse.accounts.identities import ForeignPerson, IdentityRules
from gatehouse.accounts.model import EmailSignInProof, EnabledMethods, SignInMethod
from gatehouse.accounts.own_account.identities import IdentityAccounts
from gatehouse.accounts.passwords import PasswordCost, Passwords
from gatehouse.accounts.phones.model import PhoneNotices
from gatehouse.accounts.second_factors.model import SecondFactorWrong
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.accounts.session_model import LoginTokenRecord
from gatehouse.accounts.sign_in import DeviceCookies, PasswordAttempt, PasswordSignIn
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import Recorder
from gatehouse.audit.sign_in_tally import SignInTally
from gatehouse.gamesessions.model import PollId, PollMark
from gatehouse.kernel.errors import GatehouseError, NotFound
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.runner import PoolLimits
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter
from tests.support.builders import (
    ALL_METHODS,
    ISSUER,
    NOW,
    ORIGIN,
    PASSKEY_HOST,
    a_client,
    a_client_secret,
    a_confirmation,
    a_passkey,
    a_record,
    a_user,
    an_identity,
)
from tests.support.clock import MovableClock
from tests.support.forked import ForkedModule
from tests.support.guest_racers import ACTS as GUEST_ACTS
from tests.support.permission_racers import ACTS as PERMISSION_ACTS
from tests.support.sealing import sealer
from tests.support.spellings import wide

Act = Callable[[Storage, int], Awaitable[None]]
Racer = ForkedModule

WON: Final = "won"
CODE: Final = bytes(32)  # of the grant that processes race for
GRANT: Final = "0" * 32
GSID: Final = "00000000-0000-4000-8000-000000000000"  # the game session that processes race for
RACED_PHONE: Final = "+4915123456789"
PHONE_RACERS: Final = ("1000000001", "1000000002")
RACED_USER: Final = "1000000001"  # the account whose second factors processes race for
NODE: Final = token_hex(8)  # this process's node id
POLL_NUMBERS: Final[dict[int, int]] = {}  # poll numbers that this process claimed in each race
IDLE_RACERS: Final[list[Racer]] = []  # processes that wait for their next race
FAST_PASSWORDS: Final = Passwords(PasswordCost(memory_kib=64, time_cost=1, workers=1))


async def seal_backlog(storage: Storage, _n: int) -> None:
    raise RaceOutcome(str(await sealer(storage).seal_all()))


async def take_setup_link(storage: Storage, _n: int) -> None:
    records = {"created": a_record(), "closed": a_record(AuditEvent.SETUP_CLOSED)}
    await storage.accounts.complete_setup(b"link", a_user(), records, NOW)


async def take_login(storage: Storage, _n: int) -> None:
    await storage.accounts.create_user(a_user(login="anna@studio.example"), a_record())


async def take_spelling_of_login(storage: Storage, n: int) -> None:
    name = "anna"[: n % 5] + wide("anna"[n % 5 :])
    await storage.accounts.create_user(a_user(login=f"{name}@studio.example"), a_record())


async def take_user_id(storage: Storage, n: int) -> None:
    await storage.accounts.create_user(a_user(user_id="1000000001", login=f"{id(storage)}-{n}@x.example"), a_record())


async def take_client_id(storage: Storage, _n: int) -> None:
    await storage.clients.create_client(a_client(), a_record())


async def rotate_client_secret(storage: Storage, n: int) -> None:
    await storage.clients.rotate_secret("web", a_client_secret(created_at=NOW + n), a_record(), old_ends_at=NOW + 9)


async def guess(storage: Storage, _n: int) -> None:
    await storage.throttle.record_failures([("anna", AttemptLimit(free_attempts=10_000))], NOW)


async def guess_password_of_anna(storage: Storage, _n: int) -> None:
    await sign_in(storage, login="anna@studio.example", source=token_hex(8))


async def guess_password_of_no_one(storage: Storage, _n: int) -> None:
    await sign_in(storage, login="no_one@studio.example", source=token_hex(8))


async def try_one_password_everywhere(storage: Storage, _n: int) -> None:
    await sign_in(storage, login=f"{token_hex(8)}@studio.example", source="192.0.2.1")


async def sign_in(storage: Storage, *, login: str, source: str) -> None:
    clock = MovableClock(NOW)
    password_sign_in = PasswordSignIn(
        store=storage.accounts,
        passwords=FAST_PASSWORDS,
        decoys=DecoyHashes(store=storage.accounts, key=bytes(32), clock=clock),
        limiter=AttemptLimiter(store=storage.throttle, limit=AttemptLimit(), clock=clock),
        device_cookies=DeviceCookies(key=bytes(32), clock=clock),
        failures=FailedSignIns(store=storage.failed_sign_ins, clock=clock),
        tally=SignInTally(store=storage.tallies, clock=clock, key=bytes(32)),
        accepts_usernames=lambda: True,
    )
    await password_sign_in.verify(login, PasswordAttempt(password="wrong", source=source))


async def claim_mail(storage: Storage, _n: int) -> None:
    if not await storage.mail.claim_due(NOW, 300, 1):
        raise NotFound


async def spend_totp_step(storage: Storage, _n: int) -> None:
    expect_true(await storage.second_factors.spend_totp_step(RACED_USER, b"sealed", 100))


async def use_recovery_code(storage: Storage, _n: int) -> None:
    expect_true(
        await storage.second_factors.use_recovery_code(
            RACED_USER, b"code", a_record(AuditEvent.RECOVERY_CODE_USED), (), NOW
        )
    )


async def try_right_email_code(storage: Storage, _n: int) -> None:
    expect_true(await storage.second_factors.try_email_code(RACED_USER, b"right", NOW))


async def try_wrong_email_code(storage: Storage, _n: int) -> None:
    expect_true(await storage.second_factors.try_email_code(RACED_USER, b"wrong", NOW))


async def try_right_phone_code(storage: Storage, _n: int) -> None:
    outcome = await storage.phones.try_phone_code(RACED_USER, RACED_PHONE, b"right", PhoneNotices(), NOW)
    expect_outcome(outcome.name, won="VERIFIED")


async def verify_one_number(storage: Storage, n: int) -> None:
    """Two accounts with the right code for one number, in turn."""
    user_id = PHONE_RACERS[n % 2]
    outcome = await storage.phones.verify_phone(user_id, b"right", lambda _phone, _owner: PhoneNotices(), NOW)
    expect_outcome(outcome.name, won="VERIFIED")


async def take_identity(storage: Storage, _n: int) -> None:
    user = a_user()
    await storage.profile.create_with_identity(user, an_identity(user.user_id), a_record())


async def sign_in_with_identity(storage: Storage, _n: int) -> None:
    """Win by creating the account; the others find it."""
    clock = MovableClock()
    accounts = IdentityAccounts(
        store=storage.profile,
        notifier=cast("AccountNotifier", None),  # nothing is sent
        recorder=Recorder(mac_key=bytes(32), clock=clock),
        failures=FailedSignIns(store=storage.failed_sign_ins, clock=clock),
        clock=clock,
        methods=EnabledMethods,
    )
    person = ForeignPerson(issuer=ISSUER, subject="0", purchases={"steam:480": True})
    rules = IdentityRules(provider_id="steam", provider_name="Steam", creates_accounts=True)
    found = await accounts.sign_in(person, rules, lang="en", origin=ORIGIN)
    expect_true(found.created)


async def use_ticket(storage: Storage, _n: int) -> None:
    expect_true(await storage.profile.use_ticket(b"ticket", NOW, NOW + 300))


async def drop_an_identity(storage: Storage, n: int) -> None:
    """Remove one of the two sign-in methods that are left."""
    await storage.profile.unlink_identity(RACED_USER, ISSUER, str(n % 2), a_record(), (), methods=ALL_METHODS)


async def drop_password_or_passkey(storage: Storage, n: int) -> None:
    if n % 2:
        await storage.profile.remove_password(a_user(user_id=RACED_USER), a_record(), (), methods=ALL_METHODS)
    else:
        await storage.passkeys.remove_passkey(RACED_USER, b"credential", a_record(), (), methods=ALL_METHODS)


async def take_provider_request(storage: Storage, _n: int) -> None:
    expect_true(await storage.profile.take_provider_request(b"state", NOW) is not None)


async def use_email_request(storage: Storage, n: int) -> None:
    """By code and by link in turn: either uses up both."""
    proof = EmailSignInProof(browser=b"browser", **({"code": b"code"} if n % 2 else {"link": b"link"}))
    await storage.registration.use_email_request(proof, NOW)


async def try_wrong_sign_in_code(storage: Storage, _n: int) -> None:
    await storage.registration.use_email_request(EmailSignInProof(browser=b"browser", code=b"wrong"), NOW)


async def take_challenge(storage: Storage, _n: int) -> None:
    expect_true(await storage.passkeys.take_challenge("passkey-sign-in", b"digest", NOW))


async def use_passkey(storage: Storage, _n: int) -> None:
    expect_true(await storage.passkeys.use_passkey(b"key", 7, a_record(AuditEvent.PASSKEY_SUSPECTED), NOW))


async def add_passkey(storage: Storage, _n: int) -> None:
    passkey = a_passkey(user_id=RACED_USER, credential_id=token_bytes(16))
    await storage.passkeys.add_passkey(
        passkey, [token_bytes(8)], a_record(AuditEvent.FACTOR_ADDED), (), host=PASSKEY_HOST
    )


async def take_code(storage: Storage, _n: int) -> None:
    record = a_record(AuditEvent.CODE_REUSED)
    expect_outcome(
        (await storage.grants.redeem_code(CODE, NOW, generation=1, reused=lambda: record)).name, won="REDEEMED"
    )


async def fail_code(storage: Storage, _n: int) -> None:
    await storage.grants.count_code_failure(CODE, most=5)


async def turn_refresh_token(storage: Storage, _n: int) -> None:
    rotated = await storage.grants.rotate(
        GRANT, 1, NOW, kid="key", grace=0, reused=lambda: a_record(AuditEvent.REFRESH_REUSED)
    )
    expect_outcome(rotated.outcome.name, won="ROTATED")


async def turn_refresh_token_with_grace(storage: Storage, _n: int) -> None:
    rotated = await storage.grants.rotate(
        GRANT, 1, NOW, kid="key", grace=10, reused=lambda: a_record(AuditEvent.REFRESH_REUSED)
    )
    expect_outcome(f"{rotated.outcome.name} {rotated.generation}", won="ROTATED 2")


async def spend_assertion(storage: Storage, _n: int) -> None:
    expect_true(await storage.grants.spend_assertion(b"digest", "web", NOW, ends_at=NOW + 60))


async def claim_game(storage: Storage, n: int) -> None:
    mark = PollMark(gsid=GSID, number=1, polled_at=NOW, ends_at=NOW + 120)
    POLL_NUMBERS[n] = await storage.game_sessions.claim_session(mark, NODE, tell=False)
    raise RaceOutcome(str(POLL_NUMBERS[n]))


async def take_game_answer(storage: Storage, n: int) -> None:
    """Take the answer with the number from the preceding claim."""
    user = await storage.accounts.user(RACED_USER)
    login = LoginTokenRecord(
        user_id=RACED_USER,
        rev=user.rev,
        application_id=0,
        token=token_bytes(8),
        token_ends_at=NOW + 60,
        stoken=None,
        stoken_ends_at=0,
        auth=SignInMethod.LOGIN,
        address="",
        now=NOW,
    )
    turn = PollId(number=POLL_NUMBERS[n], node=NODE)
    expect_true(await storage.game_sessions.take_answer(GSID, turn, NOW, login, a_record(AuditEvent.LOGGED_IN)))
    raise RaceOutcome(f"taken by {turn.number}")


async def confirm_game(storage: Storage, _n: int) -> None:
    user = await storage.accounts.user(RACED_USER)
    entry = a_record(AuditEvent.GAME_CONFIRMED)
    expect_true(await storage.game_sessions.confirm_session(a_confirmation(GSID, user), NOW, entry))


# A race is about who wins. On a busy machine a process can stand still for longer than the service allows one to hold
# a lock, and would then lose for that reason.
NO_HURRY: Final = PoolLimits(acquire_seconds=60, idle_transaction_seconds=60, lock_seconds=60, statement_seconds=60)


class RaceOutcome(GatehouseError):
    """The outcome of an act with more results than success or failure."""


def expect_outcome(outcome: str, *, won: str) -> None:
    if outcome != won:
        raise RaceOutcome(outcome)


def expect_true(won: bool) -> None:  # noqa: FBT001
    if not won:
        raise SecondFactorWrong


ACTS: Final[Mapping[str, Act]] = {
    act.__name__: act
    for act in (
        *(take_spelling_of_login, seal_backlog),
        *(take_setup_link, take_login, take_user_id, take_client_id, rotate_client_secret, guess, claim_mail),
        *(spend_totp_step, use_recovery_code, try_right_email_code, try_wrong_email_code),
        *(try_right_phone_code, verify_one_number),
        *(use_email_request, try_wrong_sign_in_code),
        *(take_challenge, use_passkey, add_passkey, take_identity, drop_an_identity, take_provider_request),
        *(drop_password_or_passkey,),
        *(sign_in_with_identity, use_ticket),
        *(guess_password_of_anna, guess_password_of_no_one, try_one_password_everywhere),
        *(take_code, fail_code, turn_refresh_token, turn_refresh_token_with_grace, spend_assertion),
        *(claim_game, take_game_answer, confirm_game),
        *GUEST_ACTS,
        *PERMISSION_ACTS,
    )
}


def race(act: Act, url: str, *, racers: int = 4, each: int = 5) -> Counter[str]:
    """Run the act several times in several processes; count how often it succeeded, or failed with which error."""
    return run_races([act], url, racers=racers, each=each)[act.__name__]


def run_races(acts: Sequence[Act], url: str, *, racers: int = 2, each: int = 10) -> dict[str, Counter[str]]:
    """Run several races in turn between the same processes."""
    request = json.dumps({"acts": [act.__name__ for act in acts], "url": url, "each": each})
    with racer_pool(racers) as processes:
        send_line(processes, request)
        outcomes = {act.__name__: run_race(processes) for act in acts}
        assert {read_line(process) for process in processes} == {"left\n"}
    return outcomes


@contextmanager
def racer_pool(number: int) -> Iterator[Sequence[Racer]]:
    """Reuse racer processes, because starting them takes time; one that failed is not used again."""
    processes = [IDLE_RACERS.pop() if IDLE_RACERS else start_racer() for _ in range(number)]
    try:
        yield processes
    except BaseException:
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.close()
        raise
    IDLE_RACERS.extend(processes)


def start_racer() -> Racer:
    racer = ForkedModule("tests.support.racers", (), os.environ, errors=False)  # noqa: TID251 - passed on to a child
    atexit.register(racer.close)
    return racer


def run_race(processes: Sequence[Racer]) -> Counter[str]:
    assert {read_line(process) for process in processes} == {"ready\n"}
    send_line(processes, "go")
    outcomes: Counter[str] = Counter()
    for process in processes:
        outcomes.update(json.loads(read_line(process)))
    return outcomes


def send_line(processes: Sequence[Racer], line: str) -> None:
    for process in processes:
        process.stdin.write(f"{line}\n")
        process.stdin.flush()


def read_line(process: Racer) -> str:
    return process.stdout.readline()


async def run(acts: Sequence[str], url: str, each: int) -> None:
    async with open_storage(url, migrate=False, limits=NO_HURRY) as storage:
        for act in acts:
            print("ready", flush=True)  # noqa: T201 - read by the process that starts the race
            sys.stdin.readline()
            outcomes = await asyncio.gather(*(run_act(ACTS[act], storage, n) for n in range(each)))
            print(json.dumps(outcomes), flush=True)  # noqa: T201
    print("left", flush=True)  # noqa: T201 - this process has closed the database


async def run_act(act: Act, storage: Storage, n: int) -> str:
    try:
        await act(storage, n)
    except RaceOutcome as outcome:
        return outcome.detail
    except GatehouseError as error:
        return type(error).__name__
    return WON


if __name__ == "__main__":
    while asked := sys.stdin.readline():
        asyncio.run(run(**json.loads(asked)))
