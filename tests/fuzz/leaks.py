"""A schemathesis check: no response reveals internals of the service (checklist HT-25)."""

from typing import Final

import schemathesis
from schemathesis import Case, CheckContext, Response

INSIDE: Final = (b"Traceback", b"site-packages", b"sqlalchemy", b"asyncpg", b"apsw.", b"PRIVATE KEY", b"msgspec.")


@schemathesis.check
def nothing_from_inside(_context: CheckContext, response: Response, _case: Case) -> None:
    leaks = [word for word in INSIDE if word in response.content]
    assert not leaks, leaks
