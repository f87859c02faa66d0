"""The threads that hash passwords."""

import os
import threading

from gatehouse.accounts.passwords import LOWEST_PRIORITY, PasswordCost, Passwords


async def test_the_workers_stand_back_for_the_event_loop() -> None:
    passwords = Passwords(PasswordCost(memory_kib=19_456, time_cost=2, workers=1))
    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    there = set(threading.enumerate())
    await passwords.hash("correct horse battery")
    [worker] = set(threading.enumerate()) - there
    assert os.getpriority(os.PRIO_PROCESS, worker.native_id or 0) == LOWEST_PRIORITY
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before
    passwords.close()
