"""Imports a library without something it would drag along."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def hide_module(module: str) -> Iterator[None]:
    """Let imports inside find that module missing, unless it is loaded already."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]


@contextmanager
def substitute_modules(modules: Mapping[str, Mapping[str, object]]) -> Iterator[None]:
    """Let imports inside, and later ones, find these names in place of those modules, unless they are loaded."""
    for module, names in modules.items():
        if module not in sys.modules:
            sys.modules[module] = ModuleType(module)
            sys.modules[module].__dict__.update(names)
    yield
