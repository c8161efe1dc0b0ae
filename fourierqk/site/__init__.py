"""The book's Sphinx extensions: live pages, and chapters executed together."""
