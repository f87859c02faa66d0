"""Estimated work of a record or an application: decides whether it runs on the event loop (kernel/background.py)."""

from typing import Final

from gatehouse.kernel.background import MAX_INLINE_WEIGHT, run_off_loop
from gatehouse.permissions.documents.trees import walk_leaves
from gatehouse.permissions.evaluation.compiled import compile_fully, is_compiled
from gatehouse.permissions.model.facts import ApplicationModel, UserRecord

ENTRY_WORK: Final = 4  # of one entry of a record


def record_work(record: UserRecord) -> int:
    """Return the estimated work of a record, counted only as far as the decision needs it."""
    work = 0
    for holdings in record.scopes.values():
        work += len(holdings.roles)
        for tree in (holdings.private_data, holdings.public_data):
            for _ in walk_leaves(tree):
                work += ENTRY_WORK
                if work > MAX_INLINE_WEIGHT:
                    return work
    return work


async def model_work(model: ApplicationModel) -> int:
    """Work of reading all verdicts of the application's schema and roles."""
    compiled = await run_off_loop(0 if is_compiled(model) else model.size, compile_fully, model)
    return compiled.work
