"""Execute the chapters that changed several at a time, before Sphinx reads them one by one: a Sphinx extension.

myst-nb executes a chapter when it reads it, unless its cache has the outputs already. So the cache is filled ahead. A
page that cannot be read or executed here is left to myst-nb, which reports what is wrong as it always does.
"""
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.cache.main import JupyterCacheBase
from jupyter_cache.executors.utils import ExecutionResult, single_nb_execution
from jupyter_client import AsyncKernelManager
from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

__all__ = ["setup"]

AT_ONCE = 4  # kernels, at most: each holds torch and a model, about half a gigabyte

log = logging.getLogger(__name__)


class Chapter(NamedTuple):
    """A page of the book, and its cells as myst-nb reads them."""

    path: Path
    notebook: NotebookNode


def _execute(app: Sphinx, env: BuildEnvironment, docs: list[str]) -> None:
    """Fill the cache for the chapters that are about to be read."""
    how = env.mystnb_config  # type: ignore[attr-defined]  # myst-nb puts it there
    if how.execution_mode != "cache" or how.execution_in_temp:
        return
    cache = get_cache(how.execution_cache_path)
    todo = [*_unexecuted(cache, env, (Path(env.doc2path(doc)) for doc in docs))]
    limits = {"timeout": how.execution_timeout, "allow_errors": how.execution_allow_errors}
    for chapter, done in _together(todo, limits):
        log.info("%s: executed in %.0f seconds", chapter.path, done.time)
        bundle = CacheBundleIn(done.nb, str(chapter.path), data={"execution_seconds": done.time})
        cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def _unexecuted(cache: JupyterCacheBase, env: BuildEnvironment, paths: Iterable[Path]) -> Iterator[Chapter]:
    """Those of the pages that are to be executed, and whose outputs the cache does not have."""
    how = env.mystnb_config  # type: ignore[attr-defined]  # myst-nb puts it there
    for path in paths:
        if any(path.match(pattern) for pattern in how.execution_excludepatterns):
            continue
        try:
            text = path.read_text("utf8")
            if not is_myst_markdown_notebook(text):
                continue
            notebook = read_myst_markdown_notebook(text, env.myst_config, add_source_map=True, path=path)  # type: ignore[attr-defined]
        except Exception as e:  # whatever is wrong with a page
            log.info("%s: %s, not executed ahead", path, type(e).__name__)
            continue
        if how.metadata_key in notebook.metadata:  # it has rules of its own
            continue
        try:
            cache.match_cache_notebook(notebook)
        except KeyError:
            yield Chapter(path, notebook)


def _together(chapters: list[Chapter], limits: dict[str, object]) -> Iterator[tuple[Chapter, ExecutionResult]]:
    """Execute chapters several at a time -> those that succeed, as they end. An interrupt ends them all.

    They share the cores: two kernels that compute on all of them wait for each other's threads.
    """
    cores, kernels = os.cpu_count() or 2, []
    workers = min(AT_ONCE, max(2, cores))
    threads = {"OMP_NUM_THREADS": str(max(1, cores // max(1, min(workers, len(chapters)))))}

    class Kernel(AsyncKernelManager):
        """nbclient makes its kernel itself; so it is noted down here."""

        def __init__(self, **kwargs: object) -> None:
            super().__init__(**kwargs)
            kernels.append(self)

        async def start_kernel(self, **kwargs: Any) -> None:  # type: ignore[override]  # as nbclient awaits it
            await super().start_kernel(**kwargs | {"env": threads | os.environ})

    def run(chapter: Chapter) -> ExecutionResult:
        """Execute one chapter in its own folder, in a thread."""
        return single_nb_execution(chapter.notebook, str(chapter.path.parent), kernel_manager_class=Kernel, **limits)

    pool = ThreadPoolExecutor(workers)
    try:
        running = {pool.submit(run, chapter): chapter for chapter in chapters}
        for future in as_completed(running):
            if future.exception() is None and future.result().err is None:
                yield running[future], future.result()
    finally:  # a kernel hears no Ctrl-C of ours, and a thread waits for its kernel
        pool.shutdown(wait=False, cancel_futures=True)
        for kernel in kernels:
            if kernel.has_kernel:
                kernel.provisioner.process.kill()  # type: ignore[union-attr]  # a local one


def setup(app: Sphinx) -> dict[str, object]:
    """Register with Sphinx: after the pages that changed are known, before the first is read."""
    app.connect("env-before-read-docs", _execute)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
