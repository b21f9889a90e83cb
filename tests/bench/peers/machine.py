# SPDX-License-Identifier: Apache-2.0
"""The machine that a report comes from."""

import os
import platform
import re

FLAGS = re.compile(r"^(avx2|avx_vnni.*|avx512.*|amx_.*)$")


def describe():
    cpuinfo = dict(re.findall(r"^([^:\n]+?)\s*: (.*)$", open("/proc/cpuinfo").read(), re.MULTILINE))
    memory = re.search(r"MemTotal:\s+(\d+)", open("/proc/meminfo").read())
    return {
        "cpu": cpuinfo.get("model name", platform.machine()),
        "family_model": f"{cpuinfo.get('cpu family')}/{cpuinfo.get('model')}",
        "flags": sorted(filter(FLAGS.match, cpuinfo.get("flags", "").split())),
        "online_cpus": os.cpu_count(),
        "memory_gib": round(int(memory[1]) / 2**20, 1),
        "kernel": platform.release(),
    }


def load_average():
    return os.getloadavg()[0]


def pin(threads):
    """This process and what it starts to the first `threads` processors that it may use: the processors."""
    cpus = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, cpus)
    return cpus
