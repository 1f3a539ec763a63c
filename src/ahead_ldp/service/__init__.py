"""A collection over HTTP: clients, issuer, server, dashboard."""
