"""Limits: attempts at secrets, requests of one address or caller, proof of work."""

from msgspec import Struct

from gatehouse.app.services.core import Core
from gatehouse.app.services.policies import proof_of_work_policy
from gatehouse.permissions.authentication.authenticator import PRINCIPAL_RATE_CLASS
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter
from gatehouse.throttle.pending_sign_ins import (
    AUTHORIZE_LIMIT_KEY,
    DEVICE_LIMIT_KEY,
    GAME_SIGN_IN_LIMIT_KEY,
    SITE_LIMIT_KEY,
)
from gatehouse.throttle.proof_of_work import ProofOfWork
from gatehouse.throttle.quotas import Quota
from gatehouse.throttle.rate_limiter import RateLimit, RateLimiter
from gatehouse.web.http.routing import RateClass


class LimitServices(Struct, frozen=True, kw_only=True, eq=False):
    attempts: AttemptLimiter
    quota: Quota
    proof_of_work: ProofOfWork
    requests: RateLimiter  # per minute of one network address
    principals: RateLimiter  # one principal sends as many as one address, from however many addresses (PA-15)


def build_limits(core: Core) -> LimitServices:
    store, clock, rates = core.storage.throttle, core.clock, core.settings.rates
    attempts = AttemptLimiter(store=store, limit=AttemptLimit(), clock=clock)
    proof_of_work = ProofOfWork(
        store=store,
        use_puzzle=store.use_puzzle,
        limiter=attempts,
        key=core.derive_key("puzzles"),
        clock=clock,
        policy=lambda: proof_of_work_policy(core.settings.protection),
    )
    per_minute = {one.value: getattr(rates, one.value) for one in RateClass}
    per_minute |= dict.fromkeys(
        (AUTHORIZE_LIMIT_KEY, GAME_SIGN_IN_LIMIT_KEY, DEVICE_LIMIT_KEY, SITE_LIMIT_KEY), rates.login
    )
    limits = {name: RateLimit(most) for name, most in per_minute.items()}
    return LimitServices(
        attempts=attempts,
        quota=Quota(store=store, clock=clock),
        proof_of_work=proof_of_work,
        requests=RateLimiter(limits if rates.enabled else {}, clock=clock),
        principals=RateLimiter({PRINCIPAL_RATE_CLASS: RateLimit(rates.admin)} if rates.enabled else {}, clock=clock),
    )
