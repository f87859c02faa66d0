"""Every collaborator of the service, built once."""
