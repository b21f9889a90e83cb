# SPDX-License-Identifier: Apache-2.0
"""The marks of the comparison, which need no server."""

import unittest

import load_report


def cost(requests, cpu_s):
    return {"requests": requests, "cpu_s": cpu_s, "p50_ms": 1, "p99_ms": 2}


def latency(p50, p90, p99):
    return {"cpu_s": 1, "p50_ms": p50, "p90_ms": p90, "p99_ms": p99}


class Marks(unittest.TestCase):
    NULL = {"calls": {"attendant load": [cost(300, 1), cost(600, 2)],
                      "perf_analyzer": [cost(100, 1), cost(50, 1)],
                      "perf_analyzer --async": [cost(50, 1), cost(120, 1)]},
            "streams": {"attendant load --streaming": [cost(190, 1)], "perf_analyzer --streaming": [cost(100, 1)]}}
    REAL = {"calls": {"attendant load": [latency(10, 20, 30), latency(10, 20, 45)],
                      "perf_analyzer": [latency(10.4, 20, 33), latency(10, 20, 50)],
                      "perf_analyzer --async": [latency(1, 1, 1), latency(1, 1, 1)]},
            "HTTP": {"attendant load, HTTP": [latency(10, 20, 30)], "perf_analyzer, HTTP": [latency(20, 20, 30)]}}

    def setUp(self):
        self.marks = load_report.marks_of(self.NULL, self.REAL)

    def mark(self, begin):
        (found,) = [each for each in self.marks if each["name"].startswith(begin)]
        return found

    def test_cost_is_judged_beside_each_way_of_the_peer_in_each_round(self):
        calls = self.mark("requests per CPU second, calls, to perf_analyzer --async")
        self.assertEqual((calls["low"], calls["high"], calls["reached"]), (2.5, 6, True))
        self.assertFalse(self.mark("requests per CPU second, streams")["reached"])
        self.assertEqual(len(self.marks), 3 + 2 * 3)

    def test_percentiles_agree_both_ways(self):
        self.assertTrue(self.mark("p50, calls")["reached"])
        self.assertFalse(self.mark("p99, calls")["reached"])  # 9 % and 10 % less
        self.assertAlmostEqual(self.mark("p99, calls")["high"], 0.1)
        self.assertFalse(self.mark("p50, HTTP")["reached"])
        self.assertTrue(self.mark("p99, HTTP")["reached"])

    def test_the_page_has_every_client(self):
        run = {"command": "c", "revision": "r", "rounds": 2, "seconds": 6, "null_concurrency": 16, "concurrency": 4,
               "load_average": 0, "machine": {"cpu": "x", "family_model": "6/1", "online_cpus": 2, "kernel": "6"}}
        page = load_report.markdown(run, self.NULL, self.REAL, self.marks)
        for clients in (*self.NULL.values(), *self.REAL.values()):
            for name in clients:
                self.assertIn(f"| {name} |", page)
        self.assertIn("**missed**", page)


if __name__ == "__main__":
    unittest.main()
