"""Many people at once: who may be affected by something, and what decides about them."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from gatehouse.permissions.model.facts import ApplicationModel, Facts, Structure


class CandidateFilter(Struct, frozen=True, kw_only=True):
    """People with any of these; each is found by an index, except domains."""

    application_id: int
    everyone: bool = False
    user_ids: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()  # assigned in the application, anywhere in it, by key
    projects: frozenset[str] = frozenset()  # projects in whose scopes the application's records have entries
    entries: bool = False  # people with direct entries at the root of the application
    groups: frozenset[str] = frozenset()  # that list them
    domains: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()  # stored tags, not those that the service sets itself
    purchases: frozenset[str] = frozenset()


class ApplicationSnapshot(Struct, frozen=True, kw_only=True):
    """What all rights in an application depend on, in one consistent state."""

    model: ApplicationModel
    structure: Structure

    @property
    def versions(self) -> tuple[int, int]:
        return self.model.application.version, self.model.schema.version

    def is_part_of(self, later: "ApplicationSnapshot") -> bool:
        """Whether nothing in it has changed in the other, which may have more projects."""
        now = later.structure.projects
        return (
            self.versions == later.versions
            and self.structure.connecting == later.structure.connecting
            and all(
                project_id in now and now[project_id].version == model.version
                for project_id, model in self.structure.projects.items()
            )
        )


class CandidatePage(Struct, frozen=True, kw_only=True):
    """One page of candidates, by user id, with the snapshot they were read with."""

    people: Sequence[Facts]
    snapshot: ApplicationSnapshot
    last: str  # id of the last candidate of the page
    more: bool


class DryRunResult(Struct, frozen=True, kw_only=True):
    """The state that an edit made before it was rolled back."""

    snapshot: ApplicationSnapshot
    people: Mapping[str, Facts]  # by id, those whose facts the edit itself may change
