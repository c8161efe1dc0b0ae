"""The book's Sphinx extensions: live pages, and chapters executed together."""
from fourierqk.site.sources import fingerprint

__all__ = ["fingerprint"]
