"""What can go wrong on the way."""

from gatehouse.kernel.errors import Conflict, NotFound


class InteractionGone(NotFound):
    """It has ended, was finished, or belongs to another browser; all three look alike."""

    public = "This page was open too long, or was opened elsewhere."


class OccasionOver(InteractionGone):
    """What it was for was answered elsewhere, or has ended: there is nothing to start again here."""


class InteractionMoved(Conflict):
    public = "This sign-in has moved on in another window."
