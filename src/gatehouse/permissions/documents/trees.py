"""A tree of rules: nodes by segment; a node with the member `value` is a leaf (R5). Pure.

Reading makes the one canonical form, without branches that hold nothing, so that equal trees are equal.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from gatehouse.permissions.documents.fields import printable, read_members
from gatehouse.permissions.errors import Malformed, TooMuch
from gatehouse.permissions.model.rules import RESERVED_SEGMENTS
from gatehouse.permissions.model.schema import Tree

SEGMENT: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
MAX_PATH_SEGMENTS: Final = 8  # segments of a path
MAX_LEAVES: Final = 10_000  # of a schema, a role or one scope of a record

ReadLeaf = Callable[[Mapping[str, object], str], Tree]


def read_tree(document: object, place: str, read_leaf: ReadLeaf) -> Tree:
    """Read a section; `read_leaf` reads its leaves. Raises Malformed, TooMuch."""
    return _TreeReader(read_leaf).read(document, place)


def walk_leaves(tree: Tree, prefix: str = "") -> Iterator[tuple[str, Mapping[str, object]]]:
    """Every leaf of a canonical tree with its dotted path, in the order of the tree."""
    for segment, node in tree.items():
        if not isinstance(node, Mapping):
            continue
        path = f"{prefix}{segment}"
        if "value" in node:
            yield path, node
        else:
            yield from walk_leaves(node, f"{path}.")


def with_leaf(tree: Tree, path: str, leaf: Tree) -> Tree:
    """The tree with that leaf, replacing one of the same path. Raises Malformed if the path is a branch."""
    segment, _, rest = path.partition(".")
    node = tree.get(segment, {})
    is_leaf = isinstance(node, Mapping) and "value" in node
    if not isinstance(node, Mapping) or (rest and is_leaf) or (not rest and node and not is_leaf):
        raise Malformed(f"{printable(path)}: conflicts with an existing rule at or below this path").on_screen(
            "path_conflict", path=printable(path)
        )
    return {**tree, segment: with_leaf(node, rest, leaf) if rest else leaf}


def without_leaf(tree: Tree, path: str) -> Tree:
    """The tree without that leaf, and without branches that then hold nothing."""
    segment, _, rest = path.partition(".")
    node = tree.get(segment)
    left = without_leaf(node, rest) if rest and isinstance(node, Mapping) else {}
    others = {name: child for name, child in tree.items() if name != segment}
    return {**tree, segment: left} if left else others


class _TreeReader:
    """Reads one tree; bounded, so that the time it takes grows with its size only (checklist SC-16)."""

    def __init__(self, read_leaf: ReadLeaf) -> None:
        self._read_leaf = read_leaf
        self._leaves = 0

    def read(self, document: object, place: str) -> Tree:
        section = read_members(document, place)
        if "value" in section:
            raise Malformed(f"{place}.value: a rule needs a name").on_screen("rule_unnamed")
        refuse_reserved(section, place)
        return self._branch(section, place, depth=1)

    def _branch(self, members: Mapping[str, object], place: str, depth: int) -> Tree:
        if members and depth > MAX_PATH_SEGMENTS:
            raise Malformed(f"{place}: a rule can have at most {MAX_PATH_SEGMENTS} segments").on_screen(
                "rule_segments", max_path_segments=MAX_PATH_SEGMENTS
            )
        read = {segment: self._node(segment, node, place, depth) for segment, node in members.items()}
        return {segment: node for segment, node in read.items() if node}

    def _node(self, segment: str, document: object, place: str, depth: int) -> Tree:
        where = f"{place}.{segment}"
        if not SEGMENT.fullmatch(segment):
            raise Malformed(f"{place}.{printable(segment)}: must be 1 to 64 of A-Z a-z 0-9 _ -").on_screen("segment")
        members = read_members(document, where)
        return self._leaf(members, where) if "value" in members else self._branch(members, where, depth + 1)

    def _leaf(self, members: Mapping[str, object], place: str) -> Tree:
        self._leaves += 1
        if self._leaves > MAX_LEAVES:
            raise TooMuch(f"{place}: at most {MAX_LEAVES} rules").on_screen("rules_most", max_leaves=MAX_LEAVES)
        return self._read_leaf(members, place)


def refuse_reserved(paths: Iterable[str], place: str) -> None:
    """Raise Malformed if one of these begins with a reserved name."""
    for path in paths:
        first = path.partition(".")[0]
        if first in RESERVED_SEGMENTS:
            raise Malformed(f"{place}.{first}: this name is reserved").on_screen("name_reserved")


def paths_of(tree: Tree) -> set[str]:
    return {path for path, _ in walk_leaves(tree)}


def prefixes_of(paths: Iterable[str]) -> set[str]:
    """Every branch on the way to these leaves."""
    prefixes: set[str] = set()
    for path in paths:
        branch = path.rpartition(".")[0]
        while branch and branch not in prefixes:
            prefixes.add(branch)
            branch = branch.rpartition(".")[0]
    return prefixes
