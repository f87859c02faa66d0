"""The time of searches among 100,000 people, without HTTP."""

import asyncio
from functools import partial
from statistics import median
from time import perf_counter
from typing import Final

import uvloop
from bench.figures import Figure
from bench.fill_database import analyze
from bench.many_users import AT_ONCE, MANY_USERS, a_row, name_of, tag_of
from sqlalchemy import insert

from gatehouse.admin.people_search import PeopleQuestion, PeopleSearchStore
from gatehouse.storage.accounts.last_seen import ADD_NEVER_SEEN
from gatehouse.storage.database import open_storage
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import user_ids, user_tags, users
from gatehouse.storage.tables.permissions import user_records

TIMES: Final = 9
GOAL: Final = 50.0  # milliseconds
APPLICATION: Final = 50_001
EVERY: Final = 3  # of the people have a record in the application
COMMON_TAG: Final = "common"
QUESTIONS: Final = {
    "text of one person": PeopleQuestion(text="ayer99998x"),
    "text of no one": PeopleQuestion(text="zzzzz"),
    "text of everyone": PeopleQuestion(text="example"),
    "email": PeopleQuestion(login=f"{name_of(MANY_USERS // 2)}@studio.example"),
    "rare tag": PeopleQuestion(tag=tag_of(7)),
    "common tag and rare text": PeopleQuestion(tag=COMMON_TAG, text="ayer99998x"),
    "rare tag and common text": PeopleQuestion(tag=tag_of(7), text="example"),
    "blocked": PeopleQuestion(blocked=True),
    "registered since": PeopleQuestion(since=1_700_000_000 + MANY_USERS - 10),
    "text of no one in an application": PeopleQuestion(text="zzzzz", application_id=APPLICATION),
}


def people_search(url: str, kind: str) -> list[Figure]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure(url, kind))


async def measure(url: str, kind: str) -> list[Figure]:
    async with open_storage(url, migrate=True) as storage:
        for start in range(0, MANY_USERS, AT_ONCE):
            await storage.runner.write(partial(insert_people, range(start, start + AT_ONCE)))
        await storage.runner.write(analyze)
        store, figures = PeopleSearchStore(storage.runner), []
        for name, question in QUESTIONS.items():
            milliseconds = await time_search(store, question)
            figures.append(
                Figure(
                    name=f"search, {name}, {MANY_USERS:,} people, {kind}", value=milliseconds, unit="ms", goal=GOAL
                )
            )
    return figures


def insert_people(numbers: range) -> Verb[None]:
    names = [name_of(number) for number in numbers]
    yield Statement(lambda: insert(user_ids)).bulk([{"user_id": name} for name in names])
    yield Statement(lambda: insert(users)).bulk([a_searched_row(number) for number in numbers])
    yield ADD_NEVER_SEEN.bulk([{"user_id": name} for name in names])
    tags = [*((n, tag_of(n)) for n in numbers), *((n, COMMON_TAG) for n in numbers if n % 2)]
    yield Statement(lambda: insert(user_tags)).bulk([{"user_id": name_of(n), "tag": tag} for n, tag in tags])
    empty = {"login": {}, "private_data": {}, "public_data": {}, "secret_data": {}, "version": 1}
    recorded = [name_of(n) for n in numbers if n % EVERY == 0]
    yield Statement(lambda: insert(user_records)).bulk(
        [{"application_id": APPLICATION, "user_id": name, **empty} for name in recorded]
    )


def a_searched_row(number: int) -> dict[str, object]:
    login = f"{name_of(number)}@studio.example"
    keys = {"login": login, "login_key": login, "nick_key": f"player{number}x", "name_key": f"ada example {number}"}
    return {**a_row(name_of(number)), **keys, "reg_time": 1_700_000_000 + number}


async def time_search(store: PeopleSearchStore, question: PeopleQuestion) -> float:
    times = []
    for _ in range(TIMES + 1):
        begin = perf_counter()
        await store.search(question, None, 25)
        times.append((perf_counter() - begin) * 1_000)
    return median(times[1:])
