"""Whether projects have what somebody is to be given something on."""

from collections.abc import Iterable

from gatehouse.permissions.errors import Malformed
from gatehouse.storage.permissions.record_checks import Step
from gatehouse.storage.permissions.structures import projects_of
from gatehouse.storage.statements import Verb


def refuse_foreign_resources(steps: Iterable[Step]) -> Verb[None]:
    """Raise Malformed for something new on what is not the project's; what is held already is saved back (R6)."""
    fresh = {
        scope
        for step in steps
        for scope, held in step.after.scopes.items()
        if scope.kind is not None and step.before.scopes.get(scope) != held
    }
    models = (yield from projects_of({scope.project_id for scope in fresh})) if fresh else {}
    for scope in fresh:
        model = models.get(scope.project_id)
        if model is None or not model.has(scope):
            raise Malformed(f"project {scope.project_id} has nothing in {scope.kind} with the id {scope.resource_id}")
