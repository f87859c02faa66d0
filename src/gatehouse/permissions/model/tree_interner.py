"""Intern equal rule trees of one application, and estimate their memory. Pure.

Sixty roles that name the same two thousand rules repeat the same names and the same leaf `{"value": true}`. Decoded
one by one they take ten times the memory of their text.
"""

from collections.abc import Iterable, Mapping
from sys import getsizeof
from typing import Final

from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.schema import Tree

MODEL_WEIGHT: Final = 8_000  # of an application without rules and roles
ROLE_WEIGHT: Final = 1_500  # of an empty role
TEXT_WEIGHT: Final = 4  # of each character of settings, as Python writes them
CONDITION_WEIGHT: Final = 16  # of each character of a condition: the document, the test, and the index over it
# Bytes of the compiled form (evaluation/compiled.py); a test compares the sum with what Python allocates.
LEAF_WEIGHT: Final = 56  # of each leaf of a role: its slots in a set and in a tuple
PATH_WEIGHT: Final = 300  # of each rule, without the characters of its path, which are held three times
PARAMS_WEIGHT: Final = 60  # of a leaf with params: a slot in a dictionary
PARAM_WEIGHT: Final = 64  # of each param, without its characters

PLAIN_LEAVES: Final[Mapping[object, Tree]] = {True: {"value": True}, False: {"value": False}}  # most leaves of roles


class TreeInterner:
    """Keeps each name and each equal leaf once. One of these is used to load one application, then dropped."""

    def __init__(self) -> None:
        self.weight = 0  # bytes of everything shared so far, with the compiled form
        self.leaves = 0
        self.params = 0  # of all leaves
        self._names: dict[str, str] = {}
        self._paths: dict[str, set[str]] = {}  # names of known rules by their prefix
        self._leaves: dict[tuple[tuple[str, object], ...], Tree] = {}

    @property
    def size(self) -> int:
        """The size that counts for the limit of an application.

        Its rules, and each role's entries and their params.
        """
        return self.leaves + self.params

    def intern_role_tree(self, meta: Tree, params: str) -> Tree:
        """The tree of a role; the role's own params follow those of each of its entries (interface §2.7)."""
        before = self.leaves
        shared = self.intern_tree(meta)
        if params:
            entries = self.leaves - before
            self.params += entries * (params.count(",") + 1)
            self.weight += entries * PARAMS_WEIGHT // 2
        return shared

    def intern_tree(self, tree: Tree, prefix: str = "") -> Tree:
        """Return the same tree, built from parts that other trees share. This code runs for every leaf."""
        names, known = self._names, self._paths.setdefault(prefix, set())
        branch: dict[str, object] = {}
        leaves = 0
        for segment, node in tree.items():
            name = names.setdefault(segment, segment)
            if not isinstance(node, dict):
                branch[name] = node
                continue
            if "value" not in node:
                branch[name] = self.intern_tree(node, f"{prefix}{name}.")
                continue
            leaves += 1
            branch[name] = (
                PLAIN_LEAVES[node["value"]]
                if len(node) == 1 and node["value"] in PLAIN_LEAVES
                else self._intern_leaf(node)
            )
            if name not in known:
                known.add(name)
                self.weight += PATH_WEIGHT + 3 * (len(prefix) + len(name))
        self.leaves += leaves
        self.weight += getsizeof(branch) + LEAF_WEIGHT * leaves
        return branch

    def _intern_leaf(self, leaf: Mapping[str, object]) -> Tree:
        params = leaf.get("params")
        if isinstance(params, str):
            self.params += params.count(",") + 1
            self.weight += PARAMS_WEIGHT
        key = tuple(leaf.items())
        known = self._leaves.get(key)
        if known is not None:
            return known
        self._leaves[key] = leaf
        self.weight += getsizeof(leaf) + sum(getsizeof(value) for value in leaf.values() if isinstance(value, str))
        if isinstance(params, str):
            self.weight += len(params) + PARAM_WEIGHT * (params.count(",") + 1)
        return leaf


def model_weight(trees: TreeInterner, application: Application, roles: Iterable[Role]) -> int:
    """Bytes of an application's model with its compiled form; `trees` has shared all its trees."""
    settings = TEXT_WEIGHT * (len(str(application.settings)) + len(str(application.service_meta)))
    return trees.weight + MODEL_WEIGHT + settings + sum(map(_role_weight, roles))


def _role_weight(role: Role) -> int:
    condition = 0 if role.condition is None else CONDITION_WEIGHT * len(str(role.condition.document))
    return ROLE_WEIGHT + len(role.description) + 2 * len(role.params) + condition
