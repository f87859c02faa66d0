"""The Helm chart: it agrees with the rest, lints, and renders what Kubernetes accepts."""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from msgspec.structs import fields
from tools.repository import read_project

from gatehouse.settings.entries import all_names, setting_of_name
from gatehouse.settings.model import Settings
from gatehouse.settings.providers import ProviderSettings
from gatehouse.settings.sources import setting_of_variable
from tests.support.capabilities import HELM, KUBECONFORM, require_program
from tests.support.find_programs import DOWNLOADS, ROOT
from tests.support.packaging import DEPLOY, user_of

CHART: Final = DEPLOY / "helm" / "gatehouse"
VARIANTS: Final = sorted((CHART / "ci").glob("*-values.yaml"))
SCHEMAS: Final = DOWNLOADS / "kubernetes-schemas"
KUBERNETES: Final = "1.36"  # of the schemas; tools/chart_deps.py
ALL_KINDS: Final = {
    *("ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Ingress", "Job", "NetworkPolicy"),
    *("PodDisruptionBudget", "Service", "ServiceAccount", "ServiceMonitor"),
}
variants: Final = pytest.mark.parametrize("values", VARIANTS, ids=lambda path: path.name.partition("-")[0])


def run(command: Sequence[str | Path], text: str | None = None) -> str:
    ended = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def render(values: Path) -> list[dict[str, Any]]:
    command = [require_program(HELM), "template", "id", CHART, "--kube-version", KUBERNETES, "--values", values]
    text = run(command)
    return [document for document in yaml.safe_load_all(text) if document]


def test_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == read_project()["version"]


def test_chart_grants_what_the_other_installations_grant() -> None:
    assert (CHART / "files" / "postgresql-grants.sql").read_text() == (DEPLOY / "postgresql-grants.sql").read_text()


def test_schema_of_the_values_knows_exactly_the_values() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())

    def compare(value: dict[str, Any], known: dict[str, Any]) -> None:
        properties = known.get("properties", {}).keys() - {"global"}
        assert not properties or value.keys() == properties
        for name, inner in value.items():
            if isinstance(inner, dict) and "properties" in known.get("properties", {}).get(name, {}):
                compare(inner, known["properties"][name])

    compare(values, schema)


def test_dp_03_secrets_are_refused_in_settings_and_everything_else_is_taken() -> None:
    """As values they would be readable in the Deployment, in Helm's release and in the shell's history."""
    names = json.loads((CHART / "values.schema.json").read_text())["properties"]["settings"]["propertyNames"]

    def is_taken(name: str) -> bool:
        return bool(re.search(names["pattern"], name)) and not re.search(names["not"]["pattern"], name)

    every = [*all_names(Settings()), *(f"providers.google.{field.name}" for field in fields(ProviderSettings))]
    secret = {name for name in every if setting_of_name(name).is_secret}
    assert {"mail.password", "database.url", "providers.google.client_secret"} <= secret
    assert {name for name in every if not is_taken(name)} == secret
    for name in ("providers__google.client_secret", "mail__password", "MAIL.PASSWORD", "security__master_key.file"):
        assert not is_taken(name), "another spelling of the same variable"


@pytest.mark.parametrize("needed", ["imagePullSecrets", "nodeSelector", "tolerations"])
def test_every_pod_of_the_chart_gets_what_the_cluster_needs_to_run_it(needed: str) -> None:
    for file, count in (("migrate.yaml", 2), ("deployment.yaml", 1)):
        pods = (CHART / "templates" / file).read_text().split("  template:\n")[1:]
        assert len(pods) == count
        for pod in pods:
            assert f"with .Values.{needed} }}}}\n      {needed}:\n" in pod, (file, needed)


def test_every_variable_of_the_chart_is_a_setting() -> None:
    text = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    names = set(re.findall(r"GATEHOUSE__[A-Z_]+[A-Z]", text)) - {"GATEHOUSE__"}
    assert len(names) > 5
    for name in names:
        assert setting_of_variable(name.removesuffix("__FILE")) is not None, name


