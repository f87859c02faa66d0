"""Where a rule has to be held to count somewhere (R5)."""

from collections.abc import Iterator
from typing import Final

from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.facts import Structure
from gatehouse.permissions.model.rule import Rule, RuleSection
from gatehouse.permissions.model.scope import ROOT, Scope

CAN_ADMINISTER: Final = Rule(RuleSection.PRIVATE, "can_administer")


def lookup_scopes(application_id: int, scope: Scope, rule: Rule) -> Iterator[Scope]:
    """There, or in the project around it. At the root it counts nowhere below, but for can_administer."""
    yield scope
    if scope.kind is not None:
        yield scope.project
    if application_id == CENTRAL_ID and not scope.is_root and rule == CAN_ADMINISTER:
        yield ROOT


def existing_lookup_scopes(structure: Structure, application_id: int, scope: Scope, rule: Rule) -> tuple[Scope, ...]:
    """The same for a scope that somebody names: in a project it counts on every resource of it, and on no other."""
    found = structure.has_scope(scope)
    return tuple(place for place in lookup_scopes(application_id, scope, rule) if found or place.is_root)
