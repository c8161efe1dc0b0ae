"""Execute the chapters that changed several at a time, before Sphinx reads them one by one: a Sphinx extension.

myst-nb executes a chapter when it reads it, unless its cache has the outputs already. So the cache is filled ahead. A
chapter that fails here is left to myst-nb, which executes it again and reports what is wrong as it always does.
"""
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn, ProjectNb
from jupyter_cache.cache.main import JupyterCacheBase
from jupyter_cache.executors.utils import ExecutionResult, single_nb_execution
from myst_nb.core.read import is_myst_markdown_notebook
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

__all__ = ["setup"]

AT_ONCE = 4  # kernels, at most: each holds torch and a model, about half a gigabyte
READER = {"name": "myst_nb_md", "type": "plugin"}  # myst-nb's own, so that its cells are those in the cache

log = logging.getLogger(__name__)


def _execute(app: Sphinx, env: BuildEnvironment, docs: list[str]) -> None:
    """Fill the cache for the chapters that are about to be read."""
    if app.config.nb_execution_mode != "cache":
        return
    cache = get_cache(app.config.nb_execution_cache_path)
    limits = {"timeout": app.config.nb_execution_timeout, "allow_errors": app.config.nb_execution_allow_errors}

    def run(chapter: ProjectNb) -> ExecutionResult | None:
        try:
            return single_nb_execution(chapter.nb, cwd=str(Path(chapter.uri).parent), **limits)
        except Exception as e:  # whatever becomes of a kernel
            log.info("%s: %s, it is executed again", chapter.uri, type(e).__name__)
            return None

    todo = [*_unexecuted(cache, (Path(env.doc2path(doc)) for doc in docs))]
    with ThreadPoolExecutor(min(AT_ONCE, max(2, os.cpu_count() or 2))) as pool:
        for chapter, done in zip(todo, pool.map(run, todo), strict=True):
            if done and not done.err:
                log.info("%s: executed in %.0f seconds", chapter.uri, done.time)
                bundle = CacheBundleIn(done.nb, chapter.uri, data={"execution_seconds": done.time})
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def _unexecuted(cache: JupyterCacheBase, paths: Iterable[Path]) -> Iterator[ProjectNb]:
    """Those of the pages that are notebooks and whose outputs the cache does not have."""
    for path in paths:
        if is_myst_markdown_notebook(path.read_text("utf8")):
            chapter = cache.get_project_notebook(cache.add_nb_to_project(str(path), read_data=READER).pk)
            try:
                cache.match_cache_notebook(chapter.nb)
            except KeyError:
                yield chapter


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("env-before-read-docs", _execute)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