def test_pods_run_as_the_user_of_the_image() -> None:
    text = (CHART / "templates" / "_helpers.tpl").read_text()
    assert f"runAsUser: {user_of('gatehouse')}\n" in text


@variants
def test_chart_passes_helm_lint(values: Path) -> None:
    assert "0 chart(s) failed" in run([require_program(HELM), "lint", "--strict", CHART, "--values", values])


@variants
def test_chart_renders_what_the_schemas_of_kubernetes_accept(values: Path) -> None:
    program = require_program(KUBECONFORM)
    documents = render(values)
    text = "---\n".join(map(yaml.safe_dump, documents))
    location = f"{SCHEMAS}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    summary = run([program, "-strict", "-summary", "-schema-location", location, "-output", "json"], text)
    assert json.loads(summary)["summary"] == {
        "valid": len(documents),
        "invalid": 0,
        "errors": 0,
        "skipped": 0,
    }


def test_full_values_render_every_kind_and_bare_values_few() -> None:
    full, bare = (render(CHART / "ci" / f"{name}-values.yaml") for name in ("full", "bare"))
    assert {document["kind"] for document in full} == ALL_KINDS
    assert {document["kind"] for document in bare} == {"Deployment", "Service"}


def test_chart_refuses_values_that_it_does_not_know() -> None:
    command = [require_program(HELM), "template", "id", CHART, "--kube-version", KUBERNETES]
    wrong = ["--set", "baseUrl=https://id.example.org,replica=3"]
    refused = subprocess.run([*command, *wrong], capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "replica" in refused.stderr
    without = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "baseUrl" in without.stderr


def test_pods_have_no_rights_they_do_not_need() -> None:
    for document in render(CHART / "ci" / "full-values.yaml"):
        template = document.get("spec", {}).get("template")
        if template is None:
            continue
        pod = template["spec"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert all("value" in entry for entry in container.get("env", ()))  # secrets are files


def test_dp_03_chart_refuses_secrets_in_settings() -> None:
    command = [require_program(HELM), "template", "id", CHART, "--kube-version", KUBERNETES]
    wrong = ["--set", r"baseUrl=https://id.example.org,settings.mail\.password=hunter2"]
    refused = subprocess.run([*command, *wrong], capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "mail.password" in refused.stderr


def test_all_pods_run_where_the_values_say() -> None:
    pods = [
        document["spec"]["template"]["spec"]
        for document in render(CHART / "ci" / "full-values.yaml")
        if document["kind"] in {"Deployment", "Job"}
    ]
    assert [pod["imagePullSecrets"] for pod in pods] == [[{"name": "registry"}]] * 3
    assert [pod["tolerations"] for pod in pods] == [[{"key": "dedicated", "operator": "Exists"}]] * 3
    assert [pod["nodeSelector"] for pod in pods] == [{"kubernetes.io/os": "linux"}] * 3


def test_authority_of_the_database_is_mounted_where_the_page_says() -> None:
    path = "/run/secrets/gatehouse/database-ca.pem"
    assert path in (ROOT / "docs" / "operations" / "kubernetes.md").read_text()
    documents = render(CHART / "ci" / "full-values.yaml")
    pods = [
        document["spec"]["template"]["spec"] for document in documents if document["kind"] in {"Deployment", "Job"}
    ]
    for pod in pods:
        (container,) = pod["containers"]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        (volume,) = (volume for volume in pod["volumes"] if volume["name"] == "secrets")
        files = {item["path"] for source in volume["projected"]["sources"] for item in source["secret"]["items"]}
        assert path in {f"{mounts['secrets']}/{name}" for name in files}
    assert len(pods) == 3


def test_page_names_values_that_exist() -> None:
    page = (ROOT / "docs" / "operations" / "kubernetes.md").read_text()
    rows = [line.split("|")[1] for line in page.partition("## Values")[2].splitlines() if line.startswith("| `")]
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for name in (name for row in rows for name in re.findall(r"`([a-zA-Z.]+)`", row)):
        found = values
        for part in name.split("."):
            assert part in found, name
            found = found[part]
