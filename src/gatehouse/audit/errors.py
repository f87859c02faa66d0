"""What can be wrong with the audit log."""

from gatehouse.kernel.errors import Conflict


class SealedMeanwhile(Conflict):
    """Another process sealed first; nothing was changed here."""

    public = "These records were already sealed by another process."
