"""What can go wrong with applications."""

from gatehouse.kernel.errors import NotFound


class ApplicationNotFound(NotFound):
    public = "There is no such application."
