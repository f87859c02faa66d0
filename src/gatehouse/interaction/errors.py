"""What can go wrong on the way."""

from gatehouse.kernel.errors import Conflict, NotFound


class SignInFlowGone(NotFound):
    """It has ended, was finished, or belongs to another browser; all three look alike."""

    public = "This page has expired or was opened in another browser. Start again."


class SignInPurposeEnded(SignInFlowGone):
    """What it was for was answered elsewhere, or has ended: there is nothing to start again here."""


class SignInFlowMoved(Conflict):
    public = "This sign-in continued in another window."
