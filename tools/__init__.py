"""Tools of the repository, not of the package."""
