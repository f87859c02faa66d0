"""Whether what lies here can be released: `make release-check` (docs/operations/release.md).

Builds twice and compares, looks into the wheel, installs it with the locked requirements into a new environment,
starts it there, asks it a few things and stops it; writes the bill of materials of that environment into dist/;
looks at pins, licences and imports; and asks whether any requirement is known to be vulnerable. The first thing that
is wrong ends it. The audit is last, so that without a network everything else is checked.
"""

import ast
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
import venv
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
DIST: Final = ROOT / "dist"
CLIENTS: Final = "clients"  # in dist/: the packages of the clients
LOCK: Final = ROOT / "requirements.txt"
PIN: Final = re.compile(r"([a-z0-9-]+)==([0-9][0-9a-z.+]*)((?: --hash=sha256:[0-9a-f]{64})+)")
READY: Final = re.compile(r"ready (\S+)")
STATIC: Final = re.compile(r'"(/static/[^"]+)"')
PATIENCE: Final = 60  # seconds a new environment may take to start or stop
OK: Final = 200

# Imported by others on our behalf, never by us.
NEVER_IMPORTED: Final[Mapping[str, str]] = {
    "greenlet": "SQLAlchemy's engine for asyncpg, in migrations",
    "python-multipart": "imported as python_multipart",
}
WANTED: Final = ("py.typed", "web/templates/", "web/locales/en.toml", "web/locales/de.toml", "web/static/")
UNWANTED: Final = re.compile(
    r"(^|/)(__pycache__|data|\.git)(/|$)|(^|/)(test_\w+|conftest)\.py$|\.(db|pyc|key|pem|log|sqlite)$"
)

# What may run with our master key: licences that ask for no more than to be named.
ALLOWED: Final = (
    *("Apache", "MIT", "BSD", "ISC", "PSF", "Python Software Foundation", "MPL-2.0", "any-OSI", "0BSD", "Zlib"),
    *("The Unlicense", "Unlicense", "CC0", "Mozilla Public License 2.0"),
)


class NotReady(Exception):
    """Says what is wrong."""


# -- what can be known without building -----------------------------------------------------------------


def pins(path: Path) -> dict[str, str]:
    """Version by package; every line is a pin with hashes."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]
    found: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith("#"):
            pin = PIN.fullmatch(line)
            if pin is None:
                raise NotReady(f"{path.name}: not a pinned requirement with hashes: {line[:80]}")
            found[pin[1]] = pin[2]
    return found


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.split(r"[<>=\[]", line)[0].strip() for line in project["dependencies"]}


def is_of_an_extra(name: str) -> bool:
    """Tell whether it belongs to `gatehouse[telemetry]`, whose packages share one module."""
    return name.startswith("opentelemetry-")


def imported_distributions(source: Path) -> set[str]:
    """The distributions whose modules the package imports, wherever in a file, by a statement or by name."""
    return statement_imports(source) | distributions_of(source, names_in)


def statement_imports(source: Path) -> set[str]:
    return distributions_of(source, modules_in) - {"gatehouse"}


def distributions_of(source: Path, found_in: Callable[[ast.Module], Iterator[str]]) -> set[str]:
    by_module = distributions_by_module()
    modules = {name for tree in syntax_trees(source) for name in found_in(tree)} - sys.stdlib_module_names
    return {normalize_name(one) for module in modules for one in by_module.get(module, ())}


distributions_by_module = cache(metadata.packages_distributions)


@cache
def syntax_trees(source: Path) -> list[ast.Module]:
    return [ast.parse(path.read_text(encoding="utf-8")) for path in source.rglob("*.py")]


def modules_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def names_in(tree: ast.Module) -> Iterator[str]:
    """Texts that may name a module: what is loaded when it is first used."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value


def normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def check_imports() -> str:
    used, named = imported_distributions(ROOT / "src" / "gatehouse"), declared()
    unused, unnamed = named - used - NEVER_IMPORTED.keys(), statement_imports(ROOT / "src" / "gatehouse") - named
    unnamed = {name for name in unnamed if not is_of_an_extra(name)}
    if unused or unnamed:
        raise NotReady(f"declared but never imported: {sorted(unused)}; imported but not declared: {sorted(unnamed)}")
    return f"{len(named)} dependencies, all imported, none undeclared"


