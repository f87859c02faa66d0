"""Many people at once: who may be concerned by something, and what decides about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gatehouse.permissions.model.facts import ApplicationModel, Facts, Structure


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateFilter:
    """Whoever has any of these; each is found by an index, but for domains."""

    application_id: int
    everyone: bool = False
    user_ids: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()  # assigned in the application, anywhere in it, by key
    projects: frozenset[str] = frozenset()  # in whose scopes the application's records say something
    entries: bool = False  # of his own at the root of the application
    groups: frozenset[str] = frozenset()  # that list him
    domains: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()  # written ones, not those that the service keeps
    purchases: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSnapshot:
    """What everybody's rights in an application depend on, of one moment."""

    model: ApplicationModel
    structure: Structure

    @property
    def versions(self) -> tuple[int, int, int]:
        return self.model.application.version, self.model.schema.version, self.structure.version


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePage:
    """One page of candidates, by user id, with the outline they were read beside."""

    people: Sequence[Facts]
    snapshot: ApplicationSnapshot
    last: str  # id of the last candidate of the page
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunResult:
    """What an edit that was undone had made."""

    snapshot: ApplicationSnapshot
    people: Mapping[str, Facts]  # by id, those whose facts the edit itself may change
