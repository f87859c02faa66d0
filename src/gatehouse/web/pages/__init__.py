"""Pages for people: server-rendered, working without JavaScript."""
