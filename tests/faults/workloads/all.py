"""The workloads by their numbers in docs/operations/faults.md."""

from tests.faults.run_record import SECONDS
from tests.faults.workloads.codes import Codes
from tests.faults.workloads.games import Games
from tests.faults.workloads.limits import Limits
from tests.faults.workloads.logins import Logins
from tests.faults.workloads.queries import Queries
from tests.faults.workloads.registers import Registers
from tests.faults.workloads.revocations import Revocations
from tests.faults.workloads.workload import Workload


def usual_workloads() -> list[Workload]:
    """W1, W3, W4, W5, which run with every fault. W5 uses up people, who must last for the run."""
    return [Codes(), Limits(6 + int(SECONDS / 5)), Registers(), Revocations(60 + int(SECONDS * 4))]


def all_workloads() -> list[Workload]:
    """The usual ones and W2, W6, W7."""
    return [*usual_workloads(), Games(), Logins(), Queries()]
