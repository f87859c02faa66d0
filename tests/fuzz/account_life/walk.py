"""A walk: lives whose steps are drawn from those that are possible, and a failure with the fewest steps.

In a short run Hypothesis draws few and much alike lives: it disables rules, repeats beginnings and begins simply.
"""

from collections.abc import Callable, Sequence
from itertools import cycle
from random import Random  # noqa: TID251 - a failure must be repeatable
from typing import Any, Final, NamedTuple

from tests.fuzz.account_life.life import STARTS, AccountLife
from tests.fuzz.account_life.steps import STEPS

FITTING_SHARE: Final = 0.6  # of the steps
BEGIN: Final = "begin"


class TakenStep(NamedTuple):
    name: str
    fields: dict[str, Any]

    def __str__(self) -> str:
        return f"life.{self.name}({', '.join(f'{name}={value!r}' for name, value in self.fields.items())})"

    def is_possible(self, life: AccountLife) -> bool:
        choices = STEPS[self.name].choices if self.name in STEPS else {}
        return all(value in choices[name](life) for name, value in self.fields.items() if name in choices)

    def take(self, life: AccountLife) -> None:
        getattr(life, self.name)(**self.fields)
        (life.check_everything if self.name == BEGIN else life.check_step)()


def walk_lives(machine: Callable[[], AccountLife], *, lives: int, steps: int, seed: str) -> None:
    """Each start in turn."""
    for number, start in zip(range(lives), cycle(STARTS), strict=False):
        chance = Random(f"{seed} {number}")  # noqa: S311 - no secret
        taken = [TakenStep(BEGIN, {"start": start})]
        failure = run_life(machine, taken, more=steps, chance=chance)
        if failure is not None:
            shortest = shorten(machine, taken)
            failure.add_note("\n".join([f"life {number + 1} of {lives}, with these steps:", *map(str, shortest)]))
            raise failure


def run_life(
    machine: Callable[[], AccountLife], taken: list[TakenStep], *, more: int = 0, chance: Random | None = None
) -> AssertionError | None:
    """Take these steps, and more of them, which are added; return what failed."""
    life = machine()
    try:
        for one in taken:
            if not one.is_possible(life):
                return None
            one.take(life)
        for _ in range(more if chance else 0):
            taken.append(draw_step(life, chance or Random()))  # noqa: S311
            taken[-1].take(life)
    except AssertionError as failure:
        return failure
    finally:
        life.teardown()
    return None


def draw_step(life: AccountLife, chance: Random) -> TakenStep:
    possible = [name for name, step in STEPS.items() if step.is_possible(life)]
    fitting = [name for name in possible if name in life.fitting_steps]
    drawn = fitting if fitting and chance.random() < FITTING_SHARE else possible
    (name,) = chance.choices(drawn, weights=[STEPS[one].weight for one in drawn])
    return TakenStep(name, {field: chance.choice(found(life)) for field, found in STEPS[name].choices.items()})


def shorten(machine: Callable[[], AccountLife], taken: Sequence[TakenStep]) -> Sequence[TakenStep]:
    """Leave out every step without which it fails too."""
    shortest = list(taken)
    for number in reversed(range(len(shortest))):
        fewer = shortest[:number] + shortest[number + 1 :]
        if run_life(machine, fewer) is not None:
            shortest = fewer
    return shortest
