"""Things that work once: codes, refresh tokens, the answer to a game, one-time passwords (I1, I2, I4)."""

from collections import Counter
from collections.abc import Mapping

from tests.faults.history import Act, History, Operation, Result, by_key, describe, operations_of


def each_happens_once(history: History, act: Act, what: str) -> list[str]:
    return [
        f"{what} {key!r} {len(done)} times: " + "; ".join(describe(one) for one in done)
        for key, done in by_key(operation for operation in operations_of(history, act) if operation.ok).items()
        if len(done) > 1
    ]


def i1_a_code_is_consumed_at_most_once(history: History) -> list[str]:
    return each_happens_once(history, Act.REDEEM, "I1: a code was redeemed")


def a_secret_is_spent_at_most_once(history: History) -> list[str]:
    return each_happens_once(history, Act.SPEND, "I1: a one-time secret was taken")


def i2_a_family_has_one_live_token_and_after_reuse_none(history: History) -> list[str]:
    """Of the tokens of a family tried at the end, at most one works, and none that was spent before."""
    families = family_of_each(history)
    successors = Counter(operation.key for operation in operations_of(history, Act.REFRESH) if operation.ok)
    problems = [f"I2: {token!r} was rotated {times} times" for token, times in successors.items() if times > 1]
    good: dict[str, list[Operation]] = {}
    for one in operations_of(history, Act.LAST_TRY):
        if one.ok:
            good.setdefault(families.get(one.key, one.key), []).append(one)
    reused = families_that_were_reused(history, families)
    for family, alive in good.items():
        if len(alive) > 1:
            problems.append(f"I2: {len(alive)} live tokens in family {family!r}: " + "; ".join(map(describe, alive)))
        if family in reused:
            problems.append(f"I2: a token was reused ({describe(reused[family])}), and {describe(alive[0])}")
        problems += [f"I2: a spent token is alive: {describe(one)}" for one in alive if one.key in successors]
    return problems


def family_of_each(history: History) -> dict[str, str]:
    """Map each refresh token to the code it was issued from."""
    families: dict[str, str] = {}
    for operation in operations_of(history, Act.REDEEM, Act.REFRESH, Act.LAST_TRY):
        if operation.ok and operation.value:
            families[operation.value] = (
                operation.key if operation.op is Act.REDEEM else families.get(operation.key, operation.key)
            )
    return families


def families_that_were_reused(history: History, families: Mapping[str, str]) -> dict[str, Operation]:
    """Families refused for presenting a token after its rotation, which ends the whole family."""
    rotated: dict[str, Operation] = {}
    for op in operations_of(history, Act.REFRESH):
        if op.ok:
            rotated.setdefault(op.key, op)
    return {
        families.get(operation.key, operation.key): operation
        for operation in operations_of(history, Act.REFRESH)
        if operation.result is Result.FAIL and operation.key in rotated and rotated[operation.key].t1 < operation.t0
    }


def i4_an_answer_is_delivered_once_and_never_lost(history: History) -> list[str]:
    """`deliver` is ok with data and otherwise failed; the last poll of each key came after all faults."""
    problems = each_happens_once(history, Act.DELIVER, "I4: an answer was delivered")
    polls = by_key(operations_of(history, Act.DELIVER))
    for operation in operations_of(history, Act.APPROVE):
        key_polls = polls.get(operation.key, [])
        if (
            operation.ok
            and key_polls
            and not any(poll.maybe for poll in key_polls)
            and key_polls[-1].t0 > operation.t1
        ):
            problems.append(f"I4: approved and never delivered: {describe(operation)}, {describe(key_polls[-1])}")
    return problems


def i15_nothing_outlives_its_end(history: History, seconds: float) -> list[str]:
    """A code older than this is refused, whether or not anything was cleaned up."""
    issued = {operation.value: operation for operation in operations_of(history, Act.ISSUE) if operation.ok}
    return [
        f"I15: redeemed {redeemed.t0 - issued[redeemed.key].t1:.1f} seconds after it was issued: {describe(redeemed)}"
        for redeemed in operations_of(history, Act.REDEEM)
        if redeemed.ok and redeemed.key in issued and redeemed.t0 - issued[redeemed.key].t1 > seconds
    ]
