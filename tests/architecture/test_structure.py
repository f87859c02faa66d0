"""The packages import each other as docs/architecture.md says."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tools import package_index

SOURCE = package_index.ROOT / "src" / "gatehouse"
# `conditions` reads stored conditions; `limits` is called inside the transaction that adds something; `system_tags`
# are stored beside those that people set; `merge` has the rules of a merge, which is one transaction.
STORAGE_MAY_IMPORT = {"model", "store", "errors", "events", "conditions", "limits", "system_tags", "merge"}
STORAGE_MAY_IMPORT |= {"session_model", "api_model", "nodes"}  # records of a subject with a file of its own

# Parts of a process, imported and built at their first use: a command uses few. Their types are imported for mypy,
# and are among the imports that must not form a loop.
PARTS = {"app/services/__init__.py", "app/services/core.py", "storage/database.py"}
LAZY_IMPORTS = {
    ("__init__.py", "importlib.metadata"),
    ("images/worker.py", "PIL"),  # after the limits of the process are set
    ("accounts/importing/hashes.py", "bcrypt"),
    ("accounts/second_factors/passkeys.py", "gatehouse.accounts.second_factors.ceremony"),
    ("app/api_endpoints.py", "gatehouse.app.services.activity"),
    ("app/api_endpoints.py", "gatehouse.app.services.installation"),
    ("app/api_endpoints.py", "gatehouse.app.services.people"),
    ("app/api_endpoints.py", "gatehouse.admin.people"),
    ("app/console/sections.py", "gatehouse.app.console"),
    ("app/endpoints.py", "gatehouse.app.console.sections"),
    ("app/endpoints.py", "gatehouse.app.console.shared"),
    ("app/management.py", "gatehouse.app.services.listing"),
    ("app/page_endpoints.py", "gatehouse.app.services.people"),
    ("app/services/mail.py", "gatehouse.accounts.phones.sender"),
    ("app/services/mail.py", "gatehouse.app.services.smtp"),
    ("kernel/public_suffixes.py", "fido2.rpid"),
    ("languages.py", "babel.core"),
    ("languages.py", "babel.dates"),
    ("languages.py", "babel.numbers"),
    ("mail/composer.py", "gatehouse.mail.email_templates"),
    ("web/api/health.py", "gatehouse.web.http.metrics_text"),
    ("web/http/geoip.py", "gatehouse.web.http.geoip_file"),
    ("web/pages/guides.py", "gatehouse.web.pages.markdown"),
    ("web/pages/rendering.py", "gatehouse.web.pages.template_environment"),
    ("web/server/websocket_factory.py", "gatehouse.web.server.websocket"),
}


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_every_package_has_a_summary_and_the_index_page_is_current() -> None:
    assert package_index.PAGE.read_text() == package_index.page(), "run tools/package_index.py"
    assert all(len(line.split()) > 6 for line in package_index.packages())


def test_storage_imports_only_the_records_stores_and_errors_of_packages() -> None:
    wrong = []
    for path in SOURCE.glob("storage/**/*.py"):
        for module in imports_of(path):
            parts = module.split(".")
            if parts[0] != "gatehouse" or len(parts) < 2 or parts[1] in {"storage", "kernel", "fields"}:
                continue
            if not STORAGE_MAY_IMPORT & set(parts[2:]):
                wrong.append(f"{path.relative_to(SOURCE)} imports {module}")
    assert wrong == []


def lazy_imports(path: Path) -> Iterator[str]:
    """What the functions of a file import when they are called."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.ImportFrom) and inner.module:
                    yield inner.module
                elif isinstance(inner, ast.Import):
                    yield from (name.name for name in inner.names)


def test_only_listed_modules_are_imported_inside_functions() -> None:
    """Commands import what they need; the other exceptions are heavy and used by few processes."""
    imports = {
        (str(path.relative_to(SOURCE)), module)
        for path in SOURCE.glob("**/*.py")
        if not path.is_relative_to(SOURCE / "cli") and str(path.relative_to(SOURCE)) not in PARTS
        for module in lazy_imports(path)
    }
    assert imports == LAZY_IMPORTS


def test_no_module_is_imported_by_a_string() -> None:
    """Such an import is invisible to mypy and to the import contracts; the command table is the exception."""
    modules = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.glob("**/*.py")
        if "import_module" in path.read_text() and not path.is_relative_to(SOURCE / "cli")
    ]
    libraries = ["accounts/password_rules.py", "web/pages/template_filters.py"]
    assert sorted(modules) == sorted([*libraries, "storage/database.py"])


def test_stores_are_imported_from_where_their_types_are() -> None:
    tree = ast.parse((SOURCE / "storage" / "database.py").read_text())
    types = {
        name.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
    }
    (storage,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Storage")
    stores = [node for node in storage.body if isinstance(node, ast.AnnAssign)]
    assert len(stores) > 40
    for store in stores:
        name = ast.literal_eval(store.annotation)
        assert isinstance(store.value, ast.Call)
        place = ast.literal_eval(store.value.args[0])
        assert f"gatehouse.storage.{place}" == f"{types[name]}:{name}"


def test_no_module_hides_an_import_cycle_behind_type_checking() -> None:
    hidden = {str(path.relative_to(SOURCE)) for path in SOURCE.glob("**/*.py") if "TYPE_CHECKING" in path.read_text()}
    assert hidden == PARTS


def test_no_files_import_each_other_not_even_inside_functions() -> None:
    modules = {module_of(path): path for path in SOURCE.glob("**/*.py")}
    imports = {name: {part for part in imported_names(path) if part in modules} for name, path in modules.items()}
    while free := {name for name, needs in imports.items() if not needs}:  # what is left at the end is in a loop
        imports = {name: needs - free for name, needs in imports.items() if name not in free}
    assert not imports


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def imported_names(path: Path) -> Iterator[str]:
    """Every module that a file imports anywhere, and every name it imports from one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                yield f"{node.module}.{name.name}"
            if module_of(path) != node.module:
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_no_file_is_named_utils_helpers_or_misc() -> None:
    names = {path.stem for path in SOURCE.glob("**/*.py")}
    assert not names & {"utils", "util", "helpers", "helper", "common_utils", "misc", "manager"}


def uvicorn_names(path: Path) -> Iterator[str]:
    """The parts of uvicorn that a file uses."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "uvicorn":
            yield node.attr
        elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "uvicorn":
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("uvicorn."))


def test_only_documented_parts_of_uvicorn_are_used() -> None:
    """Its upper bound is the next major version: docs/decisions/0002-dependencies.md."""
    used = {name for path in SOURCE.rglob("*.py") for name in uvicorn_names(path)}
    assert used == {"Config", "Server", "run"}
