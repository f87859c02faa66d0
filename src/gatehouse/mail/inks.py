"""The colours of a letter: of links in light and dark, and of the button, always readable."""

from typing import Final, NamedTuple

from gatehouse.kernel.colours import BLACK, TEXT, WHITE, Colour, apart

# What stands behind links in templates/layout.html: the card and the page around it.
LIGHT: Final = (WHITE, Colour.parse("#eef2f5"))
DARK: Final = (Colour.parse("#1a2430"), Colour.parse("#0f1720"))


class Inks(NamedTuple):
    link: Colour = Colour.parse("#1d5f8a")
    link_dark: Colour = Colour.parse("#8ec5ea")
    button: Colour = Colour.parse("#1d5f8a")  # under white words


OURS: Final = Inks()


def inks_of(accent: Colour) -> Inks:
    return Inks(
        link=apart(accent, LIGHT, least=TEXT, towards=BLACK),
        link_dark=apart(accent, DARK, least=TEXT, towards=WHITE),
        button=apart(accent, (WHITE,), least=TEXT, towards=BLACK),
    )
