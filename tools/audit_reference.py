"""Write docs/reference/audit-events.md from the code; with --check only say whether it is up to date."""

import sys
from pathlib import Path
from typing import Final

from gatehouse.audit.events import AuditEvent

PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "audit-events.md"

INTRODUCTION: Final = """\
# Audit events

<!-- Written by tools/audit_reference.py from the code. Change the code, then run it again. -->

Events of the audit log. Each record is written in the same transaction as the change. It has an ID, a time, the
event, an actor (a user ID, `client:` and a client's ID, an application, `cli:` and the operator's name, `setup`,
`service`, …), a subject (a user ID, a client ID, `keys`, `installation`, …), details, and personal data that is
deleted when the account is erased.

Twice a second the service chains and signs new records. `gatehouse audit show` prints them, filtered by `--subject`,
`--event`, the `--record` ID returned with a refused request or the `--reference` shown on an error page;
`gatehouse audit verify` verifies the whole chain.
After a restore the log contains `installation.restored` where it was cut. Events marked *high* need attention.
`client.refused`, `page.refused` and the failures of game sessions are kept with the refused requests, not in the
chain.

| event | meaning |
|---|---|
"""


def page() -> str:
    rows = [f"| `{event.value}` | {event.meaning} |\n" for event in sorted(AuditEvent)]
    return INTRODUCTION + "".join(rows)


def main() -> int:
    if "--check" in sys.argv[1:]:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page()
        print("up to date" if current else f"out of date: run {Path(__file__).name}")
        return 0 if current else 1
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
