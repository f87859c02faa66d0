"""What can go wrong on the way."""

from gatehouse.kernel.errors import Conflict, NotFound


class InteractionGone(NotFound):
    """It has ended, was finished, or belongs to another browser; all three look alike."""

    public = "This page has expired or was opened in another browser. Start again."


class OccasionOver(InteractionGone):
    """What it was for was answered elsewhere, or has ended: there is nothing to start again here."""


class InteractionMoved(Conflict):
    public = "This sign-in continued in another window."
