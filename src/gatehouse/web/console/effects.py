"""What a change gives people and takes from them, in words (`console/effects.html`)."""

from dataclasses import dataclass

from gatehouse.permissions.evaluation.shapes import PROJECT_ACCESS_PREFIX
from gatehouse.permissions.model.rule import RuleSection
from gatehouse.permissions.questions.simulate import Effect


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class AccessItem:
    """A rule or role somewhere."""

    is_role: bool
    name: str
    where: str  # the project, and the resource in it; "" at the root


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonEffect:
    user_id: str
    nick: str  # "" where nobody has it any more
    gains_roles: tuple[AccessItem, ...]
    gains: tuple[AccessItem, ...]
    loses_roles: tuple[AccessItem, ...]
    loses: tuple[AccessItem, ...]

    @property
    def gained(self) -> tuple[AccessItem, ...]:
        return self.gains_roles + self.gains

    @property
    def lost(self) -> tuple[AccessItem, ...]:
        return self.loses_roles + self.loses


def person_effect(effect: Effect, nick: str) -> PersonEffect:
    return PersonEffect(
        user_id=effect.user_id,
        nick=nick,
        gains_roles=tuple(map(role_item, effect.gains_roles)),
        gains=tuple(map(rule_item, effect.gains)),
        loses_roles=tuple(map(role_item, effect.loses_roles)),
        loses=tuple(map(rule_item, effect.loses)),
    )


def role_item(text: str) -> AccessItem:
    """`<project>.<kind>.<id>/<role>` as the shape `roles` writes it."""
    place, _, name = text.rpartition("/")
    return AccessItem(is_role=True, name=name, where=" / ".join(place.split(".")) if place else "")


def rule_item(text: str) -> AccessItem:
    """A rule as the shape `list` writes it: its section, or the place it is held in and its section."""
    where = ""
    if text.startswith(f"{PROJECT_ACCESS_PREFIX}."):
        segments = text.removeprefix(f"{PROJECT_ACCESS_PREFIX}.").split(".")
        section = next(index for index, one in enumerate(segments) if one in set(RuleSection))
        where, text = " / ".join(segments[:section]), ".".join(segments[section:])
    path = text.partition(".")[2]
    return AccessItem(is_role=False, name=path.replace("|", ": "), where=where)
