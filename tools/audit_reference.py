"""Write docs/reference/audit-events.md from the code; with --check only say whether it is up to date."""

import sys
from pathlib import Path
from typing import Final

from gatehouse.audit.events import AuditEvent

PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "audit-events.md"

INTRODUCTION: Final = """\
# Audit events

<!-- Written by tools/audit_reference.py from the code. Change the code, then run it again. -->

What the audit log records, each in the transaction of the change it tells of. A record has an id, a time, the
event, an actor (a user id, an application, `cli:` and the operator's name, `setup` or `service`), a subject (a
user id, a client id, `keys`, `installation`, …), details, and a personal part that an erasure deletes.

The service numbers, chains and signs the records a few times a second. `gatehouse audit show` prints them, by
`--subject`, `--event` or the `--record` id that a refused caller was shown; `gatehouse audit verify` reads the
whole chain again. After a restore the log shows `installation.restored` where it was cut.

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
