"""What somebody holds, read from the service's `list_short` (interface §4.5, R5)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias


class Resource(NamedTuple):
    """Something of a project."""

    kind: Literal["applications", "services", "groups"]
    resource_id: str


class PermissionKey(NamedTuple):
    """A rule and where it is held. Compared member by member: joined text could be read in two ways."""

    project: str | None  # None is the root
    resource: Resource | None
    rule: str


Params: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Permissions:
    entries: Mapping[PermissionKey, Params]

    def allows(self, rule: str, project: str | None = None, resource: Resource | None = None) -> bool:
        """True when the rule is held there, or on the whole project of a resource.

        What is held at the root counts at the root only. Rule and project are named as the list names them:
        without a section, and by id, never by an alias. The resource has to be one of the project: a list does not
        tell what a project has, so a name that somebody else gave is a question for the service's `check`.
        """
        return any(place in self.entries for place in lookup_keys(rule, project, resource))

    def params(self, rule: str, project: str | None = None, resource: Resource | None = None) -> Params:
        """Of the narrowest place where the rule is held; empty when it has none, or is not held."""
        return next(
            (self.entries[place] for place in lookup_keys(rule, project, resource) if place in self.entries), ()
        )


def lookup_keys(rule: str, project: str | None, resource: Resource | None) -> list[PermissionKey]:
    """Where a rule may be held that decides about this one, the narrowest first."""
    if resource is None:
        return [PermissionKey(project, None, rule)]
    if project is None:
        raise ValueError("a resource needs a project")
    return [PermissionKey(project, resource, rule), PermissionKey(project, None, rule)]


def parse_permissions(entries: Iterable[str]) -> Permissions:
    return Permissions(dict(filter(None, map(parse_entry, entries))))


def parse_entry(entry: str) -> tuple[PermissionKey, Params] | None:
    """`rule`, `P/rule` or `P/applications/A/rule`, with `|a,b` behind it; any other form gives no right."""
    place, _, params = entry.partition("|")
    listed = tuple(params.split(",")) if params else ()
    match place.split("/"):
        case [rule]:
            return PermissionKey(None, None, rule), listed
        case [project, rule]:
            return PermissionKey(project, None, rule), listed
        case [project, "applications" | "services" | "groups" as kind, resource_id, rule]:
            return PermissionKey(project, Resource(kind, resource_id), rule), listed
    return None
