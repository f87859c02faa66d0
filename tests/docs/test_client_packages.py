"""The packages of the clients that `make build` makes: versions, contents, checksums; npm and CMake take them."""

import hashlib
import json
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from tools.client_packages import CHECKSUMS, CLIENTS, build_packages
from tools.repository import read_project

from tests.game_clients.support.games import TYPESCRIPT
from tests.interop.toolchains import find_cpp, find_node
from tests.support.capabilities import require_program

VERSION: str = read_project()["version"]
USE_THE_PACKAGE = 'import { Gatehouse } from "gatehouse-backend"; console.log(typeof Gatehouse);'
GAME = """\
cmake_minimum_required(VERSION 3.16)
project(game CXX)
add_subdirectory({client} client)
add_executable(game {client}/example.cpp)
target_link_libraries(game PRIVATE gatehouse::client)
"""


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_program(TYPESCRIPT)
    built = tmp_path_factory.mktemp("clients")
    assert build_packages(built) == []
    return built


def test_versions_of_all_clients_are_that_of_the_project() -> None:
    python = tomllib.loads((CLIENTS / "python" / "pyproject.toml").read_text())["project"]
    versions = {
        "python": python["version"],
        "typescript": json.loads((CLIENTS / "typescript" / "backend" / "package.json").read_text())["version"],
        "unity": json.loads((CLIENTS / "unity" / "package.json").read_text())["version"],
        "godot": version_in(CLIENTS / "godot" / "addons" / "gatehouse" / "plugin.cfg", r'^version="(.+)"$'),
        "cpp": version_in(CLIENTS / "cpp" / "CMakeLists.txt", r"^project\(.* VERSION (\S+) "),
    }
    assert set(versions.values()) == {VERSION}, versions
    assert f"## [{VERSION}]" in (CLIENTS / "unity" / "CHANGELOG.md").read_text()
    assert {re.split(r">=", line)[0] for line in python["dependencies"]} == {"cryptography", "msgspec"}
    assert not [line for line in python["dependencies"] if re.search(r"[<~!=]=|<", line.replace(">=", ""))]


def version_in(file: Path, pattern: str) -> str:
    found = re.search(pattern, file.read_text(), re.MULTILINE)
    assert found is not None, file
    return found[1]


def test_op_10_every_package_has_its_checksum_and_its_license(packages: Path) -> None:
    files = {path.name: path for path in packages.iterdir() if path.name != CHECKSUMS}
    sums = dict(reversed(line.split()) for line in (packages / CHECKSUMS).read_text().splitlines())
    assert sums == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    assert sorted(files) == sorted(
        (
            f"gatehouse_client-{VERSION}-py3-none-any.whl",
            f"gatehouse_client-{VERSION}.tar.gz",
            f"gatehouse-backend-{VERSION}.tgz",
            f"gatehouse-cpp-{VERSION}.zip",
            f"gatehouse-godot-{VERSION}.zip",
            f"gatehouse-unity-{VERSION}.tgz",
        )
    )
    contents = {name: names_in(path) for name, path in files.items()}
    assert [name for name, inside in contents.items() if not any("LICENSE" in one for one in inside)] == []
    wanted = {
        f"gatehouse-unity-{VERSION}.tgz": {"package/package.json", "package/Runtime/GatehouseClient.cs.meta"},
        f"gatehouse-godot-{VERSION}.zip": {"addons/gatehouse/plugin.cfg"},
        f"gatehouse-cpp-{VERSION}.zip": {f"gatehouse-cpp-{VERSION}/gatehouse_login.hpp"},
        f"gatehouse-backend-{VERSION}.tgz": {"package/dist/index.js", "package/dist/index.d.ts"},
        f"gatehouse_client-{VERSION}.tar.gz": {f"gatehouse_client-{VERSION}/gatehouse_client/py.typed"},
    }
    assert {name: names - set(contents[name]) for name, names in wanted.items() if names - set(contents[name])} == {}


def names_in(archive: Path) -> list[str]:
    if archive.suffix in (".zip", ".whl"):
        with zipfile.ZipFile(archive) as zipped:
            return zipped.namelist()
    with tarfile.open(archive) as tar:
        return tar.getnames()


def test_node_runs_the_typescript_package_from_its_archive(packages: Path, tmp_path: Path) -> None:
    node = find_node()
    assert node is not None
    shutil.unpack_archive(
        packages / f"gatehouse-backend-{VERSION}.tgz", tmp_path / "unpacked", "gztar", filter="data"
    )
    shutil.copytree(tmp_path / "unpacked" / "package", tmp_path / "node_modules" / "gatehouse-backend")
    (tmp_path / "app.mjs").write_text(USE_THE_PACKAGE)
    ran = subprocess.run([node[0], "app.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "function"


@pytest.mark.skipif(shutil.which("cmake") is None or find_cpp() is None, reason="needs CMake, g++, libcurl")
def test_cmake_finds_what_the_headers_for_cpp_need(packages: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(packages / f"gatehouse-cpp-{VERSION}.zip", tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(GAME.format(client=f"gatehouse-cpp-{VERSION}"))
    subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "built"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path / "built"], check=True, capture_output=True)
