"""Objects of applications, and what people and groups hold on them (R12)."""
