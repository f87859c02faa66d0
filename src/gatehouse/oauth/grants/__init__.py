"""The ways to get tokens: what each takes, and when it counts as taken."""
