"""Print the figures of the source tree and fail above their ceilings: `python -m tools.tree_figures`.

Totals are only printed. Ratios, wrappers, repeated class names and banned words have ceilings, at the figures
reached. `--list protocols|classes|participles|words` prints the places.
"""

import argparse
import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = ROOT / "src" / "gatehouse"
BANNED: Final = ("whoever", "somebody", "nobody", "he", "his", "him", "himself")
WORD: Final = re.compile(rf"\b(?:{'|'.join(BANNED)})\b", re.IGNORECASE)
PROSE: Final = (
    "src",
    "docs",
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "tests",
    "bench",
    "tools",
)
UNCHECKED: Final = frozenset({"tree_figures.py", "vendor", "node_modules", "results", "__pycache__"})
IRREGULAR: Final = frozenset(
    [
        "told",
        "shown",
        "given",
        "held",
        "kept",
        "made",
        "read",
        "said",
        "sent",
        "known",
        "taken",
        "found",
        "written",
        "built",
        "bound",
        "drawn",
        "begun",
        "chosen",
        "done",
        "gone",
        "grown",
        "heard",
        "hidden",
        "laid",
        "left",
        "lost",
        "meant",
        "met",
        "paid",
        "put",
        "seen",
        "sold",
        "spent",
        "stood",
        "struck",
        "thought",
        "understood",
        "worn",
        "won",
    ]
)
ASGI: Final = ["self", "scope", "receive", "send"]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    path: str
    definitions: "Sequence[Function | ast.ClassDef]"
    lines: int


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: float
    ceiling: float | None = None

    @property
    def is_over(self) -> bool:
        return self.ceiling is not None and self.value > self.ceiling


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", choices=("protocols", "classes", "participles", "words"), dest="listed")
    options = parser.parse_args()
    modules = read_modules()
    if options.listed:
        for line in LISTS[options.listed](modules):
            say(line)
        return 0
    figures = list(measure(modules))
    width = max(len(one.name) for one in figures)
    for one in figures:
        limit = "" if one.ceiling is None else f"  at most {one.ceiling:g}"
        say(f"{one.name:<{width}}  {one.value:>7g}{limit}{'  OVER' if one.is_over else ''}")
    return int(any(one.is_over for one in figures))


def measure(modules: Sequence[Module]) -> Iterator[Figure]:
    protocols = protocol_implementations(modules)
    yield Figure("source files", len(modules))
    yield Figure("source lines", sum(one.lines for one in modules))
    yield Figure("ASGI wrappers before a handler", len(list(wrappers(modules))), CEILINGS["wrappers"])
    yield Figure("protocols for 100 files", round(100 * len(protocols) / len(modules), 1), CEILINGS["protocols"])
    yield Figure("protocols", len(protocols))
    yield Figure(
        "protocols with one implementation",
        sum(len(found) <= 1 for found in protocols.values()),
        CEILINGS["one implementation"],
    )
    yield Figure("class names defined more than once", len(repeated_classes(modules)), CEILINGS["repeated classes"])
    yield Figure("bare participles as function names", len(list(participles(modules))), CEILINGS["participles"])
    yield Figure("dataclasses", dataclasses(modules), CEILINGS["dataclasses"])
    yield Figure(
        "records copied or read as dataclasses", len(list(dataclass_functions())), CEILINGS["as dataclasses"]
    )
    counted = Counter(word for _, word in banned_words())
    for word in BANNED:
        yield Figure(f'"{word}"', counted[word], CEILINGS["banned words"])


def read_modules() -> list[Module]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        definitions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, Function | ast.ClassDef)]
        found.append(Module(str(path.relative_to(SOURCE)), definitions, text.count("\n")))
    return found


def classes(modules: Sequence[Module]) -> Iterator[tuple[str, ast.ClassDef]]:
    for module in modules:
        for node in module.definitions:
            if isinstance(node, ast.ClassDef):
                yield module.path, node


def repeated_classes(modules: Sequence[Module]) -> Mapping[str, Sequence[str]]:
    places = defaultdict(list)
    for path, node in classes(modules):
        places[node.name].append(path)
    return {name: found for name, found in places.items() if len(found) > 1}


