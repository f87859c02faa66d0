"""Statements are built when they first run; here every one of them is built and compiled for both databases."""

import gc
import pkgutil
from importlib import import_module

import pytest

from gatehouse import admin, storage
from gatehouse.storage.statements import DatabaseKind, Statement
from tests.support.statement_coverage import all_statements


def existing_statements() -> list[Statement]:
    """Every statement that a module holds, in whatever object."""
    for package in (storage, admin):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".migrations" not in module.name:
                import_module(module.name)
    gc.unfreeze()  # what is frozen is not listed
    found = [item for item in gc.get_objects() if isinstance(item, Statement)]
    gc.freeze()
    return found


@pytest.mark.parametrize("kind", DatabaseKind)
def test_every_statement_compiles_for_both_databases(kind: DatabaseKind) -> None:
    statements = existing_statements()
    assert {id(statement) for _, statement in all_statements()} <= {id(statement) for statement in statements}
    assert all(statement.compile_for(kind).sql for statement in statements)
