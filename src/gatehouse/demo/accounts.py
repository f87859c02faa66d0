"""The accounts of the demo, as they are told: once on the terminal, and in a file for their owner only."""

import os
from pathlib import Path
from typing import Final

from gatehouse.demo.cast import CAST, Secrets

FILE: Final = "demo-accounts.txt"
HEADING: Final = ("role", "email", "password")


def table(secrets: Secrets) -> str:
    rows = [HEADING, *((person.role, person.login, secrets.passwords[person.name]) for person in CAST)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADING))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def write_accounts(data: Path, secrets: Secrets) -> None:
    with os.fdopen(os.open(data / FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(f"{table(secrets)}\n")
