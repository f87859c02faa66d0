"""What this machine can test: a test that needs a missing program is skipped, with the reason in the summary.

On CI (CI=true) a missing PostgreSQL or Chromium fails the test instead: otherwise half the suite could go untested
without notice.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final

import pytest

from tests.support.find_programs import (
    OLDEST_POSTGRES,
    find_caddy,
    find_callgrind_control,
    find_chromium,
    find_faketime,
    find_go_tool,
    find_nginx,
    find_nginx_lua,
    find_pgbouncer,
    find_postgres,
    find_prometheus,
)

SKIP_REASON: Final = "this machine has no "
ON_CI: Final = os.environ.get("CI") == "true"  # noqa: TID251 - set by the machine, not a setting of the service


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    name: str
    find: Callable[[], Path | None]
    optional: bool = False


POSTGRES: Final = Capability(name=f"PostgreSQL {OLDEST_POSTGRES} or newer", find=cache(find_postgres))
CHROMIUM: Final = Capability(name="Chromium", find=cache(find_chromium))
NGINX: Final = Capability(name="nginx", find=cache(find_nginx), optional=True)
NGINX_LUA: Final = Capability(name="nginx with Lua", find=cache(find_nginx_lua), optional=True)
CADDY: Final = Capability(name="Caddy", find=cache(find_caddy), optional=True)
PGBOUNCER: Final = Capability(name="PgBouncer", find=cache(find_pgbouncer), optional=True)
PROMETHEUS: Final = Capability(name="Prometheus", find=cache(find_prometheus), optional=True)
ACTIONLINT: Final = Capability(name="actionlint", find=partial(find_go_tool, "actionlint"), optional=True)
HELM: Final = Capability(name="Helm", find=partial(find_go_tool, "helm"), optional=True)
KUBECONFORM: Final = Capability(name="kubeconform", find=partial(find_go_tool, "kubeconform"), optional=True)
OF_CHART_TEST: Final = {ACTIONLINT.name, HELM.name, KUBECONFORM.name}  # what `make chart-test` builds
VALGRIND: Final = Capability(name="valgrind", find=cache(find_callgrind_control), optional=True)
FAKETIME: Final = Capability(name="libfaketime", find=cache(find_faketime), optional=True)


def require_program(capability: Capability, *, on_ci: bool = ON_CI) -> Path:
    """Return the path of the program; skip or fail the test when it is missing."""
    program = capability.find()
    if program is not None:
        return program
    reason = f"{SKIP_REASON}{capability.name}"
    if on_ci and not capability.optional:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def missing_program_lines(skip_reasons: Iterable[str]) -> list[str]:
    """One line for each missing program, with the number of tests it skipped."""
    absent = Counter(name for reason in skip_reasons if (name := reason.partition(SKIP_REASON)[2]))
    return [
        f"NOT TESTED: {count} tests need {name}, absent here (see `make {target}`)"
        for name, count in sorted(absent.items())
        for target in ["chart-test" if name in OF_CHART_TEST else "test-deps"]
    ]
