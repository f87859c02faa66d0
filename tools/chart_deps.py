"""Build what `make chart-test` runs: Helm, kubeconform and actionlint, and the schemas of Kubernetes.

Programs are built from the Go modules that tests/docs/tools/go.sum locks, into .test-deps/; it takes minutes once.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.interop.toolchains import go_lock, is_made_from, stamp
from tests.support.find_programs import DOWNLOADS, ROOT

from tools.client_deps import BUILD_TIMEOUT, GO_PLACES
from tools.install import CouldNotGet, run, say
from tools.kubernetes_schemas import write_schemas

SOURCE: Final = ROOT / "tests" / "docs" / "tools"
PROGRAMS: Final = DOWNLOADS / "go-tools"
SCHEMAS: Final = DOWNLOADS / "kubernetes-schemas"
PACKAGES: Final = (
    "github.com/rhysd/actionlint/cmd/actionlint",
    "github.com/yannh/kubeconform/cmd/kubeconform",
    "helm.sh/helm/v3/cmd/helm",
)
# Modules that are read, not built: exactly these files.
KUBERNETES: Final = ("k8s.io/kubernetes@v1.36.3", "h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o=")
OPERATOR: Final = (
    "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
)


def main() -> int:
    if is_made_from(PROGRAMS, *go_lock(SOURCE), Path(__file__)):
        return 0
    go = shutil.which("go") or shutil.which("go", path=GO_PLACES)
    if go is None:
        say("COULD NOT BUILD the tools of make chart-test: Go is not installed")
        return 1
    try:
        for package in PACKAGES:
            say(f"building {package}")
            run([go, "build", "-o", f"{PROGRAMS}/", package], SOURCE, {"CGO_ENABLED": "0"}, timeout=BUILD_TIMEOUT)
        say("reading the schemas of Kubernetes")
        write_schemas(module_directory(go, *KUBERNETES), module_directory(go, *OPERATOR), SCHEMAS)
    except CouldNotGet as trouble:
        say(f"COULD NOT BUILD the tools of make chart-test: {trouble}")
        return 1
    stamp(PROGRAMS, *go_lock(SOURCE), Path(__file__))
    return 0


def module_directory(go: str, module: str, digest: str) -> Path:
    """Download a module and return its directory. Raises CouldNotGet if its files are not the expected ones."""
    command = [go, "mod", "download", "-json", module]
    ended = subprocess.run(command, cwd=DOWNLOADS, capture_output=True, text=True, check=False, timeout=BUILD_TIMEOUT)
    if ended.returncode:
        raise CouldNotGet(f"{module}: {ended.stdout[-200:]}{ended.stderr[-200:]}")
    found = json.loads(ended.stdout)
    if found["Sum"] != digest:
        raise CouldNotGet(f"the checksum of {module} does not match")
    return Path(found["Dir"])


if __name__ == "__main__":
    sys.exit(main())
