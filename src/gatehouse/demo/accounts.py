"""The ten people of studio.yaml, and their credentials."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from gatehouse.kernel.ids import new_secret

PASSWORD_ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz23456789"  # noqa: S105 - none that looks like another
GROUPS: Final = 4
GROUP_LENGTH: Final = 4  # 4 x 4 characters: 79 bit
ACCESS_KEY_BYTES: Final = 32  # interface §2.6

WINDOWS: Final = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0"
MAC: Final = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.6 Safari/605.1.15"
LINUX: Final = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
PHONE: Final = (
    "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36"
)


class DemoPerson(NamedTuple):
    name: str  # as the variables of studio.yaml have it, in lower case
    user_id: str
    login: str
    role: str  # for the table of accounts
    address: str  # from the networks that documents may use (RFC 5737)
    agent: str

    @property
    def variable(self) -> str:
        return f"PASSWORD_{self.name.upper()}"


STUDIO: Final = "@lanternfish.example"
DEMO_PEOPLE: Final = (
    DemoPerson("mara", "1000000001", f"mara.lindgren{STUDIO}", "administrator", "198.51.100.11", MAC),
    DemoPerson(
        "tobias", "1000000002", f"tobias.kern{STUDIO}", "owner of project Sky Raiders", "198.51.100.12", LINUX
    ),
    DemoPerson("aiko", "1000000003", f"aiko.tanaka{STUDIO}", "owner of project Studio Tools", "198.51.100.13", MAC),
    DemoPerson("priya", "1000000004", f"priya.nair{STUDIO}", "developer of Raiders Hub", "198.51.100.14", LINUX),
    DemoPerson("emil", "1000000005", f"emil.sorensen{STUDIO}", "user manager", "198.51.100.15", WINDOWS),
    DemoPerson(
        "lucas", "1000000006", "lucas.ferreira@northgate-qa.example", "contract tester", "192.0.2.60", WINDOWS
    ),
    DemoPerson("noor", "1000000007", "noor.haddad@mail.example", "player and moderator", "203.0.113.70", MAC),
    DemoPerson(
        "jonas", "1000000008", "jonas.weber@mail.example", "player with a season pass", "203.0.113.80", WINDOWS
    ),
    DemoPerson("chloe", "1000000009", "chloe.martin@post.example", "player on a phone", "203.0.113.90", PHONE),
    DemoPerson("rick", "1000000010", "rick.barlow@post.example", "blocked player", "203.0.113.100", WINDOWS),
)
BY_NAME: Final[Mapping[str, DemoPerson]] = {person.name: person for person in DEMO_PEOPLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSecrets:
    """The secrets of the demo: random, created at the first start, shown once."""

    passwords: Mapping[str, str]  # by the name of the person
    client_secret: str
    access_key: str

    @property
    def variables(self) -> Mapping[str, str]:
        """Return the variables that studio.yaml uses."""
        return {
            **{person.variable: self.passwords[person.name] for person in DEMO_PEOPLE},
            "SAMPLE_CLIENT_SECRET": self.client_secret,
            "SAMPLE_ACCESS_KEY": self.access_key,
        }


def new_secrets() -> DemoSecrets:
    return DemoSecrets(
        passwords={person.name: new_password() for person in DEMO_PEOPLE},
        client_secret=new_secret(),
        access_key=new_access_key(),
    )


def new_password() -> str:
    """Return a password that is easy to type."""
    return "-".join("".join(secrets.choice(PASSWORD_ALPHABET) for _ in range(GROUP_LENGTH)) for _ in range(GROUPS))


def new_access_key() -> str:
    return secrets.token_hex(ACCESS_KEY_BYTES)


# The accounts of the demo as shown: once on the terminal, and in a file for their owner only.


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
