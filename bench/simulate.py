"""Simulate a day of many players: how many games wait, how much is written to the database, how many nodes it needs.

    python -m bench.simulate [--users 1000000 …] [--seed 7] [--page docs/operations/scaling.md]

Sign-ins follow a daily curve. Each game waits for its player, with polls that are held, answered with RETRY and sent
again, or with a WebSocket and heartbeats. Of a large number of sign-ins a weighted sample is simulated. Unit costs
are those of the newest runs under bench/results/, or assumed (bench/costs.py). The simulation counts events; nodes,
memory and disk are computed from them. What 10^3 to 10^5 sign-ins a second need is computed too.
"""

import argparse
import random  # noqa: TID251 - the same seed gives the same day
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from math import ceil, cos, pi
from pathlib import Path
from typing import Final

from bench.costs import ASSUMED, GATEHOUSE, Costs
from bench.plots import Line, lines
from bench.report import RESULTS, newest_figures

DAY: Final = 86_400
SLOT: Final = 600  # seconds that are counted together
SLOTS: Final = DAY // SLOT
NIGHT: Final = 0.2  # of the mean
SAMPLE: Final = 100_000  # sign-ins simulated, at most
PLANNED: Final = (1_000_000, 10_000_000, 100_000_000)
RATES: Final = (1_000, 10_000, 100_000)  # sign-ins to applications, a second
GIGABYTE: Final = 1e9
REQUESTS: Final = 8  # of one sign-in from a game, including the pages of the player
WRITES: Final = 4  # transactions of it: registered, opened, confirmed, taken
FLOW: Final = f"flow RS256, {GATEHOUSE}"
REFRESH: Final = f"refresh RS256, {GATEHOUSE}"
USERINFO: Final = f"userinfo, {GATEHOUSE}"
LIST: Final = "POST meta/data, list of 1000 rules, PostgreSQL"
WAL: Final = "WAL of one sign-in"  # KB
COMMITS: Final = "commits of one sign-in"
COMMIT: Final = "durable insert, driver alone, PostgreSQL"  # microseconds, with 16 connections
EMPTY: Final = "GET /healthz, 16 connections"
WRITING: Final = {"flows": FLOW, "refreshes": REFRESH}  # the figure of each habit
READING: Final = {"userinfo": USERINFO, "lists": LIST}
OPERATIONS: Final = {**WRITING, **READING}
PEERS: Final = ("Gatehouse", "oidc-provider", "Keycloak", "Ory Hydra")  # on PostgreSQL


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """Assumptions about people; each is a flag."""

    users: int = 1_000_000
    active: float = 0.1  # of the users, on one day
    game_sign_ins: float = 1.0  # a day, of an active user
    flows: float = 2.0  # sign-ins to applications that need no page
    refreshes: float = 10.0
    userinfo: float = 5.0
    lists: float = 20.0  # requests for permission lists
    passwords: float = 0.3  # of the sign-ins, that need a password; the others have a session
    sockets: float = 0.5  # of the games, that wait with a WebSocket; the others poll
    wait: float = 25.0  # seconds until the player confirms, the median
    spread: float = 0.8  # standard deviation of its logarithm
    leaving: float = 0.1  # of the players, who never confirm
    patience: float = 120.0  # seconds after which the game gives up then
    peak: float = 2.5  # times the mean, at the busiest time
    hold: float = 30.0  # seconds that a poll is held
    delay: float = 1.0  # seconds after RETRY
    heartbeat: float = 5.0  # seconds
    audit_days: int = 365  # that audit records are kept
    grants: float = 3.0  # of each user
    sessions: float = 1.2
    roles: float = 2.0
    busy: float = 0.5  # of a core, in the plan
    core_hour: float = 0.04  # the price of one core for one hour, in any currency
    memory: float = 1_000.0  # MB of a node
    database_cores: int = 64  # of one PostgreSQL
    wal_megabytes: float = 200.0  # a second, that its disks and its standby keep up with
    seed: int = 7

    @property
    def sign_ins(self) -> float:
        """From games, on one day."""
        return self.users * self.active * self.game_sign_ins


