"""Times in records (R0)."""

from datetime import UTC, datetime


def iso8601(at: int) -> str:
    """ISO 8601 in UTC; a 0 is no time."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""
