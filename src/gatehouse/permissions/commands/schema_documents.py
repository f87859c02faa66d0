"""Rules and roles of an application as one document, as meta/schema answers it (interface §4.10)."""

from gatehouse.permissions.commands.app_schemas import role_document, schema_document
from gatehouse.permissions.model.facts import ApplicationModel


def full_schema_document(model: ApplicationModel) -> dict[str, object]:
    roles = sorted(model.roles.values(), key=lambda role: role.key)
    return {
        "application_id": model.application.application_id,
        **schema_document(model.schema),
        "roles": {role.name: role_document(role) for role in roles},
        "version": model.schema.version,
        "updated_at": model.schema.updated_at,
    }
