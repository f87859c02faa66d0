"""Check deploy/nodes/compose.yaml without a container engine.

tests/faults/test_many_nodes.py runs the files that it mounts.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from gatehouse.settings.entries import FILE_SUFFIX
from gatehouse.settings.sources import setting_of_variable
from tests.support.packaging import DEPLOY, NODES, read_compose, user_of

FILE: Final = read_compose(NODES)
SERVICES: Final[dict[str, dict[str, Any]]] = FILE["services"]
OURS: Final = ("node1", "node2", "node3")
ALL: Final = ("db", "standby", "migrate", "grants", *OURS, "proxy")


def test_these_are_all_services_there_are() -> None:
    assert SERVICES.keys() == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_every_container_is_read_only_unprivileged_and_gets_its_secrets_as_files(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert user_of(name, NODES) != 0
    assert set(service["secrets"]) <= FILE["secrets"].keys()
    for variable, value in service.get("environment", {}).items():
        if variable.startswith("GATEHOUSE__"):
            assert setting_of_variable(variable.removesuffix(FILE_SUFFIX)) is not None
        if variable.endswith("_FILE"):
            assert value.removeprefix("/run/secrets/") in service["secrets"]


def mounted_volumes() -> Iterator[tuple[str, str, str]]:
    for name, service in SERVICES.items():
        for volume in service.get("volumes", ()):
            source, target, *how = volume.split(":")
            yield name, source, target
            if source.startswith("."):
                assert how == ["ro"]


def test_mounted_files_exist_and_match_the_paths_in_use() -> None:
    files = [(name, source, target) for name, source, target in mounted_volumes() if source.startswith(".")]
    assert all((NODES / source).resolve().is_relative_to(DEPLOY) for _, source, _ in files)
    assert all((NODES / source).is_file() for _, source, _ in files)
    beside = {target.rpartition("/") for name, _, target in files if name == "proxy"}
    assert {directory for directory, _, _ in beside} == {"/etc/nginx/gatehouse"}
    included = re.findall(r"include (\S+);", (NODES / "nginx.conf").read_text())
    assert {file for _, _, file in beside} == {"nginx.conf", *included}


def test_the_proxy_knows_every_node_and_every_node_believes_the_proxy_alone() -> None:
    matches = re.findall(r"^server (\S+):8080 ", (NODES / "nodes.conf").read_text(), re.MULTILINE)
    assert tuple(matches) == OURS
    address = SERVICES["proxy"]["networks"]["back"]["ipv4_address"]
    for name in OURS:
        assert SERVICES[name]["environment"]["GATEHOUSE__SERVER__TRUSTED_PROXIES"] == address
        assert SERVICES["proxy"]["depends_on"][name] == {"condition": "service_healthy"}


def test_the_nodes_are_alike_and_only_the_proxy_is_reachable() -> None:
    assert SERVICES["node1"] == SERVICES["node2"] == SERVICES["node3"]
    assert [name for name in ALL if "ports" in SERVICES[name]] == ["proxy"]
    listening = re.findall(r"^listen (\d+) ssl", (NODES / "listen.conf").read_text(), re.MULTILINE)
    assert SERVICES["proxy"]["ports"] == [f"443:{listening[0]}"]
    assert FILE["networks"]["back"]["internal"]


def test_shared_parts_of_both_compose_files_are_identical() -> None:
    """So moving from one machine to several changes nothing else."""
    single = read_compose()
    assert FILE["x-hardened"] == single["x-hardened"]
    assert FILE["x-postgres"] == single["x-postgres"]
    for name in ("migrate", "grants"):
        ours, theirs = dict(SERVICES[name]), dict(single["services"][name])
        for key in ("build", "volumes"):  # relative to the file
            ours.pop(key, None)
            theirs.pop(key, None)
        assert ours == theirs
