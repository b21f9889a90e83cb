# SPDX-License-Identifier: Apache-2.0
"""The parts of the comparison that need no server."""

import unittest

import report


def measured(inferences, p50, p99):
    return {"inferences_per_second": inferences, "p50_ms": p50, "p99_ms": p99}


class Marks(unittest.TestCase):
    CLIENTS = {"perf_analyzer": {
        "Triton": {"1": [measured(100, 8, 20)], "32": [measured(100, 300, 800), measured(50, 600, 1600)]},
        "Attendant": {"1": [measured(300, 3, 9)], "32": [measured(400, 70, 100), measured(200, 140, 200)]}}}

    def marks(self, overhead):
        return {one["name"]: one for one in report.marks_of(self.CLIENTS, overhead)}

    def test_ratios_are_of_the_same_round(self):
        found = self.marks({})
        rate = found["inferences_per_second, concurrency 32, to Triton"]
        self.assertEqual((rate["value"], rate["low"], rate["high"], rate["reached"]), (4, 4, 4, True))
        self.assertTrue(found["p99_ms, concurrency 32, to Triton"]["reached"])
        self.assertFalse(found["p50_ms, concurrency 1, to Triton"]["reached"])  # 3 / 8 > 1 / 4

    def test_overhead_is_judged_by_cpu_seconds(self):
        rounds = [{"engine": {"tokens_per_cpu_second": 1000}, "server": {"tokens_per_cpu_second": 870}}]
        found = self.marks({"ids": rounds, "text": rounds})
        self.assertFalse(found["tokens per CPU second with ids, to the engine alone"]["reached"])
        self.assertTrue(found["tokens per CPU second with text, to the engine alone"]["reached"])


if __name__ == "__main__":
    unittest.main()
