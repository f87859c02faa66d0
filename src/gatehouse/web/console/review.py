"""The page between a form and its saving, for changes that concern what people hold."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from gatehouse.web.console.editing import carried
from gatehouse.web.console.forecast import Foreseen
from gatehouse.web.pages.contexts import PageContext


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewContext(PageContext):
    template = "console/review.html"

    name: str  # of what is changed
    back: str  # its page
    trail: Sequence[tuple[str, str]]  # from the entry to it
    action: str  # where the form goes
    fields: Sequence[tuple[str, str]]
    foreseen: Sequence[Foreseen]


def review(
    form: msgspec.Struct,
    foreseen: Sequence[Foreseen],
    *,
    name: str,
    back: str,
    action: str = "",
    trail: Sequence[tuple[str, str]] = (),
) -> ReviewContext:
    """The form goes to `action`, or where it came to, once more; then with `do` as `apply` or `edit`."""
    return ReviewContext(
        name=name, back=back, trail=trail, action=action or back, fields=carried(form), foreseen=foreseen
    )


def is_nothing(foreseen: Sequence[Foreseen]) -> bool:
    return all(one.is_nothing for one in foreseen)
