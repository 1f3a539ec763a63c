"""Rehearsals: a copy of a campaign, answered by synthetic people, on a server, store and keys of its own."""
