"""Who calls a permission endpoint: credentials, vouching application, authenticated request."""
