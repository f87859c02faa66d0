"""Errors of protected sites."""

from gatehouse.kernel.errors import BadInput, NotFound, Refused


class SiteUnknown(Refused):
    """No application protects this origin: the proxy's request is denied."""

    public = "This site is not registered as a protected site."


class SiteAddressUnknown(NotFound):
    """The same for a person who opened the sign-in address of such a site."""

    public = "This site is not registered as a protected site."


class OtherApplication(BadInput):
    public = "application_id: the site belongs to another application."


class ApplicationRequired(Refused):
    """A proxy asks without naming the application: its answer may be meant for a site of another one."""

    public = (
        "application_id is required: sites of several applications are registered, "
        "and forward_auth.require_application is on."
    )


class BadSiteRequest(BadInput):
    public = "The sign-in address is not valid."


class HandOverRefused(Refused):
    """The code was used, has expired, or belongs to another site or browser; all look alike."""

    public = "This sign-in has expired or was started in another browser. Open the site again."
