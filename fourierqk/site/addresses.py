"""Where a book is on the web, by the address of its repository."""
__all__ = ["published"]


def published(repository: str) -> str:
    """Where GitHub Pages serves the book of a repository, `https://github.com/OWNER/NAME`; it ends with a slash."""
    owner, name = repository.rstrip("/").split("/")[-2:]
    host = f"{owner.lower()}.github.io"
    return f"https://{host}/" if name.lower() == host else f"https://{host}/{name}/"
