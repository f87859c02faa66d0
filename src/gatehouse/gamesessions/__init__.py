"""Sign-in from a game: a session is registered, a person confirms it in a browser, and the game gets the answer once.

Owns game sessions (interface §2.2, §4.3, R4): who may request one, how a poll is held and woken, presence over
WebSockets, and the single delivery. Never checks a password, and holds no connection to the database while it waits.
"""
