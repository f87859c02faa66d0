"""Permission tests: cases in a file, run on a model or a running service."""
