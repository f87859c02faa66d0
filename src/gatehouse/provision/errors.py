"""What can go wrong with a file that is to be applied."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from gatehouse.kernel.errors import BadInput, Conflict
from gatehouse.kernel.text import is_plain_line

T = TypeVar("T")
V = TypeVar("V")


class Unfit(BadInput):
    """Nothing was changed; carries everything that is wrong, one line each."""

    public = "The file cannot be applied."

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems: Final = tuple(problems)
        super().__init__("\n".join((self.public, *self.problems)))


class NoAdministratorLeft(Conflict):
    public = "No one would be left to administer the service."


class Unsettled(Conflict):
    public = "The same records are being changed concurrently; nothing was applied. Try again."


class FollowUpProblem(str):
    """A complaint that may only follow from another one."""

    __slots__ = ()


class Problems:
    """Collects what is wrong, so that its author can mend it all at once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, place: str, what: str) -> None:
        self.lines.append(one_line(f"{place}: {what}"))

    def check_value(self, place: str, check: Callable[[T], V], given: T, otherwise: V) -> V:
        """What `check` makes of the value; a complaint is collected and `otherwise` stands in."""
        try:
            return check(given)
        except BadInput as error:
            self.add(place, str(error))
            return otherwise


def one_line(text: str) -> str:
    """Names in a file may hold anything; a problem stays one honest line."""
    return "".join(character if is_plain_line(character) else ascii(character)[1:-1] for character in text)
