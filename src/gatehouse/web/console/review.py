"""The page between a form and its saving, for changes that concern what people hold."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from gatehouse.web.console.editing import hidden_fields
from gatehouse.web.console.forecast import Impact
from gatehouse.web.pages.contexts import PageContext


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactReviewContext(PageContext):
    template = "console/review.html"

    name: str  # of what is changed
    back: str  # its page
    trail: Sequence[tuple[str, str]]  # from the entry to it
    action: str  # where the form goes
    fields: Sequence[tuple[str, str]]
    foreseen: Sequence[Impact]


def review_context(
    form: msgspec.Struct,
    impacts: Sequence[Impact],
    *,
    name: str,
    back: str,
    action: str = "",
    trail: Sequence[tuple[str, str]] = (),
) -> ImpactReviewContext:
    """The form goes to `action`, or where it came to, once more; then with `do` as `apply` or `edit`."""
    return ImpactReviewContext(
        name=name, back=back, trail=trail, action=action or back, fields=hidden_fields(form), foreseen=impacts
    )


def has_no_impact(impacts: Sequence[Impact]) -> bool:
    return all(one.is_nothing for one in impacts)
