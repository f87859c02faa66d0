"""Rehearse disasters with a production-sized installation: `make drill` (docs/operations/runbook.md).

Fills a PostgreSQL with people, promotes its standby while people sign in, backs up, restores into an empty directory
and into a new cluster, and rotates the master key. After each step the audit log must verify with the head that was
noted before, so that nothing acknowledged is missing. `--write` puts the times into the runbook.
"""

import argparse
import asyncio
import csv
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import httpx2
from tests.support.browser import PASSWORD
from tests.support.postgres import ADMINISTRATOR, PostgresCluster, database_name
from tests.support.postgres_replicas import Standby
from tests.support.processes import GATEHOUSE_COMMAND, LOOPBACK, Node, inherited_environment
from tests.support.tls import NO_TRUST_STORE

from tools.repository import ROOT

RUNBOOK: Final = ROOT / "docs" / "operations" / "runbook.md"
TABLE: Final = re.compile(r"(?<=<!-- drill -->\n).*?(?=<!-- /drill -->)", re.DOTALL)
ANNA: Final = "anna@studio.example"
SIGN_INS: Final = 100  # before and after the head is noted
COMMAND_TIMEOUT: Final = 3_600
READY_TIMEOUT: Final = 60.0
GLANCE: Final = 0.05
MEGABYTE: Final = 2**20
OK: Final = 200

T = TypeVar("T")


class DrillFailed(Exception):
    """Says what went wrong."""


