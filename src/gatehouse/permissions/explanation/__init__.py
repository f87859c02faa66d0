"""Why somebody holds a rule, or what is missing."""
