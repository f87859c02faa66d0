"""Bits that flip where things are kept, under a service or while nothing runs."""

import apsw

from gatehouse.storage.sqlite import sqlite_path
from tests.support.command_line import execute_on_postgres


async def flip_bit(url: str, table: str, column: str, where: str, *, at: int) -> None:
    """Change the byte at that place of a binary column, whatever it was."""
    if url.startswith("sqlite:"):
        with apsw.Connection(sqlite_path(url)) as connection:
            [(held,)] = connection.execute(f"SELECT {column} FROM {table} WHERE {where}")  # noqa: S608
            broken = held[:at] + bytes([held[at] ^ 1]) + held[at + 1 :]
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (broken,))  # noqa: S608
    else:
        shown = f"set_byte({column}, {at}, get_byte({column}, {at}) # 1)"
        await execute_on_postgres(url, [f"UPDATE {table} SET {column} = {shown} WHERE {where}"])  # noqa: S608


async def execute_statement(url: str, statement: str) -> None:
    if url.startswith("sqlite:"):
        with apsw.Connection(sqlite_path(url)) as connection:
            connection.execute(statement)
    else:
        await execute_on_postgres(url, [statement])
