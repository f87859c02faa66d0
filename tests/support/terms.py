"""Terms that are accepted in another window while a request is handled."""

from collections.abc import Awaitable, Callable

from gatehouse.accounts.terms.model import PendingTerms

TermsLookup = Callable[..., Awaitable[PendingTerms | None]]


def terms_until_asked_again() -> TermsLookup:
    """A replacement of `find_terms_for`: something is pending the first time, and nothing later."""
    answers = [PendingTerms(documents=())]

    async def find_terms_for(*_: object) -> PendingTerms | None:
        return answers.pop() if answers else None

    return find_terms_for
