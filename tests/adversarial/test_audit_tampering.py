"""Tampering with the audit log by someone who can write to the database and lacks the master key (checklist OP)."""

# ruff: noqa: S608 - statements contain only names and positions of this test

import re
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from gatehouse.app.instance_key import InstanceKeyMissing
from gatehouse.app.services import Services, open_services
from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.clock import SystemClock
from gatehouse.settings.secret_files import DEV_KEY_FILE
from tests.support.builders import ORIGIN
from tests.support.clock import MovableClock
from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.database_contents import execute_statement
from tests.support.databases import copy_sqlite
from tests.support.postgres import PostgresCluster, run_in_thread
from tests.support.service import RunningService, running_service
from tests.support.studio import a_studio

OPERATIONS: Final = 200
ROUND: Final = 20  # operations between two seals
OLD_ROUNDS: Final = 6  # after which a copy is made
ENVIRONMENT: Final = {
    "GATEHOUSE__SERVER__BASE_URL": "http://localhost:8080",
    "GATEHOUSE__RATES__ENABLED": "false",
}
EVENTS: Final = "audit_events"
SEALS: Final = "audit_seals"
TARGETS: Final = {"events": (EVENTS,), "seals": (SEALS,), "both": (EVENTS, SEALS)}
NO_RECORDS: Final = f"DELETE FROM {EVENTS}"
NO_SEALS: Final = f"DELETE FROM {SEALS}"
NO_HEAD: Final = "DELETE FROM installation WHERE name = 'audit_head'"


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedLog:
    """A database after 200 operations, and the same one after 120 of them."""

    template: Path | str
    older_template: Path | str
    data: Path  # with the master key
    seals: Sequence[int]  # the position of each
    heads: Sequence[str]  # as noted after each

    @property
    def old_end(self) -> int:
        return self.seals[OLD_ROUNDS - 1]

    @property
    def end(self) -> int:
        return self.seals[-1]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def sealed_log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SealedLog:
    data = tmp_path_factory.mktemp("sealed")
    migrated = request.getfixturevalue(f"{request.param}_template")
    url = copy_of(migrated, data, request)
    caller = run_in_thread(prepare(url, data))
    seals, heads = run_in_thread(operate(url, data, caller, rounds=OLD_ROUNDS))
    (data / "older").mkdir()
    older = template_of(copy_of(template_of(url), data / "older", request))
    for table in (EVENTS, SEALS, "installation"):
        run_in_thread(execute_statement(url, f"CREATE TABLE old_{table} AS SELECT * FROM {table}"))
    more_seals, more_heads = run_in_thread(operate(url, data, caller, rounds=OPERATIONS // ROUND - OLD_ROUNDS))
    return SealedLog(
        template=template_of(url),
        older_template=older,
        data=data,
        seals=[*seals, *more_seals],
        heads=[*heads, *more_heads],
    )


def copy_of(template: Path | str, directory: Path, request: pytest.FixtureRequest) -> str:
    if isinstance(template, Path):
        return copy_sqlite(template, directory)
    cluster: PostgresCluster = request.getfixturevalue("postgres_cluster")
    return cluster.create_database_sync(template=template)


def template_of(url: str) -> Path | str:
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:") else url


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    application_id: int
    headers: Mapping[str, str]


async def prepare(url: str, data: Path) -> Caller:
    """Create a studio and its owner, and delete the records that the builders wrote."""
    async with serve(url, data) as service:
        studio = await a_studio(service)
        await execute_statement(url, f"{NO_RECORDS} WHERE place IS NULL")
        return Caller(application_id=studio.shop.application_id, headers=studio.owner.headers)


@asynccontextmanager
async def serve(url: str, data: Path) -> AsyncIterator[RunningService]:
    clock = MovableClock(SystemClock().now())
    async with running_service(url, data, clock=clock, environment=ENVIRONMENT) as service:
        yield service


async def operate(url: str, data: Path, caller: Caller, *, rounds: int) -> tuple[list[int], list[str]]:
    """Create and remove access keys over HTTP; seal after each round, and note the head."""
    seals, heads = [], []
    async with serve(url, data) as service:
        for _ in range(rounds):
            for _ in range(ROUND // 2):
                created = await access_key(service, caller, "save", {})
                await access_key(service, caller, "delete", {"id": created["id"]})
            await service.services.audit.sealer.seal_all()
            end = await service.services.storage.audit.chain_end()
            seals.append(end.last_place)
            heads.append((await service.services.audit.make_verifier().verify()).head)
    return seals, heads


async def access_key(
    service: RunningService, caller: Caller, action: str, data: Mapping[str, str]
) -> Mapping[str, str]:
    body = {"action": action, "application_id": caller.application_id, "data": data}
    response = await service.client.post("/api/permissions/accessKey", json=body, headers=caller.headers)
    assert response.status_code == 200, response.text
    key: Mapping[str, str] = response.json().get("data") or {}
    return key


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """A copy of the database to tamper with."""

    log: SealedLog
    place: InstallationPaths

    @property
    def gatehouse(self) -> CommandLine:
        return self.place.command_line()

    def tamper(self, *statements: str) -> None:
        for statement in statements:
            run_in_thread(execute_statement(self.place.url, statement))

    def problems(self, *options: str | Path) -> list[str]:
        """The problems that verification finds; it exits with 1 if there are any."""
        finished = self.gatehouse.run("audit", "verify", *options, "--json")
        problems: list[str] = finished.json()["problems"]
        assert finished.code == (1 if problems else 0), finished.err
        return problems

    def append_record(self) -> None:
        """Write and seal one more record, as a running service does."""
        run_in_thread(self._append_record())

    async def _append_record(self) -> None:
        async with self.open_victim() as services:
            await note(services)
            await services.audit.sealer.seal_all()

    @asynccontextmanager
    async def open_victim(self) -> AsyncIterator[Services]:
        async with open_services(self.place.load_settings(), clock=SystemClock(), serving=False) as services:
            yield services


async def note(services: Services) -> None:
    await services.storage.accounts.add_record(
        services.core.recorder.record(AuditEvent.USER_CHANGED, ORIGIN, subject="1000000001")
    )


@pytest.fixture
def victim(sealed_log: SealedLog, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Victim]:
    yield from victim_of(sealed_log, sealed_log.template, request, tmp_path)


@pytest.fixture
def older_victim(sealed_log: SealedLog, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Victim]:
    """The whole database as it was after 120 operations."""
    yield from victim_of(sealed_log, sealed_log.older_template, request, tmp_path)


def victim_of(log: SealedLog, template: Path | str, request: pytest.FixtureRequest, data: Path) -> Iterator[Victim]:
    shutil.copy(log.data / DEV_KEY_FILE, data)
    url = copy_of(template, data, request)
    yield Victim(log=log, place=InstallationPaths(data=data, url=url, environment=ENVIRONMENT))
    if not url.startswith("sqlite:"):
        cluster: PostgresCluster = request.getfixturevalue("postgres_cluster")
        cluster.drop_sync(url)


# -- every kind of tampering, and where it is detected --------------------------------------------------


def edit(log: SealedLog, table: str) -> tuple[list[str], list[str]]:
    if table == EVENTS:
        position = log.seals[3] + 7
        return [f"UPDATE {EVENTS} SET actor = 'x' || substr(actor, 2) WHERE place = {position}"], [
            rf"record {position} \(\w+\) was changed"
        ]
    return [f"UPDATE {SEALS} SET at = at + 1 WHERE place = {log.seals[4]}"], [
        rf"the seal at record {log.seals[4]} was changed, or a seal after record {log.seals[3]} was deleted"
    ]


def delete_one(log: SealedLog, table: str) -> tuple[list[str], list[str]]:
    if table == EVENTS:
        position = log.seals[3] + 7
        return [f"{NO_RECORDS} WHERE place = {position}"], [f"record {position} is missing"]
    return [f"{NO_SEALS} WHERE place = {log.seals[4]}"], [
        f"the seal at record {log.seals[5]} was changed, or a seal after record {log.seals[3]} was deleted"
    ]


def swap_two(log: SealedLog, table: str) -> tuple[list[str], list[str]]:
    if table == EVENTS:
        one, other = log.seals[1] + 3, log.seals[1] + 9
        problems = [f"the chain breaks between records {log.seals[1] + 1} and {log.seals[2]}: .*"]
    else:
        one, other = log.seals[6], log.seals[8]
        problems = [f"the seal at record {position} was changed, .*" for position in (one, other)]
    return [
        f"UPDATE {table} SET place = -place WHERE place IN ({one}, {other})",
        f"UPDATE {table} SET place = {other} WHERE place = -{one}",
        f"UPDATE {table} SET place = {one} WHERE place = -{other}",
    ], problems


def cut_tail(log: SealedLog, table: str) -> tuple[list[str], list[str]]:
    return [f"DELETE FROM {table} WHERE place > {log.old_end}"], [end_missing(log, table, log.old_end)]


def delete_all(log: SealedLog, table: str) -> tuple[list[str], list[str]]:
    return [f"DELETE FROM {table}"], [end_missing(log, table, 0)]


def older_copy(log: SealedLog, table: str) -> tuple[list[str], list[str]]:
    return [f"DELETE FROM {table}", f"INSERT INTO {table} SELECT * FROM old_{table}"], [
        end_missing(log, table, log.old_end)
    ]


def end_missing(log: SealedLog, table: str, last: int) -> str:
    if table == EVENTS:
        return f"records {last + 1} to {log.end} are missing at the end"
    return f"the seals end at record {last}; the log was sealed up to record {log.end}"


TAMPERINGS: Final = (edit, delete_one, swap_two, cut_tail, delete_all, older_copy)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("tampering", TAMPERINGS, ids=[tampering.__name__ for tampering in TAMPERINGS])
def test_op_04_tampering_is_found_and_located(victim: Victim, tampering: object, target: str) -> None:
    assert callable(tampering)
    expected: list[str] = []
    for table in TARGETS[target]:
        statements, patterns = tampering(victim.log, table)
        victim.tamper(*statements)
        expected += patterns
    problems = victim.problems()
    assert [one for one in expected if not any(re.fullmatch(one, problem) for problem in problems)] == [], problems
    assert [problem for problem in problems if not any(re.fullmatch(one, problem) for one in expected)] == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("tampering", [cut_tail, delete_all, older_copy], ids=["cut", "deleted", "older"])
def test_op_04_a_log_that_went_on_after_it_was_cut_tells_the_gap_for_ever(
    victim: Victim, tampering: object, target: str
) -> None:
    assert callable(tampering)
    log, tables = victim.log, TARGETS[target]
    for table in tables:
        victim.tamper(*tampering(log, table)[0])
    victim.append_record()
    last = 0 if tampering is delete_all else log.old_end
    sealed, recorded = (last if SEALS in tables else log.end), (last if EVENTS in tables else log.end)
    ends = f"its seals ended at record {sealed} and its records at record {recorded}"
    expected = {f"the log had been sealed up to record {log.end}; {ends}; it continues at record {log.end + 1}"}
    if EVENTS in tables:
        expected.add(f"records {last + 1} to {log.end} are missing")
    if SEALS in tables:
        expected.add(f"the seals after record {last} up to record {log.end} are missing")
    for _ in range(2):
        problems = {re.sub(r"^found broken at \S+: ", "", problem) for problem in victim.problems()}
        assert problems == expected
        victim.append_record()
    [record] = victim.gatehouse.json("audit", "show", "--event", "audit.broken")
    assert record["place"] == log.end + 1
    assert f"it continues at record {log.end + 1}" in victim.gatehouse.run("doctor").out


def test_op_04_a_log_that_was_not_touched_is_sound_and_stays_so(victim: Victim) -> None:
    assert victim.log.end >= OPERATIONS
    assert victim.problems() == []
    assert victim.problems("--head", victim.log.heads[-1]) == []
    victim.append_record()
    assert victim.problems(*(word for head in victim.log.heads for word in ("--head", head))) == []


BYTES: Final = [
    (EVENTS, column)
    for column in ("record_id", "at", "event", "actor", "subject", "request_id", "details", "commitment", "mac")
] + [(SEALS, column) for column in ("at", "link", "kid", "signature")]


@pytest.mark.parametrize(("table", "column"), BYTES)
def test_op_04_a_change_of_any_column_is_found(victim: Victim, table: str, column: str) -> None:
    position = victim.log.seals[4]
    changed = {
        "at": "at - 1",
        "details": "'{' || substr(details, 3)",
        "link": f"(SELECT link FROM {SEALS} WHERE place = {victim.log.seals[0]})",
        "signature": f"(SELECT signature FROM {SEALS} WHERE place = {victim.log.seals[0]})",
        "commitment": "mac",
        "mac": "commitment",
    }.get(column, f"'x' || {column}")
    victim.tamper(f"UPDATE {table} SET {column} = {changed} WHERE place = {position}")
    [problem] = victim.problems()
    assert f"record {position} " in problem
    victim.append_record()
    assert problem in victim.problems()


# -- the head -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statements", [(), (NO_RECORDS, NO_SEALS)], ids=["alone", "with the log"])
def test_op_04_a_head_that_was_deleted_is_missed_for_ever(victim: Victim, statements: Sequence[str]) -> None:
    victim.tamper(NO_HEAD, *statements)
    assert "the head of the audit log is missing or was changed" in victim.problems()
    victim.append_record()
    problems = [
        problem for problem in victim.problems() if "the head of the log was missing or unreadable" in problem
    ]
    assert len(problems) == 1


def test_op_04_a_head_that_was_changed_is_found(victim: Victim) -> None:
    victim.tamper("UPDATE installation SET value = 'AA' || substr(value, 3) WHERE name = 'audit_head'")
    assert victim.problems() == ["the head of the audit log is missing or was changed"]


def test_op_04_an_older_head_is_found_also_after_the_service_went_on(victim: Victim) -> None:
    older = "(SELECT value FROM old_installation WHERE name = 'audit_head')"
    victim.tamper(f"UPDATE installation SET value = {older} WHERE name = 'audit_head'")
    [problem] = victim.problems()
    assert problem.startswith(
        f"there is a seal at record {victim.log.end}, but the log was sealed up to record {victim.log.old_end}"
    )
    victim.append_record()
    [problem] = victim.problems()
    assert f"the log had been sealed up to record {victim.log.old_end}; its seals ended at" in problem


def test_op_04_a_beginning_that_was_cut_off_is_no_retention(victim: Victim) -> None:
    victim.tamper(f"{NO_RECORDS} WHERE place <= {victim.log.seals[2]}")
    assert victim.problems() == [f"records 1 to {victim.log.seals[2]} are missing"]


def test_op_04_retention_is_not_misled_by_the_time_of_a_seal(victim: Victim) -> None:
    victim.tamper(f"UPDATE {SEALS} SET at = 1 WHERE place = {victim.log.seals[2]}")
    assert "Deleted 0 records" in victim.gatehouse("audit", "prune", "--days", "365")
    [problem] = victim.problems()
    assert f"the seal at record {victim.log.seals[2]} was changed" in problem


@pytest.mark.parametrize("place", ["-5", "1000000000", "+1"])
def test_op_04_a_record_that_was_given_a_place_before_it_was_sealed_is_found(victim: Victim, place: str) -> None:
    async def record() -> None:
        async with victim.open_victim() as services:
            await note(services)

    run_in_thread(record())
    position = victim.log.end + 1 if place == "+1" else int(place)
    victim.tamper(f"UPDATE {EVENTS} SET place = {position} WHERE place IS NULL")
    [problem] = victim.problems()
    assert problem.startswith(f"record {position} is ")
    victim.append_record()
    victim.append_record()
    problems = victim.problems()
    assert any(f"record {position} " in problem or f"and {position}:" in problem for problem in problems)
    if position > 0:  # sealing continues after it
        assert any(f"it continues at record {position + 1}" in problem for problem in problems)
        records = victim.gatehouse.json("audit", "show", "--event", "user.changed")
        assert sorted(record["place"] for record in records) == [position, position + 2, position + 3]


def test_op_04_forged_records_hold_up_no_sealing(victim: Victim) -> None:
    victim.tamper(
        *(
            f"INSERT INTO {EVENTS} SELECT '{name}' || place, 1, event, actor, subject, '', '{{{{', NULL, NULL, "
            f"mac, mac, NULL FROM {EVENTS} WHERE place <= 200"
            for name in ("a", "b", "c")
        )
    )
    victim.append_record()
    [record] = victim.gatehouse.json("audit", "show", "--event", "user.changed")
    assert record["place"] == victim.log.end + 1
    assert len(victim.problems()) == 600


def test_op_04_forged_seals_hold_up_no_sealing(victim: Victim) -> None:
    forged = f"SELECT place + {victim.log.end}, at, link, kid, signature FROM {SEALS}"
    victim.tamper(f"INSERT INTO {SEALS} {forged}")
    assert len(victim.problems()) == 1 + OPERATIONS // ROUND
    victim.append_record()
    last = 2 * victim.log.end
    assert any(f"it continues at record {last + 1}" in problem for problem in victim.problems())
    victim.append_record()
    [record] = victim.gatehouse.json("audit", "show", "--event", "audit.broken")
    assert record["place"] == last + 1


def test_op_04_an_installation_without_its_key_does_not_start_a_new_log(victim: Victim) -> None:
    victim.tamper(NO_RECORDS, NO_SEALS, NO_HEAD, "DELETE FROM installation WHERE name = 'instance_key'")
    with pytest.raises(InstanceKeyMissing):
        victim.append_record()


# -- the whole database replaced ------------------------------------------------------------------------


def test_op_04_a_replaced_database_is_found_by_a_noted_head(older_victim: Victim, tmp_path: Path) -> None:
    log = older_victim.log
    assert older_victim.problems() == []
    ends = f"the log ends at record {log.old_end}; the stored head is {log.end}: "
    lines = (f'{{"event": "audit.head", "head": "{head}"}}\n' for head in log.heads)
    (tmp_path / "service.log").write_text("".join(lines))
    for noted in (log.heads[-1], tmp_path / "service.log"):
        (tmp_path / "service.log").write_text(
            "".join(f'{{"event": "audit.head", "head": "{head}"}}\n' for head in log.heads)
        )
        problems = older_victim.problems("--head", noted)
        assert problems[-1].startswith(ends)
    assert len(problems) == OPERATIONS // ROUND - OLD_ROUNDS


def test_op_04_a_replaced_database_that_went_on_is_found_by_a_noted_head(older_victim: Victim) -> None:
    log = older_victim.log

    async def append_record() -> None:
        async with older_victim.open_victim() as services:
            for number in range(log.old_end + 1, log.end + 5):
                await note(services)
                if number in log.seals:
                    await services.audit.sealer.seal_all()
            await services.audit.sealer.seal_all()

    run_in_thread(append_record())
    assert older_victim.problems() == []
    options = [word for head in log.heads[4:7] for word in ("--head", head)]
    [problem] = older_victim.problems(*options)
    assert problem.startswith(
        f"record {log.seals[6]} does not match the stored head: the log was replaced after record {log.old_end}"
    )


def test_op_04_older_tables_with_their_head_are_found_by_a_noted_head(victim: Victim) -> None:
    victim.tamper(
        *(statement for table in (EVENTS, SEALS) for statement in older_copy(victim.log, table)[0]),
        "UPDATE installation SET value = (SELECT value FROM old_installation WHERE name = 'audit_head') "
        "WHERE name = 'audit_head'",
    )
    [problem] = victim.problems("--head", victim.log.heads[-1])
    assert problem.startswith(f"the log ends at record {victim.log.old_end}; the stored head is {victim.log.end}: ")


def test_op_04_a_noted_head_that_was_made_up_is_told(victim: Victim) -> None:
    version, installation, position, link, mac = victim.log.heads[-1].split(".")
    forged = ".".join((version, installation, str(int(position) - 1), link, mac))
    [problem] = victim.problems("--head", forged)
    assert problem == f"this head was not created by this installation, or was changed: {forged}"
    assert "neither a head nor a readable file" in victim.gatehouse.expect_failure(
        "audit", "verify", "--head", "gh1.nothing", code=2
    )


def test_op_04_a_restored_backup_is_sound_and_older_than_the_noted_head(victim: Victim, tmp_path: Path) -> None:
    file = tmp_path / "backup.jsonl.gz"
    created = victim.gatehouse.json("backup", file)
    assert created["audit_head"] == victim.log.heads[-1]
    victim.append_record()
    victim.append_record()
    later = victim.gatehouse("audit", "head").strip()
    victim.gatehouse("restore", file, "--replace")
    assert victim.problems("--head", created["audit_head"]) == []
    [problem] = victim.problems("--head", later)
    assert problem.startswith(f"the log ends at record {victim.log.end}; the stored head is {victim.log.end + 2}: ")
    victim.append_record()
    assert victim.problems("--head", created["audit_head"]) == []
    assert victim.problems("--head", later) != []
