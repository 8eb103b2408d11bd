"""The views of the next batch, made while the step of this one computes.

    thread of the loop:   step k          step k + 1      step k + 2
    second thread:        views of k + 1  views of k + 2  views of k + 3

Torch's threads are not busy all the time: between two parallel loops of a step one core works and the others wait. The
second thread, which has one core and starts no threads of its own, takes that time. It costs the memory of one more
batch of views. Views depend on seed, epoch and step alone (`Job.augmented`), and their bits not on the number of
threads, so a run is the same with and without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch

from kontrast.data import Batch
from kontrast.methods import ViewBatch
from kontrast.train.job import Job, has_small_inputs

Views = Callable[[], ViewBatch]


def prepared(job: Job, batches: Iterable[Batch]) -> Iterator[Views]:
    """For every batch a function that returns its views, made ahead of the step where that pays."""
    return (ahead if pays(job) else at_once)(batches, job.augmented)


def pays(job: Job) -> bool:
    """Whether a second thread helps: on a CPU with several threads, for inputs in memory that are small.

    Files are decoded by processes of their own, and a step on large images is so long that views hardly count.
    """
    in_memory = job.train.inputs.shape is not None and job.loader().workers == 0
    return job.device.type == "cpu" and torch.get_num_threads() > 1 and in_memory and has_small_inputs(job)


def at_once(batches: Iterable[Batch], augmented: Callable[[Batch], ViewBatch]) -> Iterator[Views]:
    """For every batch a function that makes its views when it is called."""
    for batch in batches:
        yield partial(augmented, batch)


def ahead(batches: Iterable[Batch], augmented: Callable[[Batch], ViewBatch]) -> Iterator[Views]:
    """For every batch a function that waits for its views, which a second thread makes; an error there is raised here.

    >>> found = ahead([1, 2, 3], lambda batch: 10 * batch)
    >>> [views() for views in found]
    [10, 20, 30]
    """
    threads = torch.get_num_threads()
    with ThreadPoolExecutor(1, "views", initializer=torch.set_num_threads, initargs=(1,)) as second:
        waiting: Views | None = None
        for batch in batches:
            views = second.submit(augmented, batch).result
            if waiting is None:
                # The second thread has begun, so the number of threads that it set for itself is set; the default for
                # threads to come, which torch sets with it, is put back.
                second.submit(torch.get_num_threads).result()
                torch.set_num_threads(threads)
            else:
                yield waiting
            waiting = views
        if waiting is not None:
            yield waiting
