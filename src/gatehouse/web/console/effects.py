"""What a change gives people and takes from them, in words (`console/effects.html`)."""

from dataclasses import dataclass

from gatehouse.permissions.evaluation.shapes import PROJECT_ACCESS
from gatehouse.permissions.model.rule import Section
from gatehouse.permissions.questions.simulate import Effect


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Thing:
    """A rule or role somewhere."""

    is_role: bool
    name: str
    where: str  # the project, and the resource in it; "" at the root


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonEffect:
    user_id: str
    nick: str  # "" where nobody has it any more
    gains_roles: tuple[Thing, ...]
    gains: tuple[Thing, ...]
    loses_roles: tuple[Thing, ...]
    loses: tuple[Thing, ...]

    @property
    def gained(self) -> tuple[Thing, ...]:
        return self.gains_roles + self.gains

    @property
    def lost(self) -> tuple[Thing, ...]:
        return self.loses_roles + self.loses


def person_effect(effect: Effect, nick: str) -> PersonEffect:
    return PersonEffect(
        user_id=effect.user_id,
        nick=nick,
        gains_roles=tuple(map(role_thing, effect.gains_roles)),
        gains=tuple(map(rule_thing, effect.gains)),
        loses_roles=tuple(map(role_thing, effect.loses_roles)),
        loses=tuple(map(rule_thing, effect.loses)),
    )


def role_thing(text: str) -> Thing:
    """`<project>.<kind>.<id>/<role>` as the shape `roles` writes it."""
    place, _, name = text.rpartition("/")
    return Thing(is_role=True, name=name, where=" / ".join(place.split(".")) if place else "")


def rule_thing(text: str) -> Thing:
    """A rule as the shape `list` writes it: its section, or the place it is held in and its section."""
    where = ""
    if text.startswith(f"{PROJECT_ACCESS}."):
        segments = text.removeprefix(f"{PROJECT_ACCESS}.").split(".")
        section = next(index for index, one in enumerate(segments) if one in set(Section))
        where, text = " / ".join(segments[:section]), ".".join(segments[section:])
    path = text.partition(".")[2]
    return Thing(is_role=False, name=path.replace("|", ": "), where=where)
