"""Whether projects have what somebody is to be given something on."""

from collections.abc import Iterable

from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.user_record import NO_HOLDINGS, ScopeHoldings
from gatehouse.storage.permissions.record_checks import RecordChange
from gatehouse.storage.permissions.structures import projects_by_id
from gatehouse.storage.statements import Verb


def refuse_foreign_resources(steps: Iterable[RecordChange]) -> Verb[None]:
    """Raise Malformed for something new on what is not the project's; what is held already is saved back (R6)."""
    fresh = dict.fromkeys(
        scope
        for step in steps
        for scope, held in step.after.scopes.items()
        if scope.kind is not None and gains_something(step.before.scopes.get(scope, NO_HOLDINGS), held)
    )
    models = (yield from projects_by_id({scope.project_id for scope in fresh})) if fresh else {}
    for scope in fresh:
        model = models.get(scope.project_id)
        if model is None or not model.has_scope(scope):
            raise Malformed(f"project {scope.project_id} has no {scope.kind} with the ID {scope.resource_id}")


def gains_something(before: ScopeHoldings, after: ScopeHoldings) -> bool:
    """Whether it is more, or something else: what is left of something gone may be taken away piece by piece."""
    trees = ((before.private_data, after.private_data), (before.public_data, after.public_data))
    return bool(set(after.roles) - set(before.roles)) or any(new and new != old for old, new in trees)
