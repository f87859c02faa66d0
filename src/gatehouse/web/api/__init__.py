"""Every path of the service, in the order of the interface document, a table per section."""
