"""Explains why a person holds a rule, or what is missing."""
