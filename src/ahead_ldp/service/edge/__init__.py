"""The edge: HTTP/1.1 on sockets, with deadlines and budgets, in front of an ASGI application."""
