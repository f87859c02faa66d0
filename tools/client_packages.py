"""Build the packages of the clients, each with the version of the project, and SHA256SUMS: part of `make build`.

Run as `python -m tools.client_packages dist/clients`. The same sources give the same bytes. The TypeScript package
needs a compiler, which is installed as for the tests; without it the program leaves that package out and says so, and
fails with `--all`.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Final

from tests.interop.toolchains import find_node, find_typescript

from gatehouse.web.pages.client_files import zip_folder
from tools.client_deps import CLIENT_PROGRAMS
from tools.install import ensure_installed, say
from tools.repository import ROOT, read_project

CLIENTS: Final = ROOT / "clients"
CHECKSUMS: Final = "SHA256SUMS"
TYPESCRIPT: Final = next(program for program in CLIENT_PROGRAMS if program.find is find_typescript)

Files = dict[str, bytes]


class CouldNotBuild(Exception):
    """Says why."""


def build_packages(into: Path) -> list[str]:
    """Build all packages that can be built here; return what could not be, one sentence each."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    version = str(read_project()["version"])
    build_python(into)
    (into / f"gatehouse-unity-{version}.tgz").write_bytes(pack_tar(read_folder(CLIENTS / "unity")))
    (into / f"gatehouse-godot-{version}.zip").write_bytes(zip_folder(CLIENTS / "godot" / "addons", "addons/"))
    (into / f"gatehouse-cpp-{version}.zip").write_bytes(zip_folder(CLIENTS / "cpp", f"gatehouse-cpp-{version}/"))
    problems = []
    try:
        (into / f"gatehouse-backend-{version}.tgz").write_bytes(pack_tar(typescript_files()))
    except CouldNotBuild as problem:
        problems.append(f"gatehouse-backend is not built: {problem}")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(into.iterdir())]
    (into / CHECKSUMS).write_text("".join(sums))
    return problems


def build_python(into: Path) -> None:
    run([sys.executable, "-m", "hatchling", "build", "-d", str(into.resolve())], CLIENTS / "python")


def typescript_files() -> Files:
    """The compiled package: Node strips no types in node_modules."""
    ensure_installed(TYPESCRIPT)
    compiler, node = find_typescript(), find_node()
    if compiler is None or node is None:
        raise CouldNotBuild("TypeScript is not installed")
    package = CLIENTS / "typescript" / "backend"
    with tempfile.TemporaryDirectory() as compiled:
        run([node[0], str(compiler), "-p", str(package), "--outDir", compiled], package)
        built = {f"dist/{name}": content for name, content in read_folder(Path(compiled)).items()}
    names = ("package.json", "README.md")
    return {
        **built,
        **{name: (package / name).read_bytes() for name in names},
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
    }


def read_folder(folder: Path) -> Files:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def pack_tar(files: Files) -> bytes:
    """Pack files as the registries of npm and Unity want them: below `package/`."""
    packed = BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(f"package/{name}")
            member.size, member.mode, member.mtime = len(content), 0o644, 0
            tar.addfile(member, BytesIO(content))
    return packed.getvalue()


def run(command: list[str], folder: Path) -> None:
    ended = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, check=False)  # noqa: TID251
    if ended.returncode:
        raise CouldNotBuild((ended.stdout + ended.stderr).strip()[-500:])


def main(arguments: list[str]) -> int:
    problems = build_packages(Path(arguments[0]))
    for problem in problems:
        say(problem)
    for path in sorted(Path(arguments[0]).iterdir()):
        print(path)
    return 1 if problems and "--all" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
