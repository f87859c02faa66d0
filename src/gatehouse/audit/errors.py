"""What can be wrong with the audit log."""

from gatehouse.kernel.errors import Conflict


class SealedMeanwhile(Conflict):
    """Another process sealed first; nothing was changed here."""

    public = "Another process has sealed these records."
