"""How many connections to PostgreSQL a process may have, and how it uses them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    least: int = 1
    most: int = 10
    acquire_seconds: float = 5.0
    statement_cache: bool = True  # off behind PgBouncer in transaction mode
