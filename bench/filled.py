"""A database that was filled a moment ago."""

from typing import Final

from sqlalchemy import text

from gatehouse.storage.statements import Statement, Verb

ANALYZE: Final = Statement(text("ANALYZE"))


def analyze() -> Verb[None]:
    """What a database does by itself some time after it was filled."""
    yield ANALYZE()
