"""The dependencies of `make test-deps` are locked by hash, and no lock file names a registry."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from tests.interop.toolchains import (
    GITEA_SOURCE,
    GO_SOURCE,
    JAVA_SOURCE,
    KEYCLOAK_LOCK,
    MORE_NODE_LOCK,
    MORE_PYTHON_LOCK,
    NODE_LOCK,
    OAUTH2_PROXY_SOURCE,
    PAGES_NODE_LOCK,
    PAGES_PYTHON_LOCK,
    PEER_LOCK,
    PYTHON_LOCK,
    PYTHON_PEER_LOCK,
    RUST_SOURCE,
    SINGLE_PAGE_LOCK,
    SPRING_SOURCE,
    TYPESCRIPT_LOCK,
)
from tests.support.find_programs import ROOT

NODE_LOCKS: Final = [NODE_LOCK, MORE_NODE_LOCK, PAGES_NODE_LOCK, PEER_LOCK, SINGLE_PAGE_LOCK, TYPESCRIPT_LOCK]


def packages_of(lock: Path) -> dict[str, dict[str, Any]]:
    packages: dict[str, dict[str, Any]] = json.loads(lock.read_text())["packages"]
    return {name: package for name, package in packages.items() if name}


@pytest.mark.parametrize("lock", NODE_LOCKS, ids=lambda lock: str(lock.relative_to(ROOT)))
def test_every_node_package_has_a_digest_and_no_url(lock: Path) -> None:
    for package in packages_of(lock).values():
        assert package["integrity"].startswith("sha512-")
        assert "resolved" not in package


@pytest.mark.parametrize("lock", NODE_LOCKS, ids=lambda lock: str(lock.relative_to(ROOT)))
def test_locked_node_versions_match_the_requested_versions(lock: Path) -> None:
    wanted = json.loads(lock.with_name("package.json").read_text())["dependencies"]
    assert {name: packages_of(lock)[f"node_modules/{name}"]["version"] for name in wanted} == wanted


@pytest.mark.parametrize(
    "lock",
    [PYTHON_LOCK, MORE_PYTHON_LOCK, PAGES_PYTHON_LOCK, PYTHON_PEER_LOCK],
    ids=lambda lock: str(lock.relative_to(ROOT)),
)
def test_every_python_package_has_digests_and_no_url(lock: Path) -> None:
    text = lock.read_text().replace("\\\n", " ")
    assert "://" not in text
    pins = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==\S+(\s+--hash=sha256:[0-9a-f]{64})+\s*", pin) for pin in pins)


def test_every_go_module_and_jar_has_its_digest() -> None:
    for source, count in ((GO_SOURCE, 3), (OAUTH2_PROXY_SOURCE, 62), (GITEA_SOURCE, 262)):
        text = (source / "go.mod").read_text()
        modules = re.findall(r"^\s*(?:require )?(\S+/\S+ v\S+)", text, re.MULTILINE)
        replaced = dict(re.findall(r"^\s*(\S+) => (\S+ v\S+)", text, re.MULTILINE))
        digests = (source / "go.sum").read_text()
        assert len(modules) == count
        assert all(f"{replaced.get(module.split()[0], module)} h1:" in digests for module in modules)
    jars = [
        line for source in (JAVA_SOURCE, SPRING_SOURCE) for line in (source / "jars.sha256").read_text().splitlines()
    ]
    assert all(re.fullmatch(r"[0-9a-f]{64} \S+\.jar", line) for line in jars)


def test_every_crate_has_its_digest_and_its_requested_version() -> None:
    packages = tomllib.loads((RUST_SOURCE / "Cargo.lock").read_text())["package"]
    crates = {package["name"]: package for package in packages if "source" in package}
    assert len(packages) == len([package for package in packages if "checksum" in package]) + 1, "ours has none"
    wanted = tomllib.loads((RUST_SOURCE / "Cargo.toml").read_text())["dependencies"]
    exact = {name: want if isinstance(want, str) else want["version"] for name, want in wanted.items()}
    assert {name: f"={crates[name]['version']}" for name in wanted} == exact


def test_keycloak_archive_has_its_version_and_digest() -> None:
    assert re.fullmatch(r"[0-9a-f]{64} keycloak-quarkus-dist-26\.\d+\.\d+\.tar\.gz\n", KEYCLOAK_LOCK.read_text())
