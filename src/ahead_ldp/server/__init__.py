"""The collection service."""
