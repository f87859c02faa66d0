"""Documents, what people accepted of them, and what is left to ask."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gatehouse.kernel.errors import Refused

AGE: Final = "age"  # stored as a document; its version is the band
AGE_BANDS: Final = (21, 18, 16, 15, 14, 13)  # the lowest age of each band


class TermsLinkDead(Refused):
    public = "This link has expired. Sign in again to get a new one."


class TermsDocument(Struct, frozen=True, kw_only=True):
    document_id: str
    title: str
    url: str
    version: str
    application_ids: frozenset[int] = frozenset()  # empty: all
    countries: frozenset[str] = frozenset()  # empty: all
    replaces: str = ""  # another document's ID
    minimum_age: int = 0


class AcceptedVersion(Struct, frozen=True, kw_only=True):
    document: str
    version: str
    accepted_at: int


class PendingTerms(Struct, frozen=True, kw_only=True):
    """What a person is asked before a sign-in."""

    documents: Sequence[TermsDocument]  # that they have not accepted in this version
    minimum_age: int = 0  # 0: their age is not asked

    @property
    def version(self) -> str:
        """The versions in one text, like `terms:2026-11,privacy:3`; with `age` if the age is asked.

        People see it, so it does not say which age is needed (TM-07).
        """
        parts = [f"{document.document_id}:{document.version}" for document in self.documents]
        return ",".join([*parts, AGE] if self.minimum_age else parts)


class TermsLink(Struct, frozen=True, kw_only=True):
    """A link to the page of the terms, for a person who has authenticated elsewhere."""

    user_id: str
    application_ids: tuple[int, ...]
    country: str
