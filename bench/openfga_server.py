"""OpenFGA in memory or on PostgreSQL, with the model of bench/permission_requests.py.

A role has users as members, and a rule is granted to the members of a role. A role with a condition has every user as
a member, under the condition that the domain in the request is the right one.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from secrets import token_urlsafe
from typing import Any, Final

import httpx2
import msgspec
from bench.machine import on_core
from bench.permission_requests import CHECK, DOMAIN, JSON, LIST, USERS, PermissionServer, all_rules
from bench.permissions import CONDITIONAL, ROLES, RULES
from bench.server import post_request, wait_until_healthy
from tests.interop.toolchains import find_openfga
from tests.support.processes import LOOPBACK, WatchedProcess, free_port
from tools.client_deps import OPENFGA_PROGRAM
from tools.install import ensure_installed

NAME: Final = "OpenFGA"
CONNECTIONS: Final = 10  # to the database, as Gatehouse has
KEY: Final = token_urlsafe(32)  # of the caller
TUPLES_PER_WRITE: Final = 100  # the default limit
TIMEOUT: Final = 60.0  # seconds
OPTIONS: Final = (
    "--playground-enabled=false",
    "--metrics-enabled=false",
    "--log-level=error",
    "--authn-method=preshared",
    f"--authn-preshared-keys={KEY}",
)
CONTEXT: Final = {"domain": DOMAIN}
CONDITION: Final = {
    "name": "in_domain",
    "expression": f'domain == "{DOMAIN}"',
    "parameters": {"domain": {"type_name": "TYPE_NAME_STRING"}},
}
MODEL: Final[dict[str, Any]] = {
    "schema_version": "1.1",
    "type_definitions": [
        {"type": "user"},
        {
            "type": "role",
            "relations": {"member": {"this": {}}},
            "metadata": {
                "relations": {
                    "member": {
                        "directly_related_user_types": [
                            {"type": "user"},
                            {"type": "user", "wildcard": {}, "condition": CONDITION["name"]},
                        ]
                    }
                }
            },
        },
        {
            "type": "rule",
            "relations": {"granted": {"this": {}}},
            "metadata": {
                "relations": {"granted": {"directly_related_user_types": [{"type": "role", "relation": "member"}]}}
            },
        },
    ],
    "conditions": {CONDITION["name"]: CONDITION},
}


def has_openfga() -> bool:
    ensure_installed(OPENFGA_PROGRAM)
    return find_openfga() is not None


@contextmanager
def openfga(database_url: str | None = None) -> Iterator[PermissionServer]:
    """Without a database it stores everything in memory."""
    program = find_openfga()
    assert program is not None  # noqa: S101 - the caller has checked
    storage = [] if database_url is None else datastore_options(database_url)
    if storage:
        subprocess.run([program, "migrate", *storage], check=True, capture_output=True)
        storage += [f"--datastore-max-open-conns={CONNECTIONS}", f"--datastore-max-idle-conns={CONNECTIONS}"]
    port, grpc_port = free_port(), free_port()
    addresses = [f"--http-addr={LOOPBACK}:{port}", f"--grpc-addr={LOOPBACK}:{grpc_port}"]
    with on_core(0):
        process = WatchedProcess([str(program), "run", *addresses, *storage, *OPTIONS])
    with process:
        origin = f"http://{LOOPBACK}:{port}"
        wait_until_healthy(process, f"{origin}/healthz")
        headers = {"Authorization": f"Bearer {KEY}"}
        with httpx2.Client(base_url=origin, headers=headers, timeout=TIMEOUT) as client:
            store, model = write_model(client)
            expect_allowed(client, store, model)
        yield PermissionServer(
            name=NAME,
            storage="memory" if database_url is None else "PostgreSQL",
            port=port,
            pids=(process.pid,),
            requests={
                CHECK: [
                    openfga_request(store, "check", check_body(model, user, rule))
                    for rule, user in product(all_rules(), USERS)
                ],
                LIST: [openfga_request(store, "list-objects", list_body(model, user)) for user in USERS],
            },
        )


def datastore_options(database_url: str) -> list[str]:
    uri = f"postgres://{database_url.partition('://')[2]}?sslmode=disable"
    return ["--datastore-engine=postgres", f"--datastore-uri={uri}"]


def write_model(client: httpx2.Client) -> tuple[str, str]:
    """The ids of the store and of its model."""
    store = str(client.post("/stores", json={"name": "bench"}).raise_for_status().json()["id"])
    created = client.post(f"/stores/{store}/authorization-models", json=MODEL).raise_for_status().json()
    model = str(created["authorization_model_id"])
    tuples = list(model_tuples())
    for start in range(0, len(tuples), TUPLES_PER_WRITE):
        writes = {"tuple_keys": tuples[start : start + TUPLES_PER_WRITE]}
        body = {"writes": writes, "authorization_model_id": model}
        client.post(f"/stores/{store}/write", json=body).raise_for_status()
    return store, model


def model_tuples() -> Iterator[dict[str, Any]]:
    for role, rule in product(range(ROLES), range(RULES)):
        yield {"user": f"role:role{role}#member", "relation": "granted", "object": f"rule:area{role}.rule{rule}"}
    for role in range(CONDITIONAL):
        condition = {"name": CONDITION["name"]}
        yield {"user": "user:*", "relation": "member", "object": f"role:role{role}", "condition": condition}
    for role, user in product(range(CONDITIONAL, ROLES), USERS):
        yield {"user": f"user:{user}", "relation": "member", "object": f"role:role{role}"}


def check_body(model: str, user: str, rule: str) -> dict[str, Any]:
    asked = {"user": f"user:{user}", "relation": "granted", "object": f"rule:{rule}"}
    return {"tuple_key": asked, "authorization_model_id": model, "context": CONTEXT}


def list_body(model: str, user: str) -> dict[str, Any]:
    asked = {"user": f"user:{user}", "relation": "granted", "type": "rule"}
    return {**asked, "authorization_model_id": model, "context": CONTEXT}


def openfga_request(store: str, operation: str, body: dict[str, Any]) -> str:
    text = msgspec.json.encode(body).decode()
    return post_request(f"/stores/{store}/{operation}", JSON, text, f"Authorization: Bearer {KEY}")


def expect_allowed(client: httpx2.Client, store: str, model: str) -> None:
    """Fail unless everyone has every rule: a wrong answer would be no comparison."""
    rules = all_rules()
    for user in USERS:
        for rule in (rules[0], rules[-1]):
            checked = client.post(f"/stores/{store}/check", json=check_body(model, user, rule))
            if not checked.raise_for_status().json()["allowed"]:
                raise LookupError(f"user {user} does not have rule {rule}: {checked.text}")
        listed = client.post(f"/stores/{store}/list-objects", json=list_body(model, user))
        if len(listed.raise_for_status().json()["objects"]) != len(rules):
            raise LookupError(f"user {user} does not have all rules")
