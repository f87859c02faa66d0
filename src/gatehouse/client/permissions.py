"""What somebody holds, read from the service's `list_short` (interface §4.5, R5)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias


class Resource(NamedTuple):
    """Something of a project."""

    kind: Literal["applications", "services", "groups"]
    resource_id: str


class Held(NamedTuple):
    """A rule and where it is held. Compared member by member: joined text could be read in two ways."""

    project: str | None  # None is the root
    resource: Resource | None
    rule: str


Params: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Permissions:
    held: Mapping[Held, Params]

    def allows(self, rule: str, project: str | None = None, resource: Resource | None = None) -> bool:
        """True when the rule is held there, or on the whole project of a resource.

        What is held at the root counts at the root only. Rule and project are named as the list names them:
        without a section, and by id, never by an alias. The resource has to be one of the project: a list does not
        tell what a project has, so a name that somebody else gave is a question for the service's `check`.
        """
        return any(place in self.held for place in places(rule, project, resource))

    def params(self, rule: str, project: str | None = None, resource: Resource | None = None) -> Params:
        """Of the narrowest place where the rule is held; empty when it has none, or is not held."""
        return next((self.held[place] for place in places(rule, project, resource) if place in self.held), ())


def places(rule: str, project: str | None, resource: Resource | None) -> list[Held]:
    """Where a rule may be held that decides about this one, the narrowest first."""
    if resource is None:
        return [Held(project, None, rule)]
    if project is None:
        raise ValueError("a resource needs a project")
    return [Held(project, resource, rule), Held(project, None, rule)]


def parse_list(entries: Iterable[str]) -> Permissions:
    return Permissions(dict(filter(None, map(parse_entry, entries))))


def parse_entry(entry: str) -> tuple[Held, Params] | None:
    """`rule`, `P/rule` or `P/applications/A/rule`, with `|a,b` behind it; any other form gives no right."""
    place, _, params = entry.partition("|")
    listed = tuple(params.split(",")) if params else ()
    match place.split("/"):
        case [rule]:
            return Held(None, None, rule), listed
        case [project, rule]:
            return Held(project, None, rule), listed
        case [project, "applications" | "services" | "groups" as kind, resource_id, rule]:
            return Held(project, Resource(kind, resource_id), rule), listed
    return None
