"""Records of the console's entries, and what each needs read: one module per entry."""
