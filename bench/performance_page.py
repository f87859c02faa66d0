"""Write the table and the plot of docs/performance.md from the newest results.

python -m bench.performance_page [--page docs/performance.md] [--plot docs/performance.svg]
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.costs import DATABASE_CPU, SERVER_CPU
from bench.plots import Stack, stacked_bars
from bench.report import newest_figures
from bench.simulate import markdown_table, replace_between

SERVERS: Final = (
    "Gatehouse on PostgreSQL",
    "oidc-provider on PostgreSQL",
    "Keycloak on PostgreSQL",
    "Ory Hydra on PostgreSQL",
    "Gatehouse on SQLite",
    "oidc-provider on SQLite",
    "django-oauth-toolkit on SQLite",
    "oidc-provider on memory",
)
WORKS: Final = {
    "sign-in (RS256)": "flow RS256",
    "refresh (RS256)": "refresh RS256",
    "userinfo": "userinfo",
    "introspection": "introspection",
    "keys": "JWKS",
}
FLOW: Final = "flow RS256"
MISSING: Final = "-"


def rate_table(figures: Mapping[str, float]) -> Iterator[tuple[str, ...]]:
    """Operations a second of one core, and the CPU time of a sign-in."""
    yield "server, one core", *WORKS, "CPU of a sign-in"
    for server in SERVERS:
        rates = [figures.get(f"{work}, {server}") for work in WORKS.values()]
        if any(rates):
            yield (
                server,
                *(MISSING if rate is None else f"{rate:,.0f}/s" for rate in rates),
                sign_in_cpu(figures, server),
            )


def sign_in_cpu(figures: Mapping[str, float], server: str) -> str:
    parts = cpu_parts(figures, server)
    return " + ".join(f"{part / 1_000:.2f}" for part in parts.values()) + " ms" if parts else MISSING


def cpu_parts(figures: Mapping[str, float], server: str) -> dict[str, float]:
    """Microseconds of one sign-in: of the server, and of its database."""
    names = {"server": f"{FLOW}, {server}{SERVER_CPU}", "PostgreSQL": f"{FLOW}, {server}{DATABASE_CPU}"}
    return {part: figures[name] for part, name in names.items() if name in figures}


def cpu_plot(figures: Mapping[str, float]) -> str:
    stacks = [Stack(label=server, parts=cpu_parts(figures, server)) for server in SERVERS]
    return stacked_bars("CPU time of one sign-in", [one for one in stacks if one.parts], unit="µs")


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.performance_page", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--page", type=Path, default=Path("docs/performance.md"))
    parser.add_argument("--plot", type=Path, default=Path("docs/performance.svg"))
    options = parser.parse_args(words)
    figures = newest_figures()
    page: Path = options.page
    page.write_text(replace_between(page.read_text(), "measured", markdown_table(rate_table(figures))))
    options.plot.write_text(cpu_plot(figures))


if __name__ == "__main__":
    main(sys.argv[1:])
