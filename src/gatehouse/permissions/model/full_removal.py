"""What goes with a project that is removed for good (R5)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureCounts:
    """A removed project, and how much of what is its own."""

    project_id: str
    title: str
    applications: int
    roles: int
    clients: int
    keys: int  # access keys, public keys, service JWTs and e-mail secrets of its applications
    groups: int
    service_accounts: int
    people: int  # of whom something is written in it or in its applications
    connections: int  # of its applications to other projects