@dataclass(slots=True)
class Drill:
    people: int
    workshop: Path
    steps: list[tuple[str, float, str]] = field(default_factory=list)  # what, seconds, remark

    def time(self, name: str, work: Callable[[], T], remark: Callable[[T], str] = lambda _: "") -> T:
        began = time.monotonic()
        result = work()
        seconds = time.monotonic() - began
        self.steps.append((name, seconds, remark(result)))
        print(f"{name:<58}{seconds:8.1f} s  {remark(result)}", flush=True)
        return result

    def table(self) -> str:
        steps = [(name, f"{seconds:.1f} s" if seconds else "", remark) for name, seconds, remark in self.steps]
        rows = [f"| {' | '.join(step)} |" for step in steps]
        return "\n".join(["| Step | Time | |", "|---|---|---|", *rows, ""])


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An installation: its data directory and settings."""

    data: Path
    environment: Mapping[str, str]

    def gatehouse(self, *arguments: str | Path) -> str:
        command = [*GATEHOUSE_COMMAND, *map(str, arguments), "--data", str(self.data)]
        ended = subprocess.run(
            command,
            env=inherited_environment(self.environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_TIMEOUT,
        )
        if ended.returncode:
            raise DrillFailed(f"{' '.join(map(str, arguments[:2]))}: {ended.stdout[-500:]}{ended.stderr[-500:]}")
        return ended.stdout

    def verify(self, head: str) -> str:
        """Verify the log with a head that was noted elsewhere; return what it says."""
        return self.gatehouse("audit", "verify", "--head", head).splitlines()[0]

    @contextmanager
    def node(self) -> Iterator[Node]:
        with Node(data=self.data, flags=(), environment=self.environment) as node:
            yield node
            node.terminate()


def sign_in(client: httpx2.Client, times: int) -> int:
    """Sign in as often; return how many times the service said yes."""
    count = 0
    for _ in range(times):
        response = client.post("/proxy/api/login", json={"login": ANNA, "password": PASSWORD})
        count += response.status_code == OK and response.json()["status"] == "OK"
    return count


def wait_until_ready(address: str) -> None:
    ends = time.monotonic() + READY_TIMEOUT
    with httpx2.Client(base_url=address, verify=NO_TRUST_STORE) as client:
        while time.monotonic() < ends:
            if client.get("/readyz").status_code == OK:
                return
            time.sleep(GLANCE)
    raise DrillFailed("the node is not ready")


def settings(url: str, key: str, *, previous: str = "") -> dict[str, str]:
    found = {
        "GATEHOUSE__DATABASE__URL": url,
        "GATEHOUSE__DATABASE__STANDBY_SYNCHRONOUS": "true",
        "GATEHOUSE__SECURITY__MASTER_KEY": key,
        "GATEHOUSE__SERVER__BASE_URL": "https://id.example.org",
        "GATEHOUSE__RATES__ENABLED": "false",
        "GATEHOUSE__PASSWORDS__MEMORY_KIB": "19456",  # sign-ins are counted here, not hashes
        "GATEHOUSE__PASSWORDS__TIME_COST": "2",
    }
    return found | ({"GATEHOUSE__SECURITY__PREVIOUS_MASTER_KEYS": previous} if previous else {})


def people_file(drill: Drill) -> Path:
    path = drill.workshop / "people.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("login", "nick", "email_verified"))
        rows.writerows(
            (f"person{number}@studio.example", f"Person {number}", "true") for number in range(drill.people)
        )
    return path


def fill(drill: Drill, place: Place) -> None:
    place.gatehouse("migrate")
    password = drill.workshop / "password"
    password.write_text(PASSWORD)
    place.gatehouse("admin", "create", "--login", ANNA, "--nick", "Anna", "--password-file", password)
    place.gatehouse("import", "--from", "csv", people_file(drill))


def seal(place: Place) -> str:
    """Let a node seal everything; return the head."""
    with place.node():
        pass
    return place.gatehouse("audit", "head").strip()


def fail_over(drill: Drill, primary: PostgresCluster, database: str, key: str) -> None:
    """Kill the primary while people sign in, promote the standby, and count what it has."""
    with Standby(primary) as standby:
        asyncio.run(standby.make_synchronous())
        hosts = ",".join(f"{LOOPBACK}:{server.port}" for server in (primary, standby))
        url = f"postgresql://{ADMINISTRATOR}@{hosts}/{database}?target_session_attrs=read-write"
        place = Place(data=drill.workshop / "node", environment=settings(url, key))
        with place.node() as node, httpx2.Client(base_url=node.address, verify=NO_TRUST_STORE) as client:
            accepted = sign_in(client, SIGN_INS)
            head = place.gatehouse("audit", "head").strip()
            accepted += sign_in(client, SIGN_INS)
            primary.stop("immediate")

            def promote() -> None:
                asyncio.run(standby.promote())
                wait_until_ready(node.address)

            drill.time("Promote the standby, until the node serves again", promote)
            accepted += sign_in(client, 1)
        verdict = drill.time("Verify the audit log after the promotion", lambda: place.verify(head), str)
        stored = place.gatehouse("audit", "show", "--event", "login.done", "--limit", "10000", "--json").count(
            '"login.done"'
        )
        if stored < accepted or "Verified" not in verdict:
            raise DrillFailed(f"{accepted} sign-ins were acknowledged, {stored} are in the log: {verdict}")
        drill.steps.append(("Sign-ins acknowledged, found after the promotion", 0.0, f"{accepted}, {stored}"))
        back_up_and_restore(drill, place, key)


def back_up_and_restore(drill: Drill, place: Place, key: str) -> None:
    head = seal(place)
    backup = drill.workshop / "backup.jsonl.gz"
    drill.time(
        f"Back up {drill.people:,} people",
        lambda: place.gatehouse("backup", backup),
        lambda _: f"{backup.stat().st_size / MEGABYTE:.1f} MB",
    )
    empty = drill.workshop / "empty"
    empty.mkdir(mode=0o700)
    sqlite = Place(data=empty, environment=settings(f"sqlite:///{empty}/gatehouse.db", key))
    drill.time("Restore into an empty directory (SQLite)", lambda: sqlite.gatehouse("restore", backup))
    check(drill, sqlite, head)
    with PostgresCluster(durable=True) as cluster:
        url = cluster.create_database_sync()
        restored = Place(data=drill.workshop / "restored", environment=settings(url, key))
        drill.time("Restore into a new PostgreSQL", lambda: restored.gatehouse("restore", backup))
        check(drill, restored, head)
        rotate_master_key(drill, restored, url, key)


def check(drill: Drill, place: Place, head: str) -> None:
    """The log must have the head that was noted before the backup, and people must be able to sign in."""
    verdict = drill.time("Verify the audit log after the restore", lambda: place.verify(head), str)
    if "Verified" not in verdict:
        raise DrillFailed(verdict)

    def serve() -> int:
        with place.node() as node, httpx2.Client(base_url=node.address, verify=NO_TRUST_STORE) as client:
            return sign_in(client, 1)

    if drill.time("Start a node and sign in", serve) != 1:
        raise DrillFailed("no one can sign in after the restore")


def rotate_master_key(drill: Drill, place: Place, url: str, old: str) -> None:
    new = secrets.token_hex(32)
    both = Place(data=place.data, environment=settings(url, new, previous=old))
    drill.time("Re-encrypt all secrets with a new master key", lambda: both.gatehouse("key", "rewrap"))
    alone = Place(data=place.data, environment=settings(url, new))
    with alone.node() as node, httpx2.Client(base_url=node.address, verify=NO_TRUST_STORE) as client:
        if sign_in(client, 1) != 1:
            raise DrillFailed("no one can sign in with the new master key")


def main() -> int:
    parser = argparse.ArgumentParser(description="Rehearse a failover, a restore and a key rotation.")
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--write", action="store_true", help="write the times into docs/operations/runbook.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gatehouse-drill-") as folder:
        drill = Drill(people=options.people, workshop=Path(folder))
        try:
            with PostgresCluster(durable=True) as primary:
                url, key = primary.create_database_sync(), secrets.token_hex(32)
                place = Place(data=drill.workshop / "first", environment=settings(url, key))
                drill.time(f"Create {drill.people:,} people", lambda: fill(drill, place))
                fail_over(drill, primary, database_name(url), key)
        except DrillFailed as problem:
            print(f"FAILED: {problem}", file=sys.stderr)
            return 1
    if options.write:
        cores = f"Measured on {os.cpu_count()} cores with {drill.people:,} people.\n\n"
        RUNBOOK.write_text(TABLE.sub(lambda _: cores + drill.table(), RUNBOOK.read_text(encoding="utf-8")))
    print("the drill succeeded: nothing acknowledged is missing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
