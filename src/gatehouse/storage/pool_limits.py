"""How many connections to PostgreSQL a process may have, and how it uses them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    min_size: int = 1
    max_size: int = 10
    acquire_seconds: float = 5.0
    statement_cache: bool = True  # off behind PgBouncer in transaction mode
    # Of every transaction that writes, set on the server: a node that stands still holds no lock for longer.
    idle_transaction_seconds: float = 3.0  # between two statements
    lock_seconds: float = 4.0  # waiting for one lock
    statement_seconds: float = 10.0  # for one statement, where it does not say more itself
