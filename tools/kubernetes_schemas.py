"""Write JSON schemas of Kubernetes' objects for kubeconform, from the API description in the Go module of Kubernetes.

`tools/test_deps.py` calls it. The objects of the Prometheus Operator come from its custom resource definitions.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

KINDS: Final = {
    *("ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Ingress", "Job", "NetworkPolicy"),
    *("PodDisruptionBudget", "Service", "ServiceAccount"),
}
DESCRIPTION: Final = "api/openapi-spec/swagger.json"
SERVICE_MONITOR: Final = "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"
INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
EITHER: Final = {"oneOf": [{"type": "string"}, {"type": "integer"}]}


def write_schemas(kubernetes: Path, operator: Path, target: Path) -> None:
    """Write one file for each kind and version: deployment-apps-v1.json."""
    target.mkdir(parents=True, exist_ok=True)
    definitions = json.loads((kubernetes / DESCRIPTION).read_text(encoding="utf-8"))["definitions"]
    strict = {name: without_unknown_fields(definition) for name, definition in definitions.items()}
    strict |= {INT_OR_STRING: EITHER, QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]}}
    for name, definition in definitions.items():
        for meant in definition.get("x-kubernetes-group-version-kind", ()):
            if meant["kind"] in KINDS and len(definition["x-kubernetes-group-version-kind"]) == 1:
                schema = {"$ref": f"#/definitions/{name}", "definitions": needed_definitions(name, strict)}
                write(target, meant["kind"], meant["group"], meant["version"], schema)
    resource = yaml.safe_load((operator / SERVICE_MONITOR).read_text(encoding="utf-8"))["spec"]
    for version in resource["versions"]:
        schema = without_unknown_fields(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"type": "object"}
        write(target, resource["names"]["kind"], resource["group"], version["name"], schema)


def write(target: Path, kind: str, group: str, version: str, schema: dict[str, Any]) -> None:
    # kubeconform names a group by its first label, and the core group not at all.
    name = "-".join(part for part in (kind.lower(), group.partition(".")[0], version) if part)
    (target / f"{name}.json").write_text(json.dumps(schema), encoding="utf-8")


def without_unknown_fields(schema: Any) -> Any:  # noqa: ANN401 - any JSON
    """Refuse fields that the schema does not list, as `kubectl --validate=strict` does."""
    if isinstance(schema, list):
        return [without_unknown_fields(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return EITHER
    found = {name: without_unknown_fields(part) for name, part in schema.items()}
    closes = isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema
    if closes and not schema.get("x-kubernetes-preserve-unknown-fields"):
        found["additionalProperties"] = False
    return found


def needed_definitions(name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    needed: dict[str, Any] = {}
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one not in needed:
            needed[one] = definitions[one]
            waiting += references(definitions[one])
    return needed


def references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rpartition("/")[2]
        for part in schema.values():
            yield from references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from references(part)
