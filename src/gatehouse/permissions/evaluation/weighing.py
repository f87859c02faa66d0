"""How much work a record or an application is: what decides whether it is done on the loop (kernel/background.py)."""

from typing import Final

from gatehouse.kernel.background import MAX_INLINE_WEIGHT, run_off_loop
from gatehouse.permissions.documents.trees import walk_leaves
from gatehouse.permissions.evaluation.compiled import compile_fully, is_compiled
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.user_record import UserRecord

ENTRY_WORK: Final = 4  # of one entry of a record


def record_work(record: UserRecord) -> int:
    """Counted no further than decides where it is worked off."""
    work = 0
    for held in record.scopes.values():
        work += len(held.roles)
        for tree in (held.private_data, held.public_data):
            for _ in walk_leaves(tree):
                work += ENTRY_WORK
                if work > MAX_INLINE_WEIGHT:
                    return work
    return work


async def model_work(model: ApplicationModel) -> int:
    """Of going through all that the application's schema and roles say."""
    compiled = await run_off_loop(0 if is_compiled(model) else model.size, compile_fully, model)
    return compiled.work