@dataclass(frozen=True, slots=True)
class Day:
    """Means of each ten minutes."""

    registered: list[float]  # a second
    polls: list[float]  # that begin, a second
    held: list[float]
    sockets: list[float]

    def rows(self, habits: Habits) -> list[float]:
        """Rows of game sessions that are updated, a second: each node updates its own in one transaction."""
        return [polls + sat / habits.heartbeat for polls, sat in zip(self.polls, self.sockets, strict=True)]

    def writes(self, nodes: int) -> list[float]:
        """Transactions of games a second: of sign-ins, of polls at another node than before, of write-behind.

        Write-behind is at most one transaction a second of each node for polls, and one for heartbeats.
        """
        return [
            began * WRITES + polls * (nodes - 1) / nodes + min(nodes, polls) + min(nodes, sat)
            for began, polls, sat in zip(self.registered, self.polls, self.sockets, strict=True)
        ]


def simulate(habits: Habits) -> Day:
    dice = random.Random(habits.seed)  # noqa: S311 - no secret
    number = max(1, round(min(SAMPLE, habits.sign_ins)))
    weight = habits.sign_ins / number
    day = Day(*([0.0] * SLOTS for _ in range(4)))
    for _ in range(number):
        begin = pick_second(dice, habits.peak)
        leaves = dice.random() < habits.leaving
        waits = habits.patience if leaves else min(dice.lognormvariate(0, habits.spread) * habits.wait, 1_200.0)
        day.registered[slot(begin)] += weight / SLOT
        if dice.random() < habits.sockets:
            add_share(day.sockets, begin, waits, weight)
        else:
            poll(day, habits, begin, waits, weight)
    return day


def pick_second(dice: random.Random, peak: float) -> float:
    """A second of the day, by a cosine with its maximum in the evening and a minimum at night."""
    while True:
        second = dice.random() * DAY
        height = max(NIGHT, 1 + (peak - 1) * cos(2 * pi * (second / DAY - 20 / 24)))
        if dice.random() * peak < height:
            return second


def poll(day: Day, habits: Habits, begin: float, waits: float, weight: float) -> None:
    since = 0.0
    while since < waits:
        day.polls[slot(begin + since)] += weight / SLOT
        add_share(day.held, begin + since, min(habits.hold, waits - since), weight)
        since += habits.hold + habits.delay


def add_share(counts: list[float], begin: float, seconds: float, weight: float) -> None:
    """Add to each slot its share of the seconds."""
    while seconds > 0:
        share = min(seconds, SLOT - begin % SLOT)
        counts[slot(begin)] += weight * share / SLOT
        begin, seconds = begin + share, seconds - share


