"""The accounts of the demo, as they are told: once on the terminal, and in a file for their owner only."""

import os
from pathlib import Path
from typing import Final

from gatehouse.demo.cast import DEMO_PEOPLE, DemoSecrets

ACCOUNTS_FILE: Final = "demo-accounts.txt"
HEADING: Final = ("role", "email", "password")


def accounts_table(secrets: DemoSecrets) -> str:
    rows = [HEADING, *((person.role, person.login, secrets.passwords[person.name]) for person in DEMO_PEOPLE)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADING))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def write_accounts(data: Path, secrets: DemoSecrets) -> None:
    with os.fdopen(os.open(data / ACCOUNTS_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(f"{accounts_table(secrets)}\n")
