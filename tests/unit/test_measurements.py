"""The benchmark's arithmetic: a wrong measurement is worse than none."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import CalledProcessError
from threading import Thread
from typing import Final
from xml.etree import ElementTree as ET

import pytest
from bench import simulate as simulation
from bench.costs import ASSUMED, Costs
from bench.figures import Figure
from bench.floors import REST, floor_stacks
from bench.floors import WORKS as FLOOR_WORKS
from bench.load import LoadResult, numbered
from bench.machine import Machine
from bench.performance_page import cpu_plot, rate_table
from bench.processes import process_tree, processor_seconds, stopped
from bench.report import newest_figures, save_run
from bench.rounds import Turn, alternate, rate_figures, spread_figures, with_results
from bench.simulate import Habits, Installation, Plan, price_table, simulate, write_plans
from bench.single_sign_on import limits


@pytest.fixture(autouse=True)
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "SAMPLE", 20_000)


MACHINE = Machine(
    processor="a processor", cores=2, system="Linux", python="3.11", versions={"SQLite": "3"}, commit="c", load=0.1
)
HABITS = Habits(users=20_000, sockets=0.0, leaving=0.0, spread=0.0, wait=62.0)
FIGURES = [
    Figure(name="flow, us", value=900.0, unit="/s"),
    Figure(name="flow: times others <&>", value=3.0, unit="x", least=2.3),
    *(Figure(name=f"poll {n}", value=float(n), unit="µs", curve="poll, SQLite", at=n) for n in (1_000, 2_000)),
]


def test_a_run_is_kept_with_ratios_first_and_plots_that_are_xml(tmp_path: Path) -> None:
    directory = save_run({"sign-on": FIGURES}, MACHINE, 1_800_000_000, tmp_path)
    page = (directory / "table.md").read_text()
    assert page.index("times others") < page.index("flow, us")
    assert "over 2.3" in page
    assert "a processor, 2 cores" in page
    drawn = {file.stem: ET.fromstring(file.read_text()) for file in directory.glob("*.svg")}  # noqa: S314 - our own
    assert drawn.keys() == {"peers", "growth"}
    assert newest_figures(tmp_path)["flow, us"] == 900.0


def test_a_later_run_of_one_part_leaves_the_others_known(tmp_path: Path) -> None:
    save_run({"sign-on": FIGURES}, MACHINE, 1_800_000_000, tmp_path)
    save_run({"sign-on": [replace(FIGURES[0], value=1_000.0)]}, MACHINE, 1_800_000_100, tmp_path)
    assert newest_figures(tmp_path)["flow, us"] == 1_000.0
    assert newest_figures(tmp_path)["flow: times others <&>"] == 3.0


def test_a_limit_is_made_of_what_was_measured_in_the_same_run() -> None:
    known = {
        "sign a user token, RS256": 400.0,
        "sign a user token, ES256": 60.0,
        "GET /healthz, 16 connections": 10_000.0,  # 100 µs
        "the same, 64 callers, SQLite": 5_000.0,  # 200 µs
        "exchange RS256, Gatehouse on SQLite": 1_000.0,
        "flow RS256, oidc-provider on memory": 625.0,
        "refresh ES256, oidc-provider on SQLite": 1_000.0,
    }
    measured = [Figure(name=name, value=value, unit="") for name, value in known.items()]
    figures = {figure.name: figure.value for figure in limits(measured)}
    alone = "signatures and empty answers alone, times oidc-provider on"
    assert figures == {
        "exchange RS256, share of the limit": pytest.approx(0.7),
        f"flow RS256, SQLite: {alone} memory": pytest.approx(1e6 / 600 / 625),
        f"refresh ES256, SQLite: {alone} SQLite": pytest.approx(6.25),
    }
    assert list(limits(measured[1:])) == []


def test_floors_are_subtracted_from_the_cost_of_one_request(tmp_path: Path) -> None:
    known = {
        "sign a user token, RS256": 400.0,
        "durable insert, driver alone, SQLite": 50.0,
        "lookup by key, driver alone, SQLite": 10.0,
        "bare uvicorn, empty 200, 16 connections": 25_000.0,  # 40 µs
        "flow RS256, Gatehouse on SQLite": 1_000.0,  # 1,000 µs
        "userinfo, Gatehouse on SQLite": 25_000.0,  # 40 µs, less than the floor
        "userinfo, Gatehouse on PostgreSQL": 2_000.0,  # no floor was measured
    }
    measured = [Figure(name=name, value=value, unit="") for name, value in known.items()]
    flow, userinfo = floor_stacks(measured)
    assert flow.parts.keys() == {*FLOOR_WORKS["flow RS256"], REST}
    assert sum(flow.parts.values()) == pytest.approx(1_000)
    assert flow.parts[REST] == pytest.approx(1_000 - 400 - 2 * 50 - 10 - 2 * 40)
    assert userinfo.parts[REST] == 0
    place = save_run({"answers": measured}, MACHINE, 1_800_000_000, tmp_path)
    assert ET.fromstring((place / "floors.svg").read_text()) is not None  # noqa: S314 - our own


def test_a_round_has_a_rate_and_the_processor_time_of_one_operation() -> None:
    rounds = [LoadResult(operations=n, seconds=2.0, server=1.0, database=0.0) for n in (1_000, 2_000, 1_500)]
    figures = {figure.name: figure.value for figure in rate_figures("flow", rounds)}
    assert figures == {"flow": 750.0, "flow, CPU of the server": pytest.approx(1e6 / 1_500)}
    assert [figure.value for figure in spread_figures("flow", [rounds, rounds[:1]])] == [2.0]


def test_a_spread_is_printed_beside_that_of_the_machine_itself() -> None:
    rounds = [LoadResult(operations=n, seconds=1.0, server=1.0, database=0.0, fixed_loop=1 / n) for n in (100, 150)]
    figures = {figure.name: figure.value for figure in spread_figures("flow", [rounds])}
    assert figures == {
        "flow: fastest round by slowest": 1.5,
        "flow: fixed loop, slowest by fastest": pytest.approx(1.5),
    }


def test_requests_of_a_load_are_sent_in_turn_with_a_number_each() -> None:
    requests = numbered(["a {number} {number}", "b"])
    assert [next(requests) for _ in range(3)] == [b"a 1000000000 1000000000", b"b", b"a 1000000002 1000000002"]


def test_a_stopped_server_uses_no_processor_time() -> None:
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    with subprocess.Popen([sys.executable, "-c", script]) as parent:
        try:
            wait_until(lambda: len(process_tree(parent.pid)) == 2)
            with stopped([parent.pid]):
                before = processor_seconds([parent.pid])
                time.sleep(0.2)
                assert processor_seconds([parent.pid]) == before
            wait_until(lambda: processor_seconds([parent.pid]) > before)
        finally:
            for pid in reversed(process_tree(parent.pid)):
                os.kill(pid, signal.SIGKILL)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_every_second_of_polling_is_counted_once() -> None:
    """Each game waits for 62 seconds: twice 30 held, two pauses of one second, and no third poll."""
    day = simulate(HABITS)
    sign_ins = HABITS.sign_ins
    assert sum(day.registered) * simulation.SLOT == pytest.approx(sign_ins)
    assert sum(day.polls) * simulation.SLOT == pytest.approx(sign_ins * 2)
    assert sum(day.held) * simulation.SLOT == pytest.approx(sign_ins * 60)
    assert sum(day.sockets) == 0


def test_the_same_seed_is_the_same_day_and_the_evening_is_its_peak() -> None:
    assert simulate(HABITS) == simulate(HABITS)
    assert simulate(HABITS) != simulate(replace(HABITS, seed=8))
    registered = simulate(replace(HABITS, users=300_000)).registered
    mean = sum(registered) / len(registered)
    assert 2 < max(registered) / mean < 2.6
    assert 18 < registered.index(max(registered)) * simulation.SLOT / 3_600 < 22


def test_ten_times_the_users_need_ten_times_the_disk_and_more_nodes() -> None:
    few, many = (Plan(one, Costs({}), simulate(one)) for one in (HABITS, replace(HABITS, users=20_000_000)))
    assert sum(many.disk().values()) == pytest.approx(sum(few.disk().values()) * 1_000, rel=0.01)
    assert many.nodes > few.nodes == 2


def test_a_peer_that_stops_responding_is_left_out_and_ours_is_not() -> None:
    def respond() -> LoadResult:
        return LoadResult(operations=1, seconds=1.0, server=1.0, database=0.0)

    def fail() -> LoadResult:
        raise CalledProcessError(1, "load")

    with http_server() as port:
        ours, peer, broken = (Turn(port=port, pids=(), measure=one) for one in (respond, respond, fail))
        servers, results = with_results(["us", "peer", "broken"], alternate([ours, peer, broken]))
        assert (servers, [len(rounds) for rounds in results]) == (["us", "peer"], [3, 3])
        with pytest.raises(CalledProcessError):
            alternate([broken, peer])


@contextmanager
def http_server() -> Iterator[int]:
    """A server that answers every request, on a free port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), QuietHandler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


class QuietHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_the_page_for_users_shows_what_was_measured_and_a_dash_for_the_rest() -> None:
    figures = {
        "flow RS256, Keycloak on PostgreSQL": 82.4,
        "flow RS256, Keycloak on PostgreSQL, CPU of the server": 10_000.0,
        "flow RS256, Keycloak on PostgreSQL, CPU of the database": 900.0,
        "userinfo, oidc-provider on memory": 9_279.7,
    }
    _, keycloak, provider = rate_table(figures)
    assert keycloak == ("Keycloak on PostgreSQL", "82/s", "-", "-", "-", "-", "10.00 + 0.90 ms")
    assert provider == ("oidc-provider on memory", "-", "-", "9,280/s", "-", "-", "-")
    assert "Keycloak on PostgreSQL" in ET.fromstring(cpu_plot(figures)).itertext()  # noqa: S314 - our own


MARKS: Final = ("simulated", "capacity", "rates", "price")


def test_a_plan_says_what_was_measured_and_what_was_not(tmp_path: Path) -> None:
    page = tmp_path / "scaling.md"
    between = "".join(f"<!-- {mark} -->\nold\n<!-- /{mark} -->\n" for mark in MARKS)
    page.write_text(f"before\n{between}after\n")
    write_plans(page, HABITS, Costs({"memory when idle, PostgreSQL": 80.0}))
    text = page.read_text()
    assert "\nold\n" not in text
    assert "Measured: memory when idle, PostgreSQL." in text
    assert all(name in text for name in ASSUMED)
    assert (text.partition("\n")[0], text.splitlines()[-1]) == ("before", "after")


def test_twice_the_cores_serve_twice_the_users_and_the_scarcest_cores_decide() -> None:
    plan = Plan(HABITS, Costs({}), simulate(HABITS))
    one, _ = Installation(name="", shared_cores=2).users(plan)
    two, limit = Installation(name="", shared_cores=4).users(plan)
    assert (two, limit) == (pytest.approx(2 * one), "the machine")
    assert Installation(name="", node_cores=100, database_cores=1).users(plan)[1] == "CPU of PostgreSQL"
    assert Installation(name="", node_cores=1, database_cores=100).users(plan)[1] == "nodes"
    on_replicas = Installation(name="", database_cores=1, reads_elsewhere=True).users(plan)[0]
    assert on_replicas > Installation(name="", database_cores=1).users(plan)[0]


def test_a_price_counts_the_cpu_of_server_and_database_of_measured_servers_only() -> None:
    cpu = {"CPU of the server": 2_600.0, "CPU of the database": 1_000.0}
    costs = Costs({f"flow RS256, Keycloak on PostgreSQL, {name}": value for name, value in cpu.items()})
    _, *rows = price_table(costs, 0.5)
    assert rows == [("Keycloak on PostgreSQL", "2.60 ms", "1.00 ms", "1.00", "0.500")]
