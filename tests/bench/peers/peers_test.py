# SPDX-License-Identifier: Apache-2.0
"""The parts of the comparison that need no peer."""

import importlib.util
import pathlib
import statistics
import unittest

import marks
import report
import workloads
from results import Group, Series

BENCH = pathlib.Path(__file__).parent.parent


def series(engine, column, samples, **more):
    return Series(engine, column, samples=samples, **more)


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
        group = Group("bert-base", "f32")
        group.versions = {"attendant": {"ready": "Attendant"}, "openvino": {"ready": "OpenVINO"}}
        for column in ("uniform 128", marks.ARRIVAL):
            group.series += [
                series("attendant", column, ours, flops=[90.0] * len(ours), ceilings=[100.0] * len(ours)),
                series("openvino", column, theirs)]
        return group

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

    def test_batches_are_compared_beside_one_by_one(self):
        group = self.group([240], [200])
        group.series[-1].batching = workloads.ONE_BY_ONE
        group.series.append(series("openvino", marks.ARRIVAL, [100], batching="1024"))
        found = {one["column"]: one["value"] for one in marks.speed(group) if one["peer"] == "openvino"}
        self.assertEqual((found[marks.ARRIVAL], found[marks.IN_BATCHES]), (1.2, 2.4))

    def test_latency_is_better_where_it_is_smaller(self):
        group = self.group([1], [1])
        group.versions["pytorch"] = {"ready": "PyTorch"}
        group.series += [series("attendant", "latency 16", [3.0, 5.0], times_ms=[3.0] * 99 + [6.0]),
                         series("openvino", "latency 16", [4.0, 8.0]), series("pytorch", "latency 16", [9.0, 9.0])]
        found = {one["column"]: one for one in marks.latency(group)}
        self.assertEqual((found["latency 16"]["peer"], found["latency 16"]["value"]), ("openvino", 0.6875))
        self.assertTrue(found["latency 16"]["reached"])
        self.assertEqual(found["p99 / p50, latency 16"]["value"], 1.5)

    def test_a_variant_of_attendant_is_no_peer(self):
        group = self.group([200], [100])
        group.versions["attendant-threads=1"] = {"ready": "Attendant"}
        group.series += [series("attendant", marks.THREADS, [190.0]), series("attendant-threads=1", marks.THREADS, [100.0])]
        self.assertIsNone(group.best_peer(marks.THREADS))
        self.assertEqual([one["value"] for one in marks.scaling(group)], [1.9])

    def test_quadratic_memory_misses_its_mark(self):
        group = self.group([1], [1])
        for length, time, peak in ((2048, 1, 10), (4096, 3, 14), (8192, 9, 30)):
            group.long[str(length)] = {"samples_ms": [time], "flops": time, "resident_bytes": peak}
        found = {one["column"]: one for one in marks.long_sequences(group)}
        self.assertEqual(found[marks.LONG_TIME]["value"], 1)
        self.assertEqual((found[marks.LONG_MEMORY]["value"], found[marks.LONG_MEMORY]["reached"]), (4, False))


class Pieces(unittest.TestCase):
    def test_a_later_run_takes_the_place_of_the_same_column(self):
        group, newer = Group("minilm", "f32"), Group("minilm", "f32")
        group.versions = newer.versions = {"openvino": {"ready": "OpenVINO"}}
        group.series = [series("openvino", "uniform 32", [1]), series("openvino", "uniform 128", [2])]
        newer.series = [series("openvino", "uniform 128", [3])]
        group.failures = {"openvino": "ended with 1"}
        group.add(newer)
        self.assertEqual({one.column: one.samples for one in group.series}, {"uniform 32": [1], "uniform 128": [3]})
        self.assertEqual(group.failures, {})

    def test_json_brings_back_what_was_measured(self):
        group = Group("minilm", "f32")
        group.versions = {"attendant": {"ready": "Attendant"}}
        group.series = [series("attendant", "latency 16", [3.0], times_ms=[3.0])]
        group.long = {"2048": {"samples_ms": [1.0], "flops": 2.0, "resident_bytes": 3}}
        again = Group.from_json(group.as_json())
        self.assertEqual(again.as_json(), group.as_json())
        self.assertIn("| MiniLM-L6 | f32 | latency 16 | Attendant | 3 | 3 | 1 |", report.tail_table([again]))


if __name__ == "__main__":
    unittest.main()
