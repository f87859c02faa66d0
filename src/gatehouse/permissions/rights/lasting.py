"""How long something is held, and whether something else would last longer (R5, expired and ttl)."""

from collections.abc import Iterable

from gatehouse.permissions.evaluation.effective import FOREVER, EffectivePermissions, ScopePermissions
from gatehouse.permissions.model.rule import NO_END, End, Rule
from gatehouse.permissions.model.scope import Scope


def ends_of(held: EffectivePermissions, scope: Scope, rule: Rule, now: int) -> list[End]:
    """One for each place where the rule is held and counts in the scope; none when it is not held."""
    return [
        end_in_scope(held.rules(place), rule, now)
        for place in held.lookup_scopes(scope, rule)
        if rule in held.rules(place)
    ]


def end_in_scope(held: ScopePermissions, rule: Rule, now: int) -> End:
    """When a rule that is held there is held no more."""
    left = held.seconds_left({rule}, now).get(rule)
    if left is None:
        return NO_END
    voices = (voice for tier in held.contributions.tiers for voice in tier if rule in voice.verdicts.yes)
    by_ttl = any(voice.end.ttl == left for voice in voices)
    return End(ttl=left) if by_ttl else End(expired=now + left)


def latest_end(ends: Iterable[End], now: int) -> End:
    return max(ends, key=lambda end: (FOREVER if end.ttl else end.expired or FOREVER, end.ends_at(now) or FOREVER))


def outlasts(one: End, other: End, now: int) -> bool:
    """Whether the one may still be there when the other is over, or lists tell a later end of it."""
    if other == NO_END:
        return False
    if one.ttl and not other.ttl:
        return True  # what has a ttl never ends by it
    return not one.ends_at(now) or one.ends_at(now) > other.ends_at(now)
