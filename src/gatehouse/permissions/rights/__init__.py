"""What a caller may do with applications, projects, groups and records, and what they may grant."""
