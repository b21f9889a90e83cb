# SPDX-License-Identifier: Apache-2.0
"""Threads that work until they are told to stop."""

import threading


class Workers:
    """Runs jobs, each a function and its arguments, on a thread each. What one raises is a fault, and stops them all."""

    def __init__(self, jobs, stop):
        self.stop = stop
        self.faults = []
        self.threads = [threading.Thread(target=self._guard, args=job) for job in jobs]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *unused):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def _guard(self, function, *arguments):
        try:
            function(*arguments)
        except Exception as error:  # pylint: disable=broad-except
            self.faults.append(f"{function.__name__} {arguments}: {error!r}")
            self.stop.set()
