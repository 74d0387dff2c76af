"""Which names the package shows, and names that stand for a type, a limit or a build."""
