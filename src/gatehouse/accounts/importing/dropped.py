"""What a file contains and an import leaves out, counted by kind and name."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

MAX_NAMES: Final = 1_000  # of a kind; all are counted
MAX_NAME_LENGTH: Final = 128  # characters


class DroppedKind(Struct, frozen=True, kw_only=True):
    """Parts of one kind."""

    kind: str
    count: int
    names: Sequence[tuple[str, int]]  # the first of them, with the number of each


class DroppedParts:
    """Counts what is left out, in the order of the file."""

    def __init__(self) -> None:
        self._totals: Counter[str] = Counter()
        self._names: dict[str, Counter[str]] = {}

    def add(self, kind: str, names: Iterable[str]) -> None:
        for name in names:
            self._totals[kind] += 1
            counted = self._names.setdefault(kind, Counter())
            short = name[:MAX_NAME_LENGTH]
            if short in counted or len(counted) < MAX_NAMES:
                counted[short] += 1

    def kinds(self) -> Sequence[DroppedKind]:
        return [
            DroppedKind(kind=kind, count=count, names=tuple(self._names[kind].items()))
            for kind, count in self._totals.items()
        ]
