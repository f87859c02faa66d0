"""Unit costs for capacity plans: the newest ones measured under bench/results/, or assumed ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

GATEHOUSE: Final = "Gatehouse on PostgreSQL"
SERVER_CPU: Final = ", CPU of the server"
DATABASE_CPU: Final = ", CPU of the database"
# Rough values: rates of a prototype on one core, Argon2id at 28 ms, memory of waiting games as in
# docs/decisions/0021-holding-a-poll.md, row sizes of PostgreSQL 15 with 100,000 rows each.
ASSUMED: Final = {
    f"flow RS256, {GATEHOUSE}{SERVER_CPU}": 2_000.0,  # µs
    f"flow RS256, {GATEHOUSE}{DATABASE_CPU}": 700.0,
    f"refresh RS256, {GATEHOUSE}{SERVER_CPU}": 1_300.0,
    f"refresh RS256, {GATEHOUSE}{DATABASE_CPU}": 300.0,
    f"userinfo, {GATEHOUSE}{SERVER_CPU}": 300.0,
    f"userinfo, {GATEHOUSE}{DATABASE_CPU}": 100.0,
    f"POST meta/data, list of 1000 rules, PostgreSQL{SERVER_CPU}": 500.0,
    f"POST meta/data, list of 1000 rules, PostgreSQL{DATABASE_CPU}": 250.0,
    f"GET /healthz, 16 connections{SERVER_CPU}": 80.0,
    "passwords checked in the storm, SQLite": 60.0,  # a second, two at a time
    "10,000 held polls, SQLite, memory of each": 17.0,  # KB
    "10,000 held polls, SQLite, of a core at rest": 0.5,  # %
    "5,000 WebSockets with heartbeats, memory of each": 20.0,  # KB
    "5,000 WebSockets with heartbeats, of a core": 7.0,  # %
    "memory when idle, PostgreSQL": 90.0,  # MB
    "the same, 64 callers, PostgreSQL": 1_500.0,  # durable, audited writes a second
    "durable insert, driver alone, PostgreSQL": 60.0,  # µs, with 16 connections
    "WAL of one sign-in": 3.1,  # KB
    "commits of one sign-in": 1.9,
    **{
        f"row of {table}, PostgreSQL, with its indexes": size
        for table, size in {
            "user_ids": 93.0,
            "users": 604.0,
            "user_tags": 151.0,
            "sessions": 540.0,
            "login_tokens": 263.0,
            "grants": 685.0,
            "game_sessions": 486.0,
            "role_assignments": 298.0,
            "audit_events": 486.0,
        }.items()
    },
}


@dataclass(frozen=True, slots=True)
class Costs:
    measured: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.measured[name] if name in self.measured else ASSUMED[name]

    def server(self, name: str) -> float:
        """Seconds of CPU of the server for one operation."""
        return self[name + SERVER_CPU] / 1e6

    def database(self, name: str) -> float:
        return self[name + DATABASE_CPU] / 1e6

    def knows_cpu(self, name: str) -> bool:
        return name + SERVER_CPU in self.measured and name + DATABASE_CPU in self.measured

    def row(self, table: str) -> float:
        """Bytes on disk, including its share of every index."""
        return self[f"row of {table}, PostgreSQL, with its indexes"]

    @property
    def assumed(self) -> list[str]:
        return [name for name in ASSUMED if name not in self.measured]