def dataclasses(modules: Sequence[Module]) -> int:
    """Records are Structs; dataclasses are for what Structs lack."""
    return sum(any("dataclass" in ast.unparse(one) for one in node.decorator_list) for _, node in classes(modules))


def dataclass_functions() -> Iterator[str]:
    """Modules that use a function of `dataclasses`, which raises for a Struct though types allow it."""
    for path in sorted(SOURCE.rglob("*.py")):
        if not path.is_relative_to(SOURCE / "client") and not path.is_relative_to(SOURCE / "demo"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = {one.name for one in node.names} if isinstance(node, ast.ImportFrom) else set()
                if names & {"replace", "asdict", "astuple", "fields"} and node.module == "dataclasses":
                    yield f"{path.relative_to(SOURCE)}:{node.lineno}"


def wrappers(modules: Sequence[Module]) -> Iterator[str]:
    """ASGI applications of web/http, which a request passes before its handler; responses are none."""
    for path, node in classes(modules):
        if path.startswith("web/http/") and not any("Response" in ast.unparse(base) for base in node.bases):
            called = [one for one in node.body if isinstance(one, ast.AsyncFunctionDef) and one.name == "__call__"]
            if any([argument.arg for argument in one.args.args] == ASGI for one in called):
                yield f"{path}: {node.name}"


def protocol_implementations(modules: Sequence[Module]) -> Mapping[str, Sequence[str]]:
    """Per protocol, the classes that have all its methods; protocols without methods count as implemented once."""
    found = list(classes(modules))
    wanted = {
        f"{path}: {node.name}": method_names(node)
        for path, node in found
        if any("Protocol" in ast.unparse(base) for base in node.bases)
    }
    offered = [(f"{path}: {node.name}", method_names(node)) for path, node in found]
    return {
        name: [other for other, has in offered if other not in wanted and methods and methods <= has]
        for name, methods in wanted.items()
    }


def method_names(node: ast.ClassDef) -> frozenset[str]:
    defined = {one.name for one in node.body if isinstance(one, Function)}
    assigned = {ast.unparse(target) for one in node.body if isinstance(one, ast.Assign) for target in one.targets}
    return frozenset(defined | assigned)


def participles(modules: Sequence[Module]) -> Iterator[str]:
    """Functions and methods, not properties, whose whole name is one past participle."""
    for module in modules:
        for node in module.definitions:
            if isinstance(node, Function) and not node.decorator_list:
                name = node.name.lstrip("_")
                if "_" not in name and (name in IRREGULAR or (name.endswith("ed") and not name.endswith("eed"))):
                    yield f"{module.path}:{node.lineno}: {node.name}"


def banned_words() -> Iterator[tuple[str, str]]:
    """Place and word, in source, tests, documentation and locales."""
    for path in sorted(prose_files()):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines() if WORD.search(text) else [], start=1):
            for match in WORD.finditer(line):
                yield f"{path.relative_to(ROOT)}:{number}", match.group().lower()


def prose_files() -> Iterator[Path]:
    for name in PROSE:
        found = (ROOT / name).rglob("*") if (ROOT / name).is_dir() else [ROOT / name]
        for path in found:
            if path.is_file() and not UNCHECKED & {path.name, *path.relative_to(ROOT).parts}:
                yield path


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


CEILINGS: Final = {
    "wrappers": 2,
    "protocols": 13.8,
    "one implementation": 59,
    "repeated classes": 7,
    "participles": 24,
    "dataclasses": 40,
    "as dataclasses": 0,
    "banned words": 0,
}
LISTS: Final = {
    "protocols": lambda modules: [
        f"{len(f)} {n}: {', '.join(f)}" for n, f in protocol_implementations(modules).items()
    ],
    "classes": lambda modules: [f"{n}: {', '.join(f)}" for n, f in sorted(repeated_classes(modules).items())],
    "participles": participles,
    "words": lambda _: [f"{place}: {word}" for place, word in banned_words()],
}

if __name__ == "__main__":
    sys.exit(main())
