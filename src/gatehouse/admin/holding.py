"""What somebody may do in an application, rule by rule, with where each comes from. Pure.

Made from the voices of the very evaluation that decides, so that a list and a decision cannot disagree.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from gatehouse.kernel.sorting import sort_in_slices
from gatehouse.permissions.evaluation.effective import EffectivePermissions, ScopePermissions
from gatehouse.permissions.evaluation.gathering import Contribution, SourceKind
from gatehouse.permissions.model.facts import Structure
from gatehouse.permissions.model.rule import Rule
from gatehouse.permissions.model.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSource:
    """The words are `source.<kind>`."""

    kind: SourceKind
    role: str = ""
    group: str = ""  # its title


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveRule:
    rule: Rule
    sources: tuple[RuleSource, ...]
    params: tuple[str, ...]
    ends_at: int  # 0 for no end


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFamily:
    """Rules whose paths begin alike; "" for those of one word."""

    prefix: str
    lines: tuple[EffectiveRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldScope:
    scope: Scope
    project: str  # its title
    families: tuple[RuleFamily, ...]

    @property
    def count(self) -> int:
        return sum(len(family.lines) for family in self.families)


def held_scopes(held: EffectivePermissions, structure: Structure, now: int) -> tuple[HeldScope, ...]:
    """Every place in which a rule is held, the root first."""
    return tuple(
        _held_scope(scope, held.rules(scope), structure, now)
        for scope in held.nonempty_scopes
        if held.rules(scope).held
    )


def _held_scope(scope: Scope, rules: ScopePermissions, structure: Structure, now: int) -> HeldScope:
    model = structure.projects.get(scope.project_id)
    titles = {} if model is None else {group_id: group.title for group_id, group in model.groups.items()}
    sources, lefts = deciding_contributions(rules), rules.seconds_left(rules.held, now)
    lines = [
        EffectiveRule(
            rule=rule,
            sources=tuple(dict.fromkeys(_rule_source(voice, titles) for voice in sources[rule])),
            params=rules.params.get(rule, ()),
            ends_at=now + lefts[rule] if rule in lefts else 0,
        )
        for rule in sort_in_slices(rules.held, key=lambda rule: (rule_prefix(rule), rule.path))
    ]
    return HeldScope(
        scope=scope, project=model.project.title if model else "", families=tuple(_group_by_prefix(lines))
    )


def deciding_contributions(rules: ScopePermissions) -> Mapping[Rule, list[Contribution]]:
    """For every rule that is held the voices of the highest tier that speaks of it: all of them say yes."""
    found: dict[Rule, list[Contribution]] = {}
    for tier in reversed(rules.contributions.tiers):
        speaking: dict[Rule, list[Contribution]] = {}
        for voice in tier:
            for rule in voice.verdicts.yes & rules.held:
                speaking.setdefault(rule, []).append(voice)
        for rule, voices in speaking.items():
            found.setdefault(rule, voices)
    return found


def _rule_source(voice: Contribution, titles: Mapping[str, str]) -> RuleSource:
    source = voice.source
    return RuleSource(
        kind=source.kind,
        role=source.role.name if source.role else "",
        group=titles.get(source.group_id, source.group_id),
    )


def _group_by_prefix(lines: Iterable[EffectiveRule]) -> Iterator[RuleFamily]:
    for prefix, members in groupby(lines, key=lambda line: rule_prefix(line.rule)):
        yield RuleFamily(prefix=prefix, lines=tuple(members))


def rule_prefix(rule: Rule) -> str:
    head, dot, _ = rule.path.partition(".")
    return head if dot else ""
