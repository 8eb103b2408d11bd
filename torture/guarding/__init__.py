"""What torture/security.py looks at: the sources, and the packages that are installed."""