def licence_of(name: str) -> str:
    about = metadata.metadata(name)
    classified = [line for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    told = about.get("License-Expression") or "; ".join(line.rpartition(" :: ")[2] for line in classified)
    return str(told or (about.get("License") or "").partition("\n")[0] or first_line_of_licence(name) or "unknown")


def first_line_of_licence(name: str) -> str:
    """For packages that carry the text and do not name it."""
    files = [path for path in metadata.files(name) or () if path.name.upper().startswith(("LICENSE", "LICENCE"))]
    return files[0].read_text().strip().partition("\n")[0] if files else ""


def check_licences() -> str:
    licences = {name: licence_of(name) for name in pins(LOCK)}
    refused = {name: text for name, text in licences.items() if not any(word in text for word in ALLOWED)}
    if refused:
        raise NotReady(f"licenses not allowed: {refused}")
    return f"{len(licences)} runtime packages, all licenses allowed"


# -- the archives ---------------------------------------------------------------------------------------


def build(into: Path) -> dict[str, str]:
    """Source archive and wheel; the digest of each. The time in them is that of the last commit."""
    when = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": when.stdout.strip() or "1577836800"}  # noqa: TID251
    run([sys.executable, "-m", "hatchling", "build", "-d", str(into)], cwd=ROOT, env=environment)
    run([sys.executable, "-m", "tools.client_packages", str(into / CLIENTS), "--all"], cwd=ROOT, env=environment)
    built = sorted(path for path in into.rglob("*") if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in built}


def check_build(workshop: Path) -> str:
    first, second = build(workshop / "first"), build(workshop / "second")
    if first != second:
        raise NotReady(f"two builds differ: {first} {second}")
    shutil.copytree(workshop / "first", DIST, dirs_exist_ok=True)
    return f"{', '.join(first)}, reproducible"


def check_wheel(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    inside = [name for name in names if name.startswith("gatehouse/")]
    information = [name for name in names if re.fullmatch(r"gatehouse-[^/]+\.dist-info/.+", name)]
    stray = sorted(set(names) - set(inside) - set(information))
    stray += [name for name in inside if UNWANTED.search(name)]
    missing = [part for part in WANTED if not any(name.startswith(f"gatehouse/{part}") for name in inside)]
    missing += [] if any(name.endswith("licenses/LICENSE") for name in information) else ["LICENSE"]
    if stray or missing:
        raise NotReady(f"{wheel.name} contains {stray[:5]}, lacks {missing}")
    return f"{wheel.name}: {len(inside)} files, no unexpected ones"


def check_sdist(archive: Path, tracked: Sequence[str]) -> str:
    """Compare the source archive with what git tracks: `make test` must run in it.

    A link is stray: it leads to a file of the machine where it was made.
    """
    with tarfile.open(archive) as tar:
        members = {member.name.partition("/")[2]: member for member in tar if not member.isdir()}
    names = {"PKG-INFO", *tracked}
    missing = sorted(names - members.keys())
    stray = sorted(name for name, member in members.items() if name not in names or not member.isfile())
    if missing or stray:
        raise NotReady(f"{archive.name} lacks {missing[:5]}, contains {stray[:5]}")
    return f"{archive.name}: {len(members)} files, everything that git tracks"


def tracked_files() -> list[str]:
    return run(["git", "-c", "core.quotePath=off", "ls-files"], cwd=ROOT).splitlines()


# -- a new environment ----------------------------------------------------------------------------------


def install(wheel: Path, home: Path) -> Path:
    """A new environment with the lock and the wheel; its directory of programs."""
    venv.create(home, with_pip=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    run([*pip, "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", str(LOCK)])
    run([*pip, "--no-deps", str(wheel)])
    return home / "bin"


def check_client(packages: Path, home: Path) -> str:
    """Install the client's wheel alone, and only what it asks for; use its name of both distributions."""
    (wheel,) = packages.glob("*.whl")
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    run(
        [
            python,
            "-m",
            "pip",
            "--quiet",
            "--disable-pip-version-check",
            "install",
            "--only-binary",
            ":all:",
            str(wheel),
        ]
    )
    run([python, "-c", "from gatehouse.client import Gatehouse, SyncGatehouse"])
    return f"{wheel.name} installed alone and imported"


def check_serving(programs: Path, data: Path) -> str:
    version = run([str(programs / "gatehouse"), "--version"]).strip()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(programs / "gatehouse"), "serve", "--dev", "--data", str(data), "--port", str(port)]
    log = data.with_suffix(".log")
    with log.open("w") as said:
        served = subprocess.Popen(command, cwd=data.parent, stdout=subprocess.PIPE, stderr=said, text=True)
        try:
            wait_until_ready(served)
            check_pages(f"http://127.0.0.1:{port}")
            served.send_signal(signal.SIGTERM)
            code = served.wait(PATIENCE)
        finally:
            served.kill()
            served.communicate()
    if code:
        raise NotReady(f"exited with {code}: {log.read_text()[-500:]}")
    return f"{version} started, answered and stopped"


def wait_until_ready(served: "subprocess.Popen[str]") -> None:
    for line in served.stdout or ():
        if READY.match(line):
            return
    raise NotReady("the service did not start")


def check_pages(address: str) -> None:
    fetch_page(f"{address}/readyz")
    page = fetch_page(f"{address}/sign-in")
    static = STATIC.search(page)
    if "<form" not in page or static is None:
        raise NotReady("the sign-in page is not valid")
    fetch_page(address + static[1])


def fetch_page(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:  # noqa: S310 - loopback, of our own making
            return str(answer.read().decode("utf-8", "replace"))
    except urllib.error.URLError as error:
        raise NotReady(f"{address}: {error}") from error


def check_bill(programs: Path) -> str:
    """CycloneDX, of exactly the environment that was started."""
    bill = DIST / "gatehouse.cdx.json"
    command = ["cyclonedx-py", "environment", "--output-reproducible", "--of", "JSON", "-o", str(bill)]
    run([*tool(command), str(programs / "python")])
    parts = json.loads(bill.read_text(encoding="utf-8"))["components"]
    listed = {normalize_name(part["name"]): part["version"] for part in parts}
    lacking = pins(LOCK).items() - listed.items()
    if lacking or "gatehouse" not in listed:
        raise NotReady(f"the SBOM lacks {sorted(lacking)}")
    return f"{bill.name}: {len(listed)} components, including all locked ones"


# -- vulnerabilities ------------------------------------------------------------------------------------


def check_audit() -> str:
    command = [
        "pip-audit",
        "-r",
        str(LOCK),
        "--require-hashes",
        "--disable-pip",
        "-f",
        "json",
        "--progress-spinner",
        "off",
    ]
    finished = subprocess.run(tool(command), capture_output=True, text=True, check=False, timeout=600)
    return judge_audit(finished.stdout, finished.stderr, len(pins(LOCK)))


def judge_audit(report: str, errors: str, wanted: int) -> str:
    """What pip-audit's report says. One that leaves packages out, or is none, is not an audit."""
    try:
        parts: Sequence[Mapping[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError):
        parts = ()
    vulnerable = {part["name"]: [one["id"] for one in part["vulns"]] for part in parts if part.get("vulns")}
    if vulnerable:
        raise NotReady(f"VULNERABLE: {vulnerable}")
    answered = sum("vulns" in part for part in parts)
    if answered == wanted:
        return f"{wanted} requirements, no known vulnerabilities"
    reasons = [str(part["skip_reason"]) for part in parts if "skip_reason" in part] or errors.strip().splitlines()[
        -1:
    ]
    raise NotReady(
        f"AUDIT NOT DONE. Every other check passed, and no vulnerability was found, but pip-audit got no result for "
        f"{wanted - answered} of {wanted} requirements. It needs the internet: run this again with a connection. "
        f"pip-audit says: {reasons[0] if reasons else 'nothing'}"
    )


def tool(command: Sequence[str]) -> list[str]:
    return [str(Path(sys.executable).parent / command[0]), *command[1:]]


def run(command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    finished = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise NotReady(f"{' '.join(command[:4])}: {finished.stderr.strip()[-500:]}")
    return finished.stdout


def checks(workshop: Path) -> Iterator[tuple[str, str]]:
    """What was found, one after the other."""
    yield "pins", f"{len(pins(LOCK))} requirements, all with hashes"
    yield "imports", check_imports()
    yield "licences", check_licences()
    yield "build", check_build(workshop)
    wheel = next((workshop / "first").glob("*.whl"))
    yield "wheel", check_wheel(wheel)
    yield "sources", check_sdist(next((workshop / "first").glob("*.tar.gz")), tracked_files())
    began = time.monotonic()
    programs = install(wheel, workshop / "new")
    yield "install", f"lock file and wheel installed in {time.monotonic() - began:.0f} s, without a compiler"
    yield "client", check_client(workshop / "first" / CLIENTS, workshop / "client")
    yield "serve", check_serving(programs, workshop / "data")
    yield "bill", check_bill(programs)
    yield "audit", check_audit()


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="gatehouse-release-") as workshop:
        try:
            for name, found in checks(Path(workshop)):
                print(f"{name:<10}{found}", flush=True)
        except NotReady as problem:
            print(f"NOT READY: {problem}", file=sys.stderr)
            return 1
    print("all checks passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
