"""Campaigns whose method this program no longer has: read from the questions that were stored with them."""
