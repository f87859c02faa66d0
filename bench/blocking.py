"""The latency of the public keys beside the heaviest requests that the limits allow (checklist LP-01, goal P16).

The application has the maximum size, and a few hundred people have every role. The p99 while eight clients repeat the
heavy request is compared with the p99 when idle.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx2
import msgspec
from bench.figures import ROUNDS, Figure
from bench.load_heavy import HeavyResult
from bench.load_paced import PacedResult
from bench.login_storm import run_paced, start_paced
from bench.server import Program, run_gatehouse
from tests.support.browser import form_to, hidden_fields

APPLICATION: Final = 50_001
ROLES: Final = 50
AREAS: Final = 20
RULES: Final = 100  # of an area: about 46 of the 48 MB that an application may use
PEOPLE: Final = 200
USER: Final = "1001"
FACTOR: Final = "bench"
PASSWORD: Final = "correct horse battery staple"  # noqa: S105 - of a database that is deleted
AT_ONCE: Final = "8"
SECONDS: Final = 3.0
BEFORE: Final = 0.5  # seconds of heavy requests before the keys are measured
KEYS: Final = ("keys", "4", "200")  # connections, requests a second
GOAL: Final = 3.0  # times the idle figure


def blocking(program: Program, scratch: Path, url: str, kind: str) -> Iterator[Figure]:
    data, file = scratch / "data", scratch / "model.json"
    file.write_text(json.dumps(model_document()))
    apply = ["apply", str(file)]
    run_gatehouse(data, url, apply)
    with program.serving(data, url, pinned=False) as server:
        requests = requests_of(
            server.port, run_gatehouse(data, url, ["user", "token", USER, "--factor", FACTOR]).strip()
        )
        for raw in requests.values():  # once, so that roles and templates are compiled
            run_heavy_clients(server.port, write_request(scratch, raw), "1", 0.0)
        run_paced(server.port, *KEYS, str(BEFORE))
        idle = median(run_paced(server.port, *KEYS, str(SECONDS)).p99 for _ in range(ROUNDS))
        yield Figure(name=f"keys, p99, idle, {kind}", value=idle, unit="ms")
        for name, raw in requests.items():
            rounds = [beside_requests(server.port, write_request(scratch, raw)) for _ in range(ROUNDS)]
            yield from compare_with_idle(name, idle, rounds, kind)
        for name, words in (("apply", apply), ("export", ["export"])):
            rounds = [beside_command(server.port, data, url, words) for _ in range(ROUNDS)]
            yield from compare_with_idle(name, idle, rounds, kind)
        yield Figure(name=f"memory after it, {kind}", value=server.megabytes(), unit="MB")


def compare_with_idle(name: str, idle: float, rounds: list[tuple[PacedResult, float]], kind: str) -> Iterator[Figure]:
    busy = median(keys.p99 for keys, _ in rounds)
    yield Figure(name=f"keys, p99, beside {name}, {kind}", value=busy, unit="ms")
    longest = max(keys.longest for keys, _ in rounds)
    yield Figure(name=f"keys, longest, beside {name}, {kind}", value=longest, unit="ms")
    yield Figure(name=f"{name}, half of them within, {kind}", value=median(half for _, half in rounds), unit="ms")
    yield Figure(name=f"keys, p99, beside {name} by idle, {kind}", value=busy / idle, unit="x", goal=GOAL)


def model_document() -> dict[str, Any]:
    schema = {f"area{area}": {f"rule{n}": {"value": False} for n in range(RULES)} for area in range(AREAS)}
    roles = {
        f"role{role}": {
            "meta": {
                "private_data": {
                    f"area{area}of{role}": {f"rule{n}": {"value": True} for n in range(RULES)}
                    for area in range(AREAS)
                }
            }
        }
        for role in range(ROLES)
    }
    people = [str(int(USER) + number) for number in range(PEOPLE)]
    users = [{"user_id": one, "login": login_of(one), "nick": one, "email_verified": True} for one in people]
    users[0] |= {"administrator": True, "password": PASSWORD}
    assigned = {one: {"roles": list(roles)} for one in people}
    application = {"application_id": APPLICATION, "name": "Large", "schema": {"private_data": schema}}
    return {"users": users, "applications": [{**application, "roles": roles, "users": assigned}]}


def requests_of(port: int, jwt: str) -> Mapping[str, bytes]:
    cookies = sign_in(port)
    who_can = f"/console/access/who?application_id={APPLICATION}&rules=area1."
    deleted = {"kind": "role", "action": "delete", "data": {"name": "role1"}}
    rule = {"rule": "area1of1.rule5"}
    return {
        "list": post_request("meta/data", jwt, action="get", data={}),
        "simulate": post_request("simulate", jwt, data={"change": deleted}),
        "members": post_request("members", jwt, data=rule),
        "members as CSV": post_request("members", jwt, data=rule, options={"format": "csv"}),
        "who can": page_request(who_can, cookies),
        "who can as CSV": page_request(f"{who_can}&format=csv", cookies),
    }


def post_request(path: str, jwt: str, **more: object) -> bytes:
    body = json.dumps({"application_id": APPLICATION, **more}).encode()
    head = (
        f"POST /api/permissions/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Authorization: Bearer {jwt}\r\nFactor: {FACTOR}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def page_request(path: str, cookies: Mapping[str, str]) -> bytes:
    cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: {cookie}\r\n\r\n".encode()


def sign_in(port: int) -> Mapping[str, str]:
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        page = client.get("/sign-in").text
        form = {**hidden_fields(form_to("/sign-in", page)), "login": login_of(USER), "password": PASSWORD}
        response = client.post("/sign-in", data=form)
        if response.status_code != httpx2.codes.SEE_OTHER:
            raise LookupError(f"sign-in answered {response.status_code}")
        return dict(client.cookies)


def login_of(user_id: str) -> str:
    return f"u{user_id}@studio.example"


def write_request(scratch: Path, raw: bytes) -> Path:
    path = scratch / "request.http"
    path.write_bytes(raw)
    return path


def run_heavy_clients(port: int, path: Path, at_once: str, seconds: float) -> HeavyResult:
    command = [sys.executable, "-m", "bench.load_heavy", str(port), str(path), at_once, str(seconds)]
    return read_heavy_result(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))


def read_heavy_result(client: subprocess.Popen[str]) -> HeavyResult:
    output, _ = client.communicate()
    result = msgspec.json.decode(output, type=HeavyResult)
    if set(result.statuses) - {"200"}:
        raise LookupError(f"statuses {result.statuses}")
    return result


def beside_requests(port: int, path: Path) -> tuple[PacedResult, float]:
    command = [sys.executable, "-m", "bench.load_heavy", str(port), str(path), AT_ONCE, str(SECONDS + BEFORE)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as heavy:
        run_paced(port, *KEYS, str(BEFORE))
        keys = run_paced(port, *KEYS, str(SECONDS))
        return keys, read_heavy_result(heavy).p50


def beside_command(port: int, data: Path, url: str, words: list[str]) -> tuple[PacedResult, float]:
    """The command runs on the same database, in a process of its own."""
    with start_paced(port, *KEYS, str(SECONDS)) as keys:
        run_gatehouse(data, url, words)
        output, _ = keys.communicate()
    return msgspec.json.decode(output, type=PacedResult), SECONDS * 1e3
