"""What a person has to accept for an application, and the link to the page that asks."""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import chain
from typing import Final

from gatehouse.accounts.terms.model import (
    AGE,
    AGE_BANDS,
    AcceptedVersion,
    PendingTerms,
    TermsDocument,
    TermsLink,
    TermsLinkDead,
)
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, hmac_sha256
from gatehouse.kernel.times import DAY, MINUTE

MAX_AGE: Final = 130
LINK_SECONDS: Final = 30 * MINUTE
LINK: Final = re.compile(r"([0-9]{1,20})\.([0-9-]{0,64})\.([A-Z]{0,2})\.([0-9]{1,11})\.([0-9a-f]{64})", re.ASCII)
LINK_PATH: Final = "/terms"
REMEMBERED_AGE: Final = re.compile(rf"{AGE}\.([0-9]{{1,2}})\.([0-9]{{1,11}})\.([0-9a-f]{{64}})", re.ASCII)

ReadAccepted = Callable[[str], Awaitable[tuple[str, Sequence[AcceptedVersion]]]]
StoreAccepted = Callable[[str, Mapping[str, str], AuditRecord], Awaitable[None]]


class Terms:
    def __init__(
        self,
        *,
        read_accepted: ReadAccepted,
        store_accepted: StoreAccepted,
        documents: Callable[[], Sequence[TermsDocument]],
        country_of: Callable[[str], str],
        recorder: Recorder,
        key: bytes,
        clock: Clock,
        base_url: str,
    ) -> None:
        """`read_accepted` returns the country of an account and all that the person accepted. Raises UserNotFound.

        `store_accepted` stores versions by document; one that was accepted before stays as it is.
        """
        self._read_accepted = read_accepted
        self._store_accepted = store_accepted
        self._documents = documents
        self.country_of = country_of  # of an address
        self._recorder = recorder
        self._key = key
        self._clock = clock
        self._base_url = base_url

    async def find_pending(
        self, user_id: str, application_ids: Collection[int], *, country: str
    ) -> PendingTerms | None:
        """Return what the person has to accept for these applications; None without anything.

        `country` is that of their address, for an account without one.
        """
        candidates = self._documents_of(application_ids)
        if not candidates:
            return None
        own_country, accepted = await self._read_accepted(user_id)
        return pending_terms(documents_for(candidates, own_country or country), accepted)

    async def is_pending_for(self, user_id: str, application_id: int) -> bool:
        """Whether the person has to accept a document that names this application.

        Documents for all applications are asked for at sign-ins only. An account without a country had that of its
        address there, which is not known here: what the person accepted for any one country is enough.
        """
        candidates = self._documents_of((application_id,))
        if not any(document.application_ids for document in candidates):
            return False
        own_country, accepted = await self._read_accepted(user_id)
        countries = (
            {own_country}
            if own_country
            else {"", *chain.from_iterable(document.countries for document in candidates)}
        )
        asked = [documents_for(candidates, country) for country in countries]
        return all(
            pending_terms([document for document in documents if document.application_ids], accepted)
            for documents in asked
        )

    def _documents_of(self, application_ids: Collection[int]) -> Sequence[TermsDocument]:
        return [
            document
            for document in self._documents()
            if not document.application_ids or not document.application_ids.isdisjoint(application_ids)
        ]

    async def accept(self, user_id: str, accepted: PendingTerms, *, age: int, origin: AuditOrigin) -> None:
        """Store what was accepted, and the band of the age if it was asked."""
        versions = {document.document_id: document.version for document in accepted.documents}
        record = self._recorder.record(AuditEvent.TERMS_ACCEPTED, origin, subject=user_id, details={**versions})
        band = {AGE: str(age_band(age))} if accepted.minimum_age else {}
        await self._store_accepted(user_id, {**versions, **band}, record)

    def link(self, link: TermsLink) -> str:
        """Return the address of the page for a person who has authenticated, but not in a browser."""
        applications = "-".join(map(str, link.application_ids))
        signed = f"{link.user_id}.{applications}.{link.country}.{self._clock.now() + LINK_SECONDS}"
        return f"{self._base_url}{LINK_PATH}?token={signed}.{self._signature(signed)}"

    def read_link(self, token: str) -> TermsLink:
        """Return what the token of a link contains. Raises TermsLinkDead."""
        read = LINK.fullmatch(token)
        if read is None or not constant_time_equal(read[5], self._signature(token.rpartition(".")[0])):
            raise TermsLinkDead
        if int(read[4]) <= self._clock.now():
            raise TermsLinkDead
        application_ids = tuple(int(number) for number in read[2].split("-") if number)
        return TermsLink(user_id=read[1], application_ids=application_ids, country=read[3])

    def age_of(self, birth: str) -> int | None:
        """Return the age of someone born on that day, like 2001-05-31; None if it is no such day."""
        try:
            born = date.fromisoformat(birth)
        except ValueError:
            return None
        today = datetime.fromtimestamp(self._clock.now(), UTC).date()
        age = today.year - born.year - ((today.month, today.day) < (born.month, born.day))
        return age if 0 <= age <= MAX_AGE else None

    def remember_age(self, age: int) -> str:
        """Return what a browser stores for a day about a person who was too young: the band of their age, signed."""
        signed = f"{AGE}.{age_band(age)}.{self._clock.now() + DAY}"
        return f"{signed}.{self._signature(signed)}"

    def read_remembered_age(self, text: str) -> int | None:
        """Return the band that a browser stores; None without one."""
        read = REMEMBERED_AGE.fullmatch(text)
        if read is None or not constant_time_equal(read[3], self._signature(text.rpartition(".")[0])):
            return None
        return int(read[1]) if int(read[2]) > self._clock.now() else None

    def _signature(self, signed: str) -> str:
        return hmac_sha256(self._key, signed.encode()).hex()


def pending_terms(asked: Sequence[TermsDocument], accepted: Sequence[AcceptedVersion]) -> PendingTerms | None:
    """Return what is left to accept of the documents; None without anything."""
    versions = {(entry.document, entry.version) for entry in accepted}
    band = max((int(entry.version) for entry in accepted if entry.document == AGE), default=0)
    minimum = max((document.minimum_age for document in asked), default=0)
    pending = PendingTerms(
        documents=[document for document in asked if (document.document_id, document.version) not in versions],
        minimum_age=minimum if minimum > band else 0,
    )
    return pending if pending.documents or pending.minimum_age else None


def documents_for(candidates: Sequence[TermsDocument], country: str) -> Sequence[TermsDocument]:
    """Return the documents for people of a country; one for certain countries is not for an unknown one."""
    documents = [document for document in candidates if not document.countries or country in document.countries]
    replaced = {document.replaces for document in documents}
    return [document for document in documents if document.document_id not in replaced]


def age_band(age: int) -> int:
    return next((band for band in AGE_BANDS if age >= band), 0)
