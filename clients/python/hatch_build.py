"""Adds the package `gatehouse_client`: the files of src/gatehouse/client under another name.

Another name, because both distributions may be installed in one environment, and pip would write one's files over the
other's. An archive of the sources contains the package, and is built without the rest of the repository.
"""

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE: Final = "gatehouse_client"
OWN_IMPORT: Final = re.compile(r"^(\s*(?:from|import) )gatehouse\.client\b", re.MULTILINE)


class ClientPackage(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - of the interface
        package = Path(self.root) / PACKAGE
        sources = Path(self.root).parents[1] / "src" / "gatehouse" / "client"
        if not package.is_dir():
            self._made = tempfile.mkdtemp(prefix="gatehouse-client-")
            package = Path(self._made) / PACKAGE
            rename_package(sources, package)
        build_data["force_include"][str(package)] = PACKAGE
        if self.target_name == "wheel":  # type checkers look for this file beside gatehouse/client.py
            build_data["force_include"][str(package / "py.typed")] = "gatehouse/client/py.typed"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        shutil.rmtree(getattr(self, "_made", ""), ignore_errors=True)


def rename_package(sources: Path, package: Path) -> None:
    package.mkdir()
    (package / "py.typed").touch()
    for source in sorted(sources.glob("*.py")):
        text = source.read_text(encoding="utf-8")
        (package / source.name).write_text(OWN_IMPORT.sub(rf"\g<1>{PACKAGE}", text), encoding="utf-8")
