"""Colors with enough contrast: sRGB, its luminance, and the contrast ratio of two colors (WCAG 2.2)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

HEX_COLOR: Final = re.compile(r"#([0-9a-fA-F]{2})([0-9a-fA-F]{2})([0-9a-fA-F]{2})", re.ASCII)
TEXT_CONTRAST: Final = 4.5  # level AA for text of any size
SHAPE_CONTRAST: Final = 3.0  # level AA for what is no text: a button's ground, a focus ring
MIX_STEPS: Final = 100


@dataclass(frozen=True, slots=True)
class Color:
    red: int
    green: int
    blue: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `#rrggbb`; raises ValueError for anything else."""
        match = HEX_COLOR.fullmatch(text)
        if match is None:
            raise ValueError(f"must be a color like #1d5f8a, not {text!r:.40}")
        return cls(*(int(part, 16) for part in match.groups()))

    def __str__(self) -> str:
        return f"#{self.red:02x}{self.green:02x}{self.blue:02x}"

    @property
    def luminance(self) -> float:
        red, green, blue = map(_linear, (self.red, self.green, self.blue))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    def mix(self, other: "Color", share: float) -> "Color":
        """Return the color mixed with that share (0 to 1) of another."""
        pairs = ((self.red, other.red), (self.green, other.green), (self.blue, other.blue))
        return Color(*(round(own + (theirs - own) * share) for own, theirs in pairs))


WHITE: Final = Color(255, 255, 255)
BLACK: Final = Color(0, 0, 0)


def _linear(part: int) -> float:
    share = part / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4  # noqa: PLR2004 - the definition's


def contrast(first: Color, other: Color) -> float:
    """Return the contrast ratio, between 1 and 21."""
    darker, lighter = sorted((first.luminance, other.luminance))
    return (lighter + 0.05) / (darker + 0.05)


def min_contrast(color: Color, backgrounds: Iterable[Color]) -> float:
    return min(contrast(color, ground) for ground in backgrounds)


def adjust_for_contrast(color: Color, backgrounds: Iterable[Color], *, min_ratio: float, towards: Color) -> Color:
    """The color itself, or the nearest toward black or white with enough contrast to all backgrounds."""
    against = tuple(backgrounds)
    mixes = (color.mix(towards, step / MIX_STEPS) for step in range(MIX_STEPS))
    return next((mix for mix in mixes if min_contrast(mix, against) >= min_ratio), towards)
