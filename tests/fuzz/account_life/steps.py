"""Steps: what each chooses from at that moment. Hypothesis and the walk (walk.py) take them alike."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

Choices: TypeAlias = Callable[[Any], Sequence[Any]]  # of a machine, now
Function = TypeVar("Function", bound=Callable[..., None])

EITHER: Final = (False, True)
OFTEN: Final = 4  # times
RARELY: Final = 1  # steps that end or hide much


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    choices: Mapping[str, Choices]
    weight: int

    def is_possible(self, machine: Any) -> bool:
        return all(choices(machine) for choices in self.choices.values())


STEPS: Final[dict[str, Step]] = {}  # by the names of their functions


def step(*, weight: int = OFTEN, **choices: Choices | Sequence[Any]) -> Callable[[Function], Function]:
    """Make a function a step; each of its fields is one of a sequence, or of what the machine has now."""
    found = {name: given if callable(given) else partial(always, given) for name, given in choices.items()}

    def decorate(function: Function) -> Function:
        made = STEPS[function.__name__] = Step(choices=found, weight=weight)
        ruled = rule(**{name: one_of(given) for name, given in found.items()})(function)
        return precondition(made.is_possible)(ruled)  # type: ignore[return-value]

    return decorate


def always(given: Sequence[Any], _machine: object) -> Sequence[Any]:
    return given


def one_of(choices: Choices) -> st.SearchStrategy[Any]:
    return st.runner().flatmap(lambda machine: st.sampled_from(choices(machine)))
