"""Bits that flip where things are kept, under a service or while nothing runs."""

import apsw

from gatehouse.storage.sqlite import path_of
from tests.support.command_line import change_postgres


async def flip(url: str, table: str, column: str, where: str, *, at: int) -> None:
    """Change the byte at that place of a binary column, whatever it was."""
    if url.startswith("sqlite:"):
        with apsw.Connection(path_of(url)) as connection:
            [(held,)] = connection.execute(f"SELECT {column} FROM {table} WHERE {where}")  # noqa: S608
            broken = held[:at] + bytes([held[at] ^ 1]) + held[at + 1 :]
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (broken,))  # noqa: S608
    else:
        shown = f"set_byte({column}, {at}, get_byte({column}, {at}) # 1)"
        await change_postgres(url, [f"UPDATE {table} SET {column} = {shown} WHERE {where}"])  # noqa: S608


async def overwrite(url: str, statement: str) -> None:
    if url.startswith("sqlite:"):
        with apsw.Connection(path_of(url)) as connection:
            connection.execute(statement)
    else:
        await change_postgres(url, [statement])
