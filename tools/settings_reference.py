"""Write docs/reference/settings.md from the code; with --check only say whether it is up to date."""

import sys
from pathlib import Path
from typing import Final

from gatehouse.settings.about import MIN_SECRET_LENGTH
from gatehouse.settings.entries import ALL_SETTINGS, SECTIONS, Setting

PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"

INTRODUCTION: Final = f"""\
# Settings

<!-- Written by tools/settings_reference.py from the code. Change the code, then run it again. -->

Gatehouse reads its settings once, when a command starts. Later sources win over earlier ones:

1. the defaults below;
2. a TOML file: the one named by `--config`, else `gatehouse.toml` in the data directory if there is one;
3. environment variables `GATEHOUSE__SECTION__KEY`, in capitals;
4. flags of the command, such as `--port`.

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

`gatehouse config show` prints each setting, its value and where it comes from, with secrets masked.
`gatehouse config check` says whether `gatehouse serve` would start, and if not, everything that is wrong.

**Secrets** can also be read from a file, as above: `…__FILE` in the environment, `{{ file = "PATH" }}`
in TOML (a relative path starts at the TOML file). A list of secrets has one a line. Such a file, and a
TOML file with a secret or a database password in it, must be readable by its owner alone (mode 0600).
What systemd hands over by `LoadCredential=` is private as it is.

**Nothing starts** with a name that does not exist, a name given twice in one place, a value of the
wrong type or out of bounds, text with a line break or an invisible character in it, a `server.base_url`
that is not https, or a secret that is missing, shorter than {MIN_SECRET_LENGTH} characters or an example.
All problems are reported together.

**`--dev`** is for trying and developing on one machine. It allows http and makes its own master key,
`dev.key` in the data directory, and it refuses a `server.base_url` or `server.host` that other machines
could reach. A data directory with a `dev.key` is refused without `--dev`: `gatehouse key init` writes a
production master key file, `gatehouse key rewrap` seals everything with it, then `dev.key` can be
deleted.
"""


def page() -> str:
    return "\n".join([INTRODUCTION, *(table(section) for section in SECTIONS)])


def table(section: str) -> str:
    rows = [row(entry) for entry in ALL_SETTINGS.values() if entry.section == section]
    lines = [
        f"## {section}",
        "",
        str(SECTIONS[section].__doc__),
        "",
        "| setting | value | default | meaning |",
        "|---|---|---|---|",
        *rows,
        "",
    ]
    return "\n".join(lines)


def row(entry: Setting) -> str:
    return f"| `{entry.name}` | {form(entry)} | {default(entry)} | {entry.about.meaning} |"


def form(entry: Setting) -> str:
    about = entry.about
    if entry.choices:
        return " or ".join(f"`{choice}`" for choice in entry.choices) + (f" {about.unit}" if about.unit else "")
    if entry.kind is bool:
        return "`true` or `false`"
    if entry.kind is int:
        return f"{about.low} to {about.high} {about.unit}".rstrip()
    if entry.is_list:
        return (
            "list of secrets"
            if entry.is_secret
            else "list of texts"
            if entry.kind is str
            else "list of networks (CIDR)"
        )
    if about.shortest:
        return f"secret, at least {about.shortest} {about.unit}"
    return "secret" if entry.is_secret else "text"


def default(entry: Setting) -> str:
    usual = entry.about.without or literal(entry.default)
    return f"{usual}; with `--dev` {entry.about.dev}" if entry.about.dev else usual


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
