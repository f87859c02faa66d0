"""Write docs/reference/settings.md from the code; with --check only say whether it is up to date."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gatehouse.fields.model import Kind
from gatehouse.settings.entries import ALL_SETTINGS, SECTIONS, TABLE_SETTINGS, TABLES, Setting
from gatehouse.settings.info import MIN_SECRET_LENGTH

PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"

INTRODUCTION: Final = f"""\
# Settings

<!-- Written by tools/settings_reference.py from the code. Change the code, then run it again. -->

Gatehouse reads its settings when a command starts. Later sources override earlier ones:

1. the defaults below;
2. the database, for the settings marked with *live*: administrators change them with `gatehouse config set`, the
   API or `apply`, and every node uses them within a second;
3. a TOML file: the one given with `--config`, or `gatehouse.toml` in the data directory if present;
4. environment variables `GATEHOUSE__SECTION__KEY`, in upper case;
5. command line options, such as `--port`.

The same settings in the file and in the environment:

```toml
[server]
base_url = "https://login.studio.example"
trusted_proxies = ["10.0.0.0/8", "fd00::/8"]

[security]
master_key = {{ file = "/etc/gatehouse/master.key" }}
```

```sh
GATEHOUSE__SERVER__BASE_URL=https://login.studio.example
GATEHOUSE__SERVER__TRUSTED_PROXIES=10.0.0.0/8,fd00::/8
GATEHOUSE__SECURITY__MASTER_KEY__FILE=/etc/gatehouse/master.key
```

`gatehouse config show` prints every setting with its value and source, with `--stored` those of the database too;
secrets are masked.
`gatehouse config check` checks whether `gatehouse serve` would start and lists all problems.

**Secrets** can also be read from a file, as above: `…__FILE` in the environment, `{{ file = "PATH" }}`
in TOML (relative paths are relative to the TOML file). A list of secrets has one per line. Such a file, and a
TOML file that contains a secret or a database password, must be readable only by its owner (mode 0600).
Files from systemd's `LoadCredential=` are accepted as they are.

**Gatehouse does not start** with an unknown or duplicate setting, a value of the wrong type or out of range, text
that contains a line break or an invisible character, a `server.base_url` that is not https, or a secret that is
missing, shorter than {MIN_SECRET_LENGTH} characters or an example. All problems are reported together.

**`--dev`** is for trying Gatehouse and for development on one machine. It allows http, creates its own master key,
`dev.key` in the data directory, and rejects a `server.base_url` or `server.host` that other machines could reach. A
data directory with a `dev.key` is rejected without `--dev`. To move to production, create a master key file with
`gatehouse key init`, re-encrypt everything with `gatehouse key rewrap` and delete `dev.key`.
"""


def page() -> str:
    sections = [
        table(section, str(sheet.__doc__), [entry for entry in ALL_SETTINGS.values() if entry.group == section])
        for section, sheet in SECTIONS.items()
    ]
    tables = [table(name, str(TABLES[name].__doc__), list(rows.values())) for name, rows in TABLE_SETTINGS.items()]
    return "\n".join([INTRODUCTION, *sections, *tables])


def table(section: str, about: str, entries: Sequence[Setting]) -> str:
    lines = [
        f"## {section}",
        "",
        about,
        "",
        "| setting | value | default | meaning |",
        "|---|---|---|---|",
        *map(row, entries),
        "",
    ]
    return "\n".join(lines)


def row(entry: Setting) -> str:
    live = " *Live.*" if entry.field.stored else ""
    return f"| `{entry.path}` | {form(entry)} | {default(entry)} | {entry.field.help}{live} |"


def form(entry: Setting) -> str:
    field = entry.field
    if entry.choices:
        return " or ".join(f"`{choice}`" for choice in entry.choices) + (f" {field.unit}" if field.unit else "")
    if entry.kind is Kind.FLAG:
        return "`true` or `false`"
    if entry.kind is Kind.NUMBER:
        return f"{field.minimum} to {field.maximum} {field.unit}".rstrip()
    if entry.is_list:
        return (
            "list of secrets"
            if entry.is_secret
            else "list of texts"
            if entry.member_type is str
            else "list of networks (CIDR)"
        )
    if entry.is_secret and field.minimum:
        return f"secret, at least {field.minimum} {field.unit}"
    return "secret" if entry.is_secret else "text"


def default(entry: Setting) -> str:
    usual = entry.field.without or literal(entry.default)
    return f"{usual}; with `--dev` {entry.field.dev}" if entry.field.dev else usual


def literal(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int) or value:
        return f"`{value}`"
    return "none"


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
