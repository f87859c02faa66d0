"""The processes of a server that is measured: their CPU time, and stopping them while another server is measured."""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


def process_tree(pid: int) -> list[int]:
    """The process and its descendants."""
    children: list[int] = []
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # the thread has ended
                children += map(int, (task / "children").read_text().split())
    return [pid, *(one for child in children for one in process_tree(child))]


def processor_seconds(pids: Iterable[int]) -> float:
    """The CPU time of these processes and their descendants, including those that have ended."""
    ticks = 0
    for pid in (one for root in pids for one in process_tree(root)):
        with suppress(OSError):  # it has ended since, and its parent has the sum
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    return ticks / TICKS_PER_SECOND


@contextmanager
def stopped(pids: Iterable[int]) -> Iterator[None]:
    """Stop these processes and their descendants, and let them go on at the end."""
    everyone = [one for pid in pids for one in process_tree(pid)]
    send_signal(everyone, signal.SIGSTOP)
    try:
        yield
    finally:
        send_signal(everyone, signal.SIGCONT)


def send_signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
