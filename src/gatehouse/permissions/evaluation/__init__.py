"""Evaluate what a person holds from facts: pure, and cached under the versions of its sources."""