def slot(second: float) -> int:
    return int(second // SLOT) % SLOTS


@dataclass(frozen=True, slots=True)
class Plan:
    habits: Habits
    costs: Costs
    day: Day

    def at_peak(self, each: float) -> float:
        """Operations a second at the busiest time, of which each active user causes `each` a day."""
        return self.habits.users * self.habits.active * each / DAY * self.habits.peak

    @property
    def cores(self) -> float:
        """Cores of nodes that are fully busy at the busiest time."""
        costs, habits, day = self.costs, self.habits, self.day
        games = max(day.registered)
        return (
            sum(self.at_peak(getattr(habits, habit)) * costs.server(name) for habit, name in OPERATIONS.items())
            + games * habits.passwords * 2 / costs["passwords checked in the storm, SQLite"]
            + games * (REQUESTS * costs.server(EMPTY) + WRITES * costs.server(REFRESH))
            + max(day.polls) * costs.server(USERINFO)
            + max(day.held) / 10_000 * costs["10,000 held polls, SQLite, of a core at rest"] / 100
            + max(day.sockets) / 5_000 * costs["5,000 WebSockets with heartbeats, of a core"] / 100
        )

    @property
    def writing_database_cores(self) -> float:
        """Cores of PostgreSQL for all that changes something, which only the primary can do."""
        costs = self.costs
        applications = sum(
            self.at_peak(getattr(self.habits, habit)) * costs.database(WRITING[habit]) for habit in WRITING
        )
        return applications + max(self.day.registered) * WRITES * costs.database(REFRESH)

    @property
    def reading_database_cores(self) -> float:
        costs = self.costs
        applications = sum(
            self.at_peak(getattr(self.habits, habit)) * costs.database(READING[habit]) for habit in READING
        )
        return applications + max(self.day.polls) * costs.database(USERINFO)

    @property
    def database_cores(self) -> float:
        return self.writing_database_cores + self.reading_database_cores

    @property
    def waiting_megabytes(self) -> float:
        held = max(self.day.held) * self.costs["10,000 held polls, SQLite, memory of each"]
        return (held + max(self.day.sockets) * self.costs["5,000 WebSockets with heartbeats, memory of each"]) / 1_024

    @property
    def nodes(self) -> int:
        """Processes, with one spare."""
        memory = self.habits.memory * 0.7 - self.costs["memory when idle, PostgreSQL"]
        return max(1, ceil(self.cores / self.habits.busy), ceil(self.waiting_megabytes / memory)) + 1

    @property
    def transactions(self) -> float:
        """Writing transactions a second at the busiest time."""
        return max(self.day.writes(self.nodes)) + self.at_peak(2 * self.habits.flows + self.habits.refreshes)

    @property
    def reads(self) -> float:
        each = self.habits.flows + self.habits.refreshes + self.habits.userinfo + self.habits.lists
        return self.at_peak(each) + max(self.day.registered) * REQUESTS + max(self.day.polls)

    def disk(self) -> dict[str, float]:
        """Bytes of each kind of row, after the retention time."""
        costs, habits, users = self.costs, self.habits, self.habits.users
        events = users * habits.active * (2 * habits.game_sign_ins + habits.flows) * habits.audit_days
        return {
            "accounts": users * (costs.row("users") + costs.row("user_ids") + costs.row("user_tags")),
            "role assignments": users * habits.roles * costs.row("role_assignments"),
            "browser sessions": users * habits.sessions * costs.row("sessions"),
            "grants": users * habits.grants * costs.row("grants"),
            "login tokens": habits.sign_ins * 30 * costs.row("login_tokens"),
            "game sessions": max(self.day.registered) * 1_200 * costs.row("game_sessions"),
            "audit records": events * costs.row("audit_events"),
        }

    def table(self) -> list[tuple[str, str]]:
        day = self.day
        disk = self.disk()
        return [
            ("users", f"{self.habits.users:,}"),
            ("sign-ins from games, a day", f"{self.habits.sign_ins:,.0f}"),
            ("the same, a second, at the peak", f"{max(day.registered):,.1f}"),
            ("polls held, at the peak", f"{max(day.held):,.0f}"),
            ("polls that begin, a second", f"{max(day.polls):,.1f}"),
            ("WebSockets, at the peak", f"{max(day.sockets):,.0f}"),
            ("memory of those that wait", f"{self.waiting_megabytes:,.0f} MB"),
            ("requests of applications, a second", f"{self.application_requests:,.0f}"),
            ("cores of nodes, fully busy", f"{self.cores:,.1f}"),
            ("cores of PostgreSQL, fully busy", f"{self.database_cores:,.1f}"),
            ("node processes, one spare", f"{self.nodes:,}"),
            ("connections, pools of 10 and one to listen", f"{self.nodes * 11:,}"),
            ("writing transactions, a second", f"{self.transactions:,.0f}"),
            (
                "of what one PostgreSQL here commits",
                f"{self.transactions / self.costs['the same, 64 callers, PostgreSQL']:,.2f}",
            ),
            ("rows the pulses move, a second", f"{max(day.rows(self.habits)):,.0f}"),
            ("reads, a second", f"{self.reads:,.0f}"),
            *((f"disk, {name}", f"{size / GIGABYTE:,.1f} GB") for name, size in disk.items()),
            ("disk, all", f"{sum(disk.values()) / GIGABYTE:,.1f} GB"),
        ]

    @property
    def application_requests(self) -> float:
        habits = self.habits
        return self.at_peak(2 * habits.flows + habits.refreshes + habits.userinfo + habits.lists)

    def plot(self) -> str:
        hours = [place * SLOT / 3_600 for place in range(SLOTS)]

        def curve(label: str, values: Sequence[float]) -> Line:
            return Line(label=label, points=list(zip(hours, values, strict=True)))

        return lines(
            f"A day of {self.habits.users:,} users",
            {
                "waiting": [curve("polls held", self.day.held), curve("WebSockets", self.day.sockets)],
                "a second": [
                    curve("sign-ins", self.day.registered),
                    curve("polls begun", self.day.polls),
                    curve("transactions of games", self.day.writes(self.nodes)),
                ],
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Machines, of which the plan says how many users they serve."""

    name: str
    node_cores: int = 0
    database_cores: int = 0
    shared_cores: int = 0  # of a machine with nodes and PostgreSQL
    reads_elsewhere: bool = False  # userinfo, lists and polls are read from synchronous replicas

    def users(self, plan: Plan) -> tuple[float, str]:
        """How many users it serves, and what is used up first."""
        database = plan.writing_database_cores if self.reads_elsewhere else plan.database_cores
        limits = {
            "the machine": (self.shared_cores, plan.cores + plan.database_cores),
            "nodes": (self.node_cores, plan.cores),
            "CPU of PostgreSQL": (self.database_cores, database),
            "commits of PostgreSQL": (1e6 / plan.costs[COMMIT], plan.transactions),
        }
        scale = plan.habits.users * plan.habits.busy
        return min((cores / needed * scale, what) for what, (cores, needed) in limits.items() if cores)


INSTALLATIONS: Final = (
    Installation(name="one machine of 2 cores, with PostgreSQL", shared_cores=2),
    Installation(name="one machine of 8 cores, with PostgreSQL", shared_cores=8),
    Installation(name="four nodes of 4 cores, PostgreSQL with 8 cores", node_cores=16, database_cores=8),
    Installation(name="sixteen nodes of 4 cores, PostgreSQL with 32 cores", node_cores=64, database_cores=32),
    Installation(name="any number of nodes, PostgreSQL with 64 cores", database_cores=64),
    Installation(
        name="the same, with userinfo, lists and polls read from synchronous replicas",
        database_cores=64,
        reads_elsewhere=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRate:
    """What a rate of sign-ins to applications needs: each is an authorize and a token request."""

    rate: float  # a second
    habits: Habits
    costs: Costs

    def databases(self) -> dict[str, float]:
        """How many PostgreSQL servers it needs, by what they have of each."""
        habits, costs = self.habits, self.costs
        return {
            f"by CPU, {habits.database_cores} cores": self.rate
            * costs.database(FLOW)
            / (habits.database_cores * habits.busy),
            f"by WAL, {habits.wal_megabytes:g} MB/s": self.rate * costs[WAL] / 1_000 / habits.wal_megabytes,
            "by commits, of the disk measured": self.rate * costs[COMMITS] * costs[COMMIT] / 1e6,
        }

    def table(self) -> list[tuple[str, str]]:
        costs, habits, databases = self.costs, self.habits, self.databases()
        a_day = self.rate * DAY
        return [
            ("sign-ins to applications, a second", f"{self.rate:,}"),
            ("cores of nodes, half busy", f"{self.rate * costs.server(FLOW) / habits.busy:,.0f}"),
            ("cores of PostgreSQL, half busy", f"{self.rate * costs.database(FLOW) / habits.busy:,.0f}"),
            ("commits, a second", f"{self.rate * costs[COMMITS]:,.0f}"),
            ("WAL, a second, without full pages", f"{self.rate * costs[WAL] / 1_000:,.0f} MB"),
            ("WAL, a day", f"{a_day * costs[WAL] / 1e9:,.1f} TB"),
            ("audit records, a day", f"{a_day * costs.row('audit_events') / 1e12:,.2f} TB"),
            *((f"PostgreSQL servers, {what}", f"{number:,.1f}") for what, number in databases.items()),
            ("PostgreSQL servers", f"{ceil(max(databases.values())):,}"),
        ]


def capacity_table(plan: Plan) -> Iterator[tuple[str, ...]]:
    yield "installation", "users", "limited by"
    for one in INSTALLATIONS:
        users, limit = one.users(plan)
        yield one.name, f"{users / 1e6:,.1f} million", limit


def price_table(costs: Costs, core_hour: float) -> Iterator[tuple[str, ...]]:
    """What a million sign-ins to applications cost, for each server that was measured."""
    yield "a million sign-ins (flow RS256)", "CPU of the server", "CPU of PostgreSQL", "core hours", "price"
    for peer in PEERS:
        name = f"flow RS256, {peer} on PostgreSQL"
        if not costs.knows_cpu(name):
            continue
        server, database = costs.server(name), costs.database(name)
        hours = (server + database) * 1e6 / 3_600
        yield (
            f"{peer} on PostgreSQL",
            f"{server * 1e3:,.2f} ms",
            f"{database * 1e3:,.2f} ms",
            f"{hours:,.2f}",
            f"{hours * core_hour:,.3f}",
        )


def write_plans(page: Path, habits: Habits, costs: Costs) -> None:
    """Write the plans, the capacities and the prices between their marks of the page."""
    plans = [Plan(one, costs, simulate(one)) for one in (replace(habits, users=users) for users in PLANNED)]
    measured = [name for name in ASSUMED if name not in costs.assumed]
    names = ["", f"Measured: {join_names(measured)}.", "", f"Assumed: {join_names(costs.assumed)}."]
    text = page.read_text()
    for mark, lines_between in {
        "simulated": [*markdown_table(zip_tables(plans)), *names],
        "capacity": markdown_table(capacity_table(plans[1])),
        "price": markdown_table(price_table(costs, habits.core_hour)),
        "rates": markdown_table(zip_tables(rates(habits, costs))),
    }.items():
        text = replace_between(text, mark, lines_between)
    page.write_text(text)


def replace_between(text: str, mark: str, lines_between: Sequence[str]) -> str:
    """Return the text with these lines between `<!-- mark -->` and `<!-- /mark -->`."""
    before, begin, rest = text.partition(f"<!-- {mark} -->")
    _, end, after = rest.partition(f"<!-- /{mark} -->")
    return before + begin + "\n" + "\n".join(lines_between) + "\n" + end + after


def markdown_table(cells: Iterable[tuple[str, ...]]) -> list[str]:
    head, *rows = (f"| {' | '.join(row)} |" for row in cells)
    return [head, f"|---|{'---:|' * (head.count('|') - 2)}", *rows]


def rates(habits: Habits, costs: Costs) -> list[SignInRate]:
    return [SignInRate(rate=rate, habits=habits, costs=costs) for rate in RATES]


def zip_tables(plans: Sequence[Plan | SignInRate]) -> Iterator[tuple[str, ...]]:
    for cells in zip(*(plan.table() for plan in plans), strict=True):
        yield (cells[0][0], *(value for _, value in cells))


def join_names(names: Sequence[str]) -> str:
    return "; ".join(names) or "nothing"


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.simulate", description=(__doc__ or "").partition("\n")[0])
    for one in fields(Habits):
        parser.add_argument(f"--{one.name.replace('_', '-')}", type=type(one.default), default=one.default)
    parser.add_argument("--plot", type=Path, default=RESULTS / "simulate.svg")
    parser.add_argument("--page", type=Path, help="write the plans for 1, 10 and 100 million users into this page")
    options = vars(parser.parse_args(words))
    place: Path = options.pop("plot")
    page: Path | None = options.pop("page")
    habits, costs = Habits(**options), Costs(newest_figures())
    if page is not None:
        write_plans(page, habits, costs)
        return
    plan = Plan(habits, costs, simulate(habits))
    for name, value in plan.table():
        print(f"{name:<46} {value:>16}")
    for cells in (
        *capacity_table(plan),
        *price_table(costs, habits.core_hour),
        *zip_tables(rates(habits, costs)),
    ):
        print("  ".join(cells))
    place.write_text(plan.plot())
    print(f"\nPlotted in {place}")
    if costs.assumed:
        print(f"Assumed, because not measured here: {'; '.join(costs.assumed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
