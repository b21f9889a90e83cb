# SPDX-License-Identifier: Apache-2.0
"""The parts of the comparison that need no peer."""

import importlib.util
import pathlib
import statistics
import types
import unittest

import marks
import workloads

BENCH = pathlib.Path(__file__).parent.parent


def series(engine, samples, flops=()):
    return types.SimpleNamespace(engine=engine, samples=samples, flops=list(flops), p99=[])


class Lens(unittest.TestCase):
    def test_mixed_lens_are_what_the_page_says(self):
        lens = workloads.mixed_lens()
        self.assertEqual(len(lens), 192)
        self.assertEqual(statistics.median(lens), 48)
        self.assertAlmostEqual(statistics.mean(lens), 55.6, delta=0.05)

    def test_mixed_lens_are_drawn_and_not_chosen(self):
        spec = importlib.util.spec_from_file_location("make_mixed_lengths", BENCH / "make_mixed_lengths.py")
        generator = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(generator)
        self.assertEqual((BENCH / "mixed_lengths.inc").read_text(), generator.text(generator.choose()))


class Cut(unittest.TestCase):
    LENS = (3, 9, 2, 8, 8, 1, 30)

    def test_arrival_order_keeps_every_sequence_in_its_place(self):
        self.assertEqual(workloads.Batching(18).cut(self.LENS), [[3, 9], [2, 8], [8, 1], [30]])

    def test_sorting_pads_less(self):
        self.assertEqual(workloads.Batching(18, sort=True).cut(self.LENS), [[1, 2, 3], [8, 8], [9], [30]])

    def test_no_budget_is_one_by_one(self):
        self.assertEqual(workloads.Batching(0).cut(self.LENS), [[length] for length in self.LENS])


class Marks(unittest.TestCase):
    def group(self, ours, theirs):
        best = {"attendant": series("attendant", ours, [90.0] * len(ours)), "openvino": series("openvino", theirs)}
        return types.SimpleNamespace(
            model="bert-base", dtype="f32", ceilings=[100.0] * len(ours),
            best=lambda engine, column: best.get(engine), best_peer=lambda column: best["openvino"])

    def test_ratios_are_of_the_same_round(self):
        # The machine halves its speed in the second round: the ratio does not move.
        found = {one["column"]: one for one in marks.speed(self.group([240, 120, 240], [200, 100, 200]))}
        uniform = found["uniform 128"]
        self.assertEqual((uniform["value"], uniform["low"], uniform["high"]), (1.2, 1.2, 1.2))
        self.assertTrue(uniform["reached"])
        self.assertFalse(found[marks.ARRIVAL]["reached"])
        self.assertAlmostEqual(found[marks.CEILING]["value"], 0.9)
        self.assertFalse(found[marks.CEILING]["reached"])

    def test_a_peer_that_was_not_measured_gives_no_ratio(self):
        peers = [one["peer"] for one in marks.speed(self.group([240], [200])) if one["column"] == marks.ARRIVAL]
        self.assertEqual(peers, ["openvino"])


if __name__ == "__main__":
    unittest.main()
