"""How the cost of each hot operation grows with the number of rows (goal P14).

Databases of a thousand to a million people, each with as many sessions, refresh tokens, waiting games, role
assignments and audit records (bench/fill_database.py). Rounds alternate between them, and no person is cached. Timed
are storage and evaluation, with one caller. The cost of an empty handler over HTTP, the same for every database, is
measured too and added for the ratio of the whole request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from itertools import count, islice
from statistics import median
from time import perf_counter
from typing import Final

import uvloop
from bench.figures import Figure
from bench.fill_database import CLIENT, DAY, NODE, ROLES, digest_of, fill_database, gsid_of, id_of, login_of, user_of
from bench.permissions import RULES
from tests.support.builders import NOW, a_client, a_game_session, a_record
from tests.support.oauth import a_grant
from tests.support.permission_builders import a_role, create_application, install_central

from gatehouse.accounts.model import SignInMethod
from gatehouse.accounts.session_model import LoginTokenRecord
from gatehouse.gamesessions.model import PollId, PollMark, SessionConfirmation
from gatehouse.kernel.clock import SystemClock
from gatehouse.oauth.store import RedeemOutcome, RotationOutcome
from gatehouse.permissions.evaluation.effective import EffectivePermissions
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.evaluation.shapes import DEFAULT_OPTIONS, Shape, render_shape
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import ROOT, Rule, RuleSection
from gatehouse.settings.model import GameSettings
from gatehouse.storage.database import Storage, open_storage

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
ROUNDS: Final = 5
CASES: Final = 100  # people of one round; the smallest database has enough for all rounds
GOAL: Final = 1.5  # times the cost of the smallest database
STRIDE: Final = 7_919  # a prime, so that the cases are spread over a database of any size
LATER: Final = NOW + 60
PENDING_MOST: Final = GameSettings().pending_most  # the count ends there

Operation = Callable[["FilledDatabase", "OperationCase"], Awaitable[object]]


class OperationFailed(Exception):
    """An operation did not do what it is timed for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCase:
    person: int  # not cached
    new: int  # neither this number nor the next one is used in the database

    @property
    def user_id(self) -> str:
        return user_of(self.person)

    def login(self, number: int, *, stoken: bytes | None = None) -> LoginTokenRecord:
        return LoginTokenRecord(
            user_id=self.user_id,
            rev=0,
            application_id=0,
            token=digest_of(number),
            token_ends_at=NOW + 3_600,
            stoken=stoken,
            stoken_ends_at=NOW + 60,
            auth=SignInMethod.LOGIN,
            address="192.0.2.7",
            now=LATER,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledDatabase:
    storage: Storage
    people: int
    application_id: int
    loader: PermissionLoader
    numbers: Iterator[int] = field(default_factory=count)

    def cases(self) -> list[OperationCase]:
        return [
            OperationCase(person=number * STRIDE % self.people, new=self.people + 2 * number)
            for number in islice(self.numbers, CASES)
        ]


async def sign_in(database: FilledDatabase, case: OperationCase) -> None:
    found = await database.storage.accounts.user_by_login(login_of(case.person))
    expect(found is not None and found.user_id == case.user_id)


async def find_session(database: FilledDatabase, case: OperationCase) -> None:
    expect(await database.storage.sessions.find_session(digest_of(case.person), LATER))


async def save_login(database: FilledDatabase, case: OperationCase) -> None:
    expect(await database.storage.logins.save_login(case.login(case.new), a_record(subject=case.user_id)))


async def authorize(database: FilledDatabase, case: OperationCase) -> None:
    grant = a_grant(
        grant_id=id_of(case.new),
        client_id=CLIENT,
        user_id=case.user_id,
        session_id=id_of(case.person),
        code=digest_of(case.new),
        code_ends_at=LATER + 60,
    )
    expect(await database.storage.grants.create_grant(grant, a_record(subject=case.user_id), in_session=True))


async def exchange(database: FilledDatabase, case: OperationCase) -> None:
    code = digest_of(case.new)
    expect(await database.storage.grants.find_grant_by_code(code))
    taken = await database.storage.grants.redeem_code(code, LATER, generation=1, reused=a_record)
    expect(taken is RedeemOutcome.REDEEMED)


async def refresh(database: FilledDatabase, case: OperationCase) -> None:
    expect(await database.storage.grants.find_live_grant(id_of(case.person), LATER))
    rotated = await database.storage.grants.rotate(id_of(case.person), 1, LATER, kid="key", grace=0, reused=a_record)
    expect(rotated.outcome is RotationOutcome.ROTATED)


async def userinfo(database: FilledDatabase, case: OperationCase) -> None:
    expect(await database.storage.grants.find_live_grant(id_of(case.person), LATER))


async def get_gsid(database: FilledDatabase, case: OperationCase) -> None:
    session = a_game_session(gsid_of(case.new), options=bytes(96), location=bytes(32), ends_at=NOW + DAY)
    await database.storage.game_sessions.register_session(session)


async def poll(database: FilledDatabase, case: OperationCase) -> None:
    gsid = gsid_of(case.person)
    expect(await database.storage.game_sessions.find_session(gsid, LATER))
    await database.storage.game_sessions.record_polls(
        [PollMark(gsid=gsid, number=1, polled_at=LATER, ends_at=NOW)], NODE
    )


async def confirm(database: FilledDatabase, case: OperationCase) -> None:
    entry = a_record(subject=case.user_id)
    store, gsid = database.storage.game_sessions, gsid_of(case.person)
    confirmation = SessionConfirmation(gsid=gsid, user_id=case.user_id, rev=0, auth="login")
    expect(await store.confirm_session(confirmation, LATER, entry))


async def take_answer(database: FilledDatabase, case: OperationCase) -> None:
    login = case.login(case.new + 1, stoken=digest_of(case.new))
    entry = a_record(subject=case.user_id)
    turn = PollId(number=2, node=NODE)
    expect(await database.storage.game_sessions.take_answer(gsid_of(case.person), turn, LATER, login, entry))


async def effective_list(database: FilledDatabase, case: OperationCase) -> None:
    lines = render_shape(await effective_permissions(database, case), Shape.LIST, DEFAULT_OPTIONS, NOW)
    expect(len(lines) >= RULES)


async def check(database: FilledDatabase, case: OperationCase) -> None:
    neighbour = replace(case, person=(case.person + 1) % database.people)  # their list is not cached
    rule = Rule(RuleSection.PRIVATE, f"area{neighbour.person % ROLES}.rule7")
    expect((await effective_permissions(database, neighbour)).allows(ROOT, rule))


async def effective_permissions(database: FilledDatabase, case: OperationCase) -> EffectivePermissions:
    facts = await database.loader.load_facts(case.user_id, (database.application_id,))
    if facts is None:
        raise OperationFailed(case)
    return await database.loader.evaluate(await database.loader.load_input(facts), database.application_id, None)


async def count_waiting(database: FilledDatabase, _case: OperationCase) -> None:
    expect(
        await database.storage.game_sessions.count_pending(LATER, PENDING_MOST) >= min(database.people, PENDING_MOST)
    )


async def sweep_nothing(database: FilledDatabase, _case: OperationCase) -> None:
    await database.storage.sweep(NOW - 1)


def expect(truth: object) -> None:
    if not truth:
        raise OperationFailed


# In this order: some operations need the rows of an earlier one.
OPERATIONS: Final[Mapping[str, Operation]] = {
    "account by login": sign_in,
    "session by cookie": find_session,
    "login saved": save_login,
    "authorize": authorize,
    "code exchange": exchange,
    "userinfo": userinfo,
    "refresh": refresh,
    "getGsid": get_gsid,
    "poll": poll,
    "game session confirmed": confirm,
    "game session taken": take_answer,
    "effective list": effective_list,
    "check": check,
}
# Background work, measured once a round: it has no goal.
DUTIES: Final[Mapping[str, Operation]] = {"waiting games counted": count_waiting, "sweep of nothing": sweep_nothing}


def growth(urls: Sequence[str], kind: str, empty: float, sizes: Sequence[int] = SIZES) -> list[Figure]:
    """Needs one empty database for each size; `empty` is the cost of an empty handler in microseconds."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure(urls, kind, empty, sizes))


async def measure(urls: Sequence[str], kind: str, empty: float, sizes: Sequence[int]) -> list[Figure]:
    async with AsyncExitStack() as stack:
        databases = [await filled_database(stack, url, people) for url, people in zip(urls, sizes, strict=True)]
        for database in databases:
            await one_round(database)  # prepares statements, reads the model
        rounds = [[await one_round(database) for database in databases] for _ in range(ROUNDS)]
    return [
        figure
        for name in rounds[0][0]
        for figure in curve(f"{name}, {kind}", empty, sizes, [[one[name] for one in row] for row in rounds])
        if name in OPERATIONS or not figure.goal
    ]


async def filled_database(stack: AsyncExitStack, url: str, people: int) -> FilledDatabase:
    async with open_storage(url, migrate=True) as empty:  # closed before the database is filled
        await install_central(empty)
        application = await create_application(empty, *(some_role(number) for number in range(ROLES)))
        await empty.clients.create_client(a_client(CLIENT), a_record())
    await fill_database(url, application.application_id, people)
    storage = await stack.enter_async_context(open_storage(url, migrate=False))
    return FilledDatabase(
        storage=storage,
        people=people,
        application_id=application.application_id,
        loader=PermissionLoader(store=storage.permissions, clock=SystemClock()),
    )


def some_role(number: int) -> Role:
    rules = {f"rule{n}": {"value": True} for n in range(RULES)}
    return a_role(f"role{number}", meta={"private_data": {f"area{number}": rules}})


async def one_round(database: FilledDatabase) -> dict[str, float]:
    """Microseconds of each operation."""
    cases = database.cases()
    hot = {name: await time_each(database, operation, cases) for name, operation in OPERATIONS.items()}
    return hot | {name: await time_each(database, duty, cases[:1]) for name, duty in DUTIES.items()}


async def time_each(database: FilledDatabase, operation: Operation, cases: Sequence[OperationCase]) -> float:
    """The median, because other work of the machine disturbs few of them."""
    times = []
    for case in cases:
        begin = perf_counter()
        await operation(database, case)
        times.append(perf_counter() - begin)
    return median(times) * 1e6


def curve(
    name: str, empty: float, sizes: Sequence[int], rounds: Sequence[Sequence[float]], *, unit: str = "people"
) -> Iterator[Figure]:
    """Ratios first: each is taken within one round."""
    title = f"growth, {name}: {sizes[-1]:,} by {sizes[0]:,} {unit}"
    whole = median((row[-1] + empty) / (row[0] + empty) for row in rounds)
    yield Figure(name=f"{title}, with HTTP", value=whole, unit="x", goal=GOAL)
    yield Figure(name=f"{title}, storage alone", value=median(row[-1] / row[0] for row in rounds), unit="x")
    for size, times in zip(sizes, zip(*rounds, strict=True), strict=True):
        title = f"growth, {name}, {size:,} {unit}"
        yield Figure(name=title, value=median(times), unit="µs", curve=name, at=size)
