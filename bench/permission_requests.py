"""Permission checks and lists over HTTP, for people with twenty roles of fifty rules (goal P12).

Each request is sent by another person with their own JWT, and each check asks about another rule.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import httpx2
from bench.figures import RATIO, Figure
from bench.permissions import APPLICATION, CONDITIONAL, ROLES, RULES
from bench.rounds import Turn, alternate, median_rate, rate_figures, spread_figures, with_results
from bench.server import Program, measure_requests, post_request, run_gatehouse
from tests.support.processes import LOOPBACK

USERS: Final = tuple(str(1_001 + number) for number in range(10))
DOMAIN: Final = "studio.example"  # of their email addresses, for the conditions of roles
FACTOR: Final = "bench"
JSON: Final = "application/json"
CHECK: Final = "check of one rule"
LIST: Final = f"list of {ROLES * RULES} rules"
SHORT_LIST: Final = f"list_short of {ROLES * RULES} rules"
PATHS: Final = {CHECK: "check", LIST: "meta/data", SHORT_LIST: "meta/data"}
LEAST_RATES: Final = {(LIST, "SQLite"): 6_000.0, (LIST, "PostgreSQL"): 3_500.0}
LEAST_RATIOS: Final = {(CHECK, "PostgreSQL"): 1.5}  # times OpenFGA on the same storage


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionServer:
    """A running server with the model, and the requests of each work."""

    name: str
    storage: str
    port: int
    pids: tuple[int, ...]
    requests: Mapping[str, Sequence[str]]
    database: tuple[int, ...] = ()

    def turn(self, work: str) -> Turn:
        measure = partial(measure_requests, self.port, self.requests[work], server=self.pids, database=self.database)
        return Turn(port=self.port, pids=self.pids, measure=measure)


def permission_rates(
    program: Program,
    scratch: Path,
    url: str,
    kind: str,
    *,
    database: tuple[int, ...] = (),
    others: Iterable[AbstractContextManager[PermissionServer]] = (),
) -> Iterator[Figure]:
    """`database` is the pid of PostgreSQL, if that is used."""
    with ExitStack() as stack:
        ours = stack.enter_context(gatehouse(program, scratch, url, kind))
        servers = [replace(one, database=database) for one in (ours, *map(stack.enter_context, others))]
        pids = {pid for one in servers for pid in one.pids}
        for work in PATHS:
            chosen = [one for one in servers if work in one.requests]
            measured = alternate([one.turn(work) for one in chosen], idle=pids)
            chosen, results = with_results(chosen, measured)
            yield from compare(work, chosen, [median_rate(rounds) for rounds in results])
            title = f"POST {PATHS[work]}, {work}, {kind}"
            yield from spread_figures(title, results)
            yield from rate_figures(title, results[0], least=LEAST_RATES.get((work, kind)))
            for other, rounds in zip(chosen[1:], results[1:], strict=True):
                yield from rate_figures(f"{work}, {other.name} on {other.storage}", rounds)


def compare(work: str, servers: Sequence[PermissionServer], rates: Sequence[float]) -> Iterator[Figure]:
    ours = servers[0]
    for other, rate in zip(servers[1:], rates[1:], strict=True):
        least = LEAST_RATIOS.get((work, ours.storage)) if ours.storage == other.storage else None
        title = f"{work} over HTTP, {ours.storage}: times {other.name} on {other.storage}"
        yield Figure(name=title, value=rates[0] / rate, unit=RATIO, least=least)


@contextmanager
def gatehouse(
    program: Program,
    scratch: Path,
    url: str,
    kind: str,
    *,
    settings: Mapping[str, str] | None = None,
    under: Sequence[str] = (),
) -> Iterator[PermissionServer]:
    data = scratch / "data"
    run_gatehouse(data, url, ["apply", str(write_model(scratch))])
    with program.serving(data, url, settings=settings, under=under) as server:
        tokens = {  # they name the address that is served now
            user: run_gatehouse(data, url, ["user", "token", user, "--factor", FACTOR]).strip() for user in USERS
        }
        expect_allowed(server.port, tokens)
        lists = {LIST: "list", SHORT_LIST: "list_short"}
        requests = {
            work: [permission_request(work, token, {"type": shape}, action="get") for token in tokens.values()]
            for work, shape in lists.items()
        }
        checks = [
            permission_request(CHECK, tokens[user], {"checks": [{"rule": rule}]})
            for rule, user in product(all_rules(), USERS)
        ]
        yield PermissionServer(
            name="Gatehouse",
            storage=kind,
            port=server.port,
            pids=server.pids,
            requests={CHECK: checks, **requests},
        )


def permission_request(work: str, jwt: str, data: Mapping[str, Any], **fields: str) -> str:
    body = json.dumps({"application_id": APPLICATION, **fields, "data": data})
    path = f"/api/permissions/{PATHS[work]}"
    return post_request(path, JSON, body, f"Authorization: Bearer {jwt}", f"Factor: {FACTOR}")


def expect_allowed(port: int, tokens: Mapping[str, str]) -> None:
    """Fail unless everyone has the first and the last rule: a wrong answer would be no comparison."""
    first, *_, last = all_rules()
    body = {"application_id": APPLICATION, "data": {"checks": [{"rule": first}, {"rule": last}]}}
    for user, jwt in tokens.items():
        headers = {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}
        response = httpx2.post(f"http://{LOOPBACK}:{port}/api/permissions/check", json=body, headers=headers)
        if response.raise_for_status().json()["data"] != [True, True]:
            raise LookupError(f"user {user} does not have the rules: {response.text}")


def all_rules() -> list[str]:
    return [f"area{role}.rule{rule}" for rule, role in product(range(RULES), range(ROLES))]


def write_model(scratch: Path) -> Path:
    path = scratch / "model.json"
    path.write_text(json.dumps(model_document()))
    return path


def model_document() -> dict[str, Any]:
    """The model of bench/permissions.py in the format of `gatehouse apply`."""
    roles = {
        f"role{n}": {
            "meta": {"private_data": {f"area{n}": {f"rule{m}": {"value": True} for m in range(RULES)}}},
            **({"condition": {"domain": DOMAIN}} if n < CONDITIONAL else {}),
        }
        for n in range(ROLES)
    }
    users = [
        {"user_id": user, "login": f"u{user}@{DOMAIN}", "nick": f"User {user}", "email_verified": True}
        for user in USERS
    ]
    assigned = {user: {"roles": [f"role{n}" for n in range(CONDITIONAL, ROLES)]} for user in USERS}
    return {
        "users": users,
        "applications": [{"application_id": APPLICATION, "name": "Shop", "roles": roles, "users": assigned}],
    }
