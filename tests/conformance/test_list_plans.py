"""Lists and searches whose statement is made for a choice of filters are read along an index, on both databases.

`test_plans.py` plans the statements that the package has; these are made when the filters are first chosen.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from gatehouse.admin.people_list import ListShape, PeopleFilter, PeopleSort, SeenFilter, list_statements
from gatehouse.admin.people_search import SearchShape, search_statement
from gatehouse.storage.accounts.bans import BanState, ban_list_statement
from gatehouse.storage.permissions.candidates import CANDIDATE_QUERIES, candidates_statement
from gatehouse.storage.sqlite.connection import connect
from gatehouse.storage.sqlite.runner import sqlite_path
from gatehouse.storage.statements import DatabaseKind, Statement
from tests.support.postgres_session import postgres_session
from tests.support.query_plans import (
    fill_tables,
    postgres_plan,
    prepare_plans,
    scanned_tables,
    sorts_everything,
    sqlite_plan,
    sqlite_scans,
)

EVERYBODY: Final = ListShape(
    among=PeopleFilter.EVERYBODY,
    sort=PeopleSort.NEWEST,
    seen=SeenFilter.ANY,
    tagged=False,
    at_provider=False,
    with_role=False,
    imported=False,
    searched=False,
    respelled=False,
    bounded=False,
)
LIST_OPTIONS: Final[tuple[Mapping[str, Any], ...]] = (
    *({"among": among} for among in PeopleFilter),
    *({"seen": seen} for seen in SeenFilter if seen is not SeenFilter.ANY),
    *({name: True} for name in ("tagged", "at_provider", "with_role", "imported", "searched")),
    {"searched": True, "bounded": True},
)
EVERY_PERSON: Final = SearchShape(
    text=False,
    respelled=False,
    bounded=False,
    login=False,
    blocked=False,
    continues=False,
    tagged=False,
    few_tagged=False,
    recorded=False,
    few_recorded=False,
)
SEARCH_OPTIONS: Final[tuple[Mapping[str, bool], ...]] = (
    {},
    {"login": True},
    {"blocked": True},
    {"text": True, "bounded": True},
    *({name: True, f"few_{name}": few} for name in ("tagged", "recorded") for few in (True, False)),
    {"tagged": True, "recorded": True},
)
WALKED: Final = {"users", "last_seen"}  # in the order of the list, up to a full page or the 10,000 that are counted


# Sorted after a scan: by address, which has no index of its own (decision 0054), and what only few people are.
SORTS: Final = {PeopleSort.EMAIL, PeopleSort.EMAIL_DOWN}
FEW_PEOPLE: Final = {PeopleFilter.BLOCKED, PeopleFilter.SERVICE_ACCOUNTS, PeopleFilter.NO_SIGN_IN}


class MadeStatement(NamedTuple):
    name: str
    statement: Statement
    may_sort: bool = False


def made_statements() -> Iterator[MadeStatement]:
    """Every list in every order with each of its filters alone, and the searches."""
    for options, sort in product(LIST_OPTIONS, PeopleSort):
        made = list_statements(replace(EVERYBODY, sort=sort, **options))
        may_sort = sort in SORTS or options.get("among") in FEW_PEOPLE
        for name in ("ids", "counted", "few"):
            yield MadeStatement(f"people, {name}, {sort}, {options}", getattr(made, name), may_sort)
    for options, continues in product(SEARCH_OPTIONS, (False, True)):
        shape = replace(EVERY_PERSON, continues=continues, **options)
        yield MadeStatement(f"search, {options}, {continues}", search_statement(shape))
    for criteria in ([one] for one in CANDIDATE_QUERIES):
        yield MadeStatement(f"candidates, {criteria}", candidates_statement(frozenset(criteria)))
    yield MadeStatement("candidates, everything", candidates_statement(frozenset(CANDIDATE_QUERIES)))
    for state, of_person, in_scope in product((None, *BanState), (False, True), (False, True)):
        statement = ban_list_statement(of_person=of_person, in_scope=in_scope, state=state, further=True)
        yield MadeStatement(f"bans, {state}, {of_person}, {in_scope}", statement)


async def test_lists_and_searches_of_people_sort_no_table_on_sqlite(migrated_sqlite_url: str) -> None:
    connection = connect(sqlite_path(migrated_sqlite_url))
    connection.execute("PRAGMA synchronous = OFF")
    for insert in fill_tables():
        connection.execute(insert.replace("AS bytea", "AS blob"))
    connection.execute("ANALYZE")
    for made in made_statements():
        compiled = made.statement.compile_for(DatabaseKind.SQLITE)
        scanned = sqlite_scans(connection, compiled)
        assert scanned <= WALKED, (made.name, scanned)
        if scanned and not made.may_sort:
            plan = sqlite_plan(connection, compiled)
            assert "USE TEMP B-TREE FOR ORDER BY" not in plan, (made.name, plan)
    connection.close()


async def test_lists_and_searches_of_people_sort_no_table_on_postgresql(migrated_postgres_url: str) -> None:
    async with postgres_session(migrated_postgres_url) as session:
        await prepare_plans(session)
        for insert in fill_tables():
            await session.execute(insert)
        await session.execute("ANALYZE")
        for made in made_statements():
            plan = await postgres_plan(session, made.statement.compile_for(DatabaseKind.POSTGRES))
            assert scanned_tables(plan) <= WALKED, (made.name, plan)
            assert made.may_sort or not sorts_everything(json.loads(plan)[0]["Plan"]), (made.name, plan)
