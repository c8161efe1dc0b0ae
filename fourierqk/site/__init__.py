"""The book's Sphinx extensions: live pages, chapters executed together, what the web is told of a page."""
from fourierqk.site.addresses import published
from fourierqk.site.sources import fingerprint

__all__ = ["fingerprint", "published"]
