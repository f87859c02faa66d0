"""Permission tests: what people may and may not, as cases in a file, put to a model or to a running service."""
