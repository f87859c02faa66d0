"""One timer for many periodic callbacks (kernel/clock.py)."""

from collections.abc import Callable

from gatehouse.kernel.timer_wheel import TimerWheel
from tests.support.clock import MovableClock


class StoppedClock(MovableClock):
    """A process that was stopped: when it continues, time has passed and every timer is late."""

    def wake_after(self, seconds: float) -> Callable[[], object]:
        """Return what the event loop runs first."""
        late = [timer for timer in self._timers if not timer.cancelled]
        self._timers.clear()
        self._elapsed += seconds
        return lambda: [timer.callback() for timer in late]


async def test_everyone_gets_one_turn_a_round() -> None:
    clock = MovableClock()
    turns: list[tuple[str, float]] = []
    rounds: TimerWheel[str] = TimerWheel(
        lambda member: turns.append((member, clock.monotonic())), clock=clock, period=5, slots=5
    )
    rounds.add("early")
    await clock.advance(2.5)
    rounds.add("late")
    await clock.advance(12.5)
    assert turns == [("early", 5), ("late", 7), ("early", 10), ("late", 12), ("early", 15)]


async def test_timer_wheel_has_one_timer_with_members_and_none_without() -> None:
    clock = MovableClock()
    rounds: TimerWheel[int] = TimerWheel(lambda _: None, clock=clock, period=5, slots=5)
    assert clock._timers == []
    for member in range(100):
        rounds.add(member)
        assert len(clock._timers) == 1
    for member in range(100):
        rounds.remove(member)
    await clock.advance(1)
    assert clock._timers == []
    rounds.add(1)
    assert len(clock._timers) == 1
    assert len(rounds) == 1


async def test_a_member_may_leave_in_its_turn_and_take_another_along() -> None:
    clock = MovableClock()
    turns: list[int] = []

    def turn(member: int) -> None:
        turns.append(member)
        rounds.remove(member)

    rounds: TimerWheel[int] = TimerWheel(turn, clock=clock, period=1, slots=1)
    rounds.add(1)
    rounds.add(2)
    await clock.advance(3)
    assert sorted(turns) == [1, 2]


async def test_failing_callback_does_not_stop_the_timer_wheel() -> None:
    clock = MovableClock()
    turns: list[float] = []

    def turn(_: int) -> None:
        turns.append(clock.monotonic())
        raise ValueError

    rounds: TimerWheel[int] = TimerWheel(turn, clock=clock, period=1, slots=1)
    rounds.add(1)
    for _ in range(2):
        try:
            await clock.advance(1)
        except ValueError:
            continue
    assert turns == [1, 2]


async def test_turns_that_were_slept_through_are_not_made_up_for() -> None:
    clock = StoppedClock()
    turns: list[float] = []
    rounds: TimerWheel[int] = TimerWheel(lambda _: turns.append(clock.monotonic()), clock=clock, period=2, slots=2)
    rounds.add(1)
    clock.wake_after(60)()
    await clock.advance(2)
    assert turns == [60, 62]
