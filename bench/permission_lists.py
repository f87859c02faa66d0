"""Permission answers over HTTP: a person with twenty roles of fifty rules asks for their own list (goal P12)."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.figures import ROUNDS, Figure, per_second
from bench.permissions import APPLICATION, CONDITIONAL, ROLES, RULES
from bench.server import Program, request_rate
from tests.support.processes import inherited_environment

USER: Final = "1001"
FACTOR: Final = "bench"
PATH: Final = "/api/permissions/meta/data"


def permission_list_rates(program: Program, scratch: Path, url: str, kind: str) -> list[Figure]:
    data = scratch / "data"
    (scratch / "model.json").write_text(json.dumps(model_document()))
    run_gatehouse(data, url, ["apply", "--allow-weak", str(scratch / "model.json")])
    with program.serving(data, url) as server:
        jwt = run_gatehouse(
            data, url, ["user", "token", USER, "--factor", FACTOR]
        ).strip()  # of the address served now
        requests = {
            f"{name} of {ROLES * RULES} rules": write_request(scratch / f"{name}.http", name, jwt)
            for name in ("list", "list_short")
        }
        rounds = [
            {name: request_rate(server.port, f"@{path}") for name, path in requests.items()} for _ in range(ROUNDS)
        ]
    return [per_second(f"POST meta/data, {name}, {kind}", [one[name] for one in rounds]) for name in requests]


def model_document() -> dict[str, Any]:
    """The model of bench/permissions.py, as `gatehouse apply` reads it."""
    roles = {
        f"role{n}": {
            "meta": {"private_data": {f"area{n}": {f"rule{m}": {"value": True} for m in range(RULES)}}},
            **({"condition": {"domain": "studio.example"}} if n < CONDITIONAL else {}),
        }
        for n in range(ROLES)
    }
    held = {USER: {"roles": [f"role{n}" for n in range(CONDITIONAL, ROLES)]}}
    return {
        "users": [{"user_id": USER, "login": "anna@studio.example", "nick": "Anna", "email_verified": True}],
        "applications": [{"application_id": APPLICATION, "name": "Shop", "roles": roles, "users": held}],
    }


def run_gatehouse(data: Path, url: str, words: Sequence[str]) -> str:
    whole = [sys.executable, "-m", "gatehouse", *words, "--dev", "--data", str(data)]
    environment = inherited_environment({"GATEHOUSE__DATABASE__URL": url})
    return subprocess.run(whole, check=True, capture_output=True, text=True, env=environment).stdout


def write_request(path: Path, kind: str, jwt: str) -> Path:
    """The request as it goes over the wire, for bench/load.py to send with another number each time."""
    body = json.dumps({"action": "get", "application_id": APPLICATION, "data": {"type": kind}})
    head = [
        f"POST {PATH} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {jwt}",
        f"Factor: {FACTOR}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "X-Number: {number}",
    ]
    path.write_text("\r\n".join((*head, "", body)), newline="")
    return path
