"""Pages for people: rendered on the server, working without JavaScript."""
