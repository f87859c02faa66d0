"""Configuration files as text: YAML, TOML and JSON are read, YAML and JSON written.

An error never quotes the file: the line that does not parse may hold a password.
"""

import json
import re
import tomllib
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NoReturn

import msgspec
import yaml

from gatehouse.provision.model import OnProgress, Unfit, ignore_progress, one_line

Document = dict[str, object]

MERGE_TAG: Final = "tag:yaml.org,2002:merge"
SURROGATE: Final = re.compile("[\\ud800-\\udfff]")
NEEDS_QUOTES: Final = "a value that starts with !, * or & needs quotes"


class StrictYamlLoader(yaml.SafeLoader):
    """The core schema of YAML 1.2, with each name once.

    The 1.1 rules of the library would turn the country NO into false and the password 12:34:56 into a number.
    """

    def __init__(self, text: str, on_progress: OnProgress) -> None:
        super().__init__(text)
        self._on_progress = on_progress

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - as its base has it

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - the base's signature
        names: set[str] = set()
        for key in (key for key, _ in node.value if key.tag != MERGE_TAG):
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                raise Unfit([f"line {key.start_mark.line + 1}: a name must be text; put it in quotes"])
            if key.value in names:
                raise Unfit([one_line(f"line {key.start_mark.line + 1}: {key.value} is given twice")])
            names.add(key.value)
        return super().construct_mapping(node, deep)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401 - as its base has it
        self._on_progress(self.line)
        return super().compose_node(parent, index)


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?", "-+0123456789."),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
):
    StrictYamlLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), list(_first)
    )


def read_document(content: bytes, suffix: str, on_progress: OnProgress = ignore_progress) -> Document:
    """Read the format that the file's suffix names; progress is in lines, of YAML only. Raises Unfit."""
    read = READERS.get(suffix.lower())
    if read is None:
        raise Unfit(
            [one_line(f"{suffix or 'a file without extension'}: the file name must end in {', '.join(READERS)}")]
        )
    try:
        document = read(content.decode("utf-8-sig"), on_progress)
        refuse_unstorable_text(document)
    except UnicodeDecodeError:
        raise Unfit(["the file is not UTF-8 text"]) from None
    except RecursionError:
        raise Unfit(["the file is nested too deeply"]) from None
    if not isinstance(document, dict):
        raise Unfit(["the file must contain sections such as `users:` and `clients:`"])
    return document


def read_yaml(text: str, on_progress: OnProgress) -> object:
    try:
        return StrictYamlLoader(text, on_progress).get_single_data()
    except (yaml.scanner.ScannerError, yaml.parser.ParserError) as error:
        raise Unfit([f"{line_of(error)}: {error.problem}"]) from None
    except yaml.MarkedYAMLError as error:  # unknown aliases and tags: the error would quote the file
        raise Unfit([f"{line_of(error)}: not valid YAML; {NEEDS_QUOTES}"]) from None
    except (yaml.YAMLError, ValueError):
        raise Unfit(["the file is not valid YAML"]) from None


def line_of(error: yaml.MarkedYAMLError) -> str:
    return "the file" if error.problem_mark is None else f"line {error.problem_mark.line + 1}"


def read_toml(text: str, _: OnProgress) -> object:
    try:
        return tomllib.loads(text)  # TOML itself forbids doubled names
    except ValueError as error:
        raise Unfit([f"the file is not valid TOML: {error}"]) from None


def read_json(text: str, _: OnProgress) -> object:
    try:
        return json.loads(text, object_pairs_hook=refuse_duplicate_names, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        raise Unfit([f"line {error.lineno}: {error.msg}"]) from None
    except ValueError:  # a number of thousands of digits
        raise Unfit(["the file is not valid JSON"]) from None


def refuse_duplicate_names(pairs: list[tuple[str, object]]) -> Document:
    found: Document = {}
    for name, value in pairs:
        if name in found:
            raise Unfit([one_line(f"{name} is given twice in one object")])
        found[name] = value
    return found


def refuse_constant(name: str) -> NoReturn:
    raise Unfit([f"{name} is not valid JSON"])


def refuse_unstorable_text(value: object) -> None:
    """Refuse NUL and lone surrogates: escapes can write them, no database stores them."""
    if isinstance(value, str):
        if "\0" in value or SURROGATE.search(value):
            raise Unfit(["a text contains a NUL character or half of a surrogate pair"])
    elif isinstance(value, list):
        for member in value:
            refuse_unstorable_text(member)
    elif isinstance(value, dict):
        for name, member in value.items():
            refuse_unstorable_text(name)
            refuse_unstorable_text(member)


READERS: Final[Mapping[str, Callable[[str, OnProgress], object]]] = {
    ".yaml": read_yaml,
    ".yml": read_yaml,
    ".toml": read_toml,
    ".json": read_json,
}


class ExactDumper(yaml.SafeDumper):
    """Escape invisible characters: unescaped, some line breaks come back as spaces."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


ExactDumper.add_representer(str, ExactDumper.represent_text)


def write_yaml(sections: Mapping[str, Sequence[object]], on_progress: OnProgress = ignore_progress) -> str:
    """Write the sections; progress is in entries."""
    parts: list[str] = []
    reached = 0
    for name, entries in sections.items():
        empty = dump_yaml({name: []})
        parts.append(empty.removesuffix(" []\n") + "\n" if entries else empty)
        for entry in entries:
            parts.append(dump_yaml([entry]))
            reached += 1
            on_progress(reached)
    return "".join(parts)


def dump_yaml(value: object) -> str:
    return yaml.dump(value, Dumper=ExactDumper, sort_keys=False, allow_unicode=True, width=float("inf"))


def write_json(document: Mapping[str, object], _: OnProgress = ignore_progress) -> str:
    return msgspec.json.format(msgspec.json.encode(document)).decode() + "\n"
