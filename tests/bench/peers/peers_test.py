# SPDX-License-Identifier: Apache-2.0
"""The parts of the comparison that need no peer."""

import importlib.util
import pathlib
import statistics
import threading
import unittest

import marks
import report
import streams
import ways
import workloads
from results import Group, Series

BENCH = pathlib.Path(__file__).parent.parent


def series(engine, column, samples, **more):
    return Series(engine, column, samples=samples, **more)


def script(name):
    """A program of tests/bench as a module."""
    spec = importlib.util.spec_from_file_location(name, BENCH / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Lens(unittest.TestCase):
    def test_mixed_lens_are_what_the_page_says(self):
        lens = workloads.mixed_lens()
        self.assertEqual(len(lens), 192)
        self.assertEqual(statistics.median(lens), 48)
        self.assertAlmostEqual(statistics.mean(lens), 55.6, delta=0.05)

    def test_mixed_lens_are_drawn_and_not_chosen(self):
        generator = script("make_mixed_lengths")
        self.assertEqual((BENCH / "mixed_lengths.inc").read_text(), generator.text(generator.choose()))

    def test_real_lengths_are_those_of_the_texts(self):
        texts = script("real_texts")
        self.assertEqual(list(workloads.lens_in("real_lengths.inc")), texts.lens(texts.spread()))


class Cut(unittest.TestCase):
    LENS = (3, 9, 2, 8, 8, 1, 30)

    def test_arrival_order_keeps_every_sequence_in_its_place(self):
        self.assertEqual(ways.Batching(18).cut(self.LENS), [[3, 9], [2, 8], [8, 1], [30]])

    def test_sorting_pads_less(self):
        self.assertEqual(ways.Batching(18, sort=True).cut(self.LENS), [[1, 2, 3], [8, 8], [9], [30]])

    def test_no_budget_is_one_by_one(self):
        self.assertEqual(ways.Batching(0).cut(self.LENS), [[length] for length in self.LENS])


class Choice(unittest.TestCase):
    def test_splits_use_every_thread(self):
        self.assertEqual(list(map(str, ways.splits(2))), ["1x2", "2x1"])
        self.assertEqual(list(map(str, ways.splits(6))), ["1x6", "2x3", "3x2", "6x1"])

    def test_a_peer_is_tried_with_every_split_and_batch_size(self):
        tried = ways.all_ways(ways.splits(2), [ways.Batching(0), ways.Batching(512)])
        self.assertEqual(list(map(str, tried)), ["1x2, one by one", "1x2, 512", "2x1, one by one", "2x1, 512"])
        self.assertEqual(list(map(str, ways.all_ways(ways.splits(2), ()))), ["1x2", "2x1"])  # Attendant

    def rates(self, *values):
        return dict(zip(ways.all_ways(ways.splits(2), [ways.Batching(n) for n in (0, 512, 1024)]), values))

    def chosen(self, *values):
        return list(map(str, ways.finalists(self.rates(*values))))

    def test_the_fastest_way_and_those_close_to_it_are_measured(self):
        self.assertEqual(self.chosen(50, 89, 91, 60, 100, 70), ["2x1, 512", "1x2, 1024"])

    def test_no_more_than_three_come_close(self):
        self.assertEqual(self.chosen(95, 96, 97, 98, 99, 100), ["2x1, 1024", "2x1, 512", "2x1, one by one"])

    def test_the_best_batches_are_measured_even_where_one_by_one_is_faster(self):
        self.assertEqual(self.chosen(80, 10, 20, 100, 30, 40), ["2x1, one by one", "2x1, 1024"])

    def test_an_engine_that_failed_has_no_ways(self):
        self.assertEqual(ways.finalists({}), [])

    def test_latency_is_of_one_request_at_a_time(self):
        columns = workloads.columns((3, 4), 64)
        self.assertEqual({case for case, found in columns.items() if any(column.one_stream for column in found)},
                         {"latency", "threads"})

    def test_batches_smaller_than_two_sequences_are_not_tried_twice(self):
        (column,) = workloads.columns((3, 4), 4096, (512,))["uniform"]
        self.assertEqual(list(map(str, column.batchings)), [ways.ONE_BY_ONE, "1024", "4096"])


class Streams(unittest.TestCase):
    def test_every_stream_sees_every_batch_before_the_clock_starts(self):
        self.assertEqual(list(streams.warm_up(2, 3)), [0, 0, 0, 1, 1, 1])

    def test_whole_passes_that_are_multiples_of_the_streams(self):
        self.assertEqual(list(streams.cycle(3, 1, 0)), [0, 1, 2, 0])
        self.assertEqual(list(streams.cycle(3, 2, 0)), [0, 1] + [2, 0, 1, 2, 0, 1])
        self.assertEqual(list(streams.cycle(1, 2, 0)), [0] * 4)

    def test_the_time_is_kept(self):
        ticks = iter((0, 1, 2, 3, 4, 5))  # asked for at the begin and after each whole pass
        self.assertEqual(len(list(streams.cycle(2, 1, 3, lambda: next(ticks)))), 1 + 3 * 2)

    def test_rate_of_a_steady_state(self):
        # Two streams, a batch takes 1 s and a pass is three batches: two batches a second, 2 / 3 of a pass.
        ended = [5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 8.5]
        self.assertAlmostEqual(streams.rate(ended, 3, 2), 2 / 3)
        self.assertEqual(streams.rate([3.0, 4.0, 6.0], 2, 1), 1 / 3)

    def test_all_streams_run_at_the_same_time(self):
        class Meeting(streams.Streams):
            def __init__(self):
                self.streams = 2
                self.barrier = threading.Barrier(2, timeout=60)
                self.seen = []

            def run(self, batch, stream):
                self.barrier.wait()  # alone, it would fail
                self.seen.append((batch, stream))
        meeting = Meeting()
        ended = meeting.run_all(["a", "b"], streams.cycle(2, 2, 0))
        self.assertEqual(len(ended), 4)
        self.assertEqual(sorted(meeting.seen), [(batch, stream) for batch in "ab" for stream in (0, 1)])

    def test_a_failure_is_no_rate(self):
        class Broken(streams.Streams):
            streams = 2

            def run(self, batch, stream):
                raise RuntimeError("no memory")
        with self.assertRaises(RuntimeError):
            Broken().run_all(["a"], streams.cycle(1, 2, 0))


class Marks(unittest.TestCase):
    def group(self, ours, theirs, model="bert-base"):
        group = Group(model, "f32")
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
        group.series[-1].batching = ways.ONE_BY_ONE
        group.series.append(series("openvino", marks.ARRIVAL, [100], batching="1024"))
        found = {one["column"]: one["value"] for one in marks.speed(group) if one["peer"] == "openvino"}
        self.assertEqual((found[marks.ARRIVAL], found[marks.IN_BATCHES]), (1.2, 2.4))

    def test_the_best_split_counts_and_is_named(self):
        group = self.group([240], [200])
        group.series[1].split, group.series[1].batching = "1x2", "4096"
        group.series.append(series("openvino", "uniform 128", [300], batching="1024", split="2x1"))
        group.series.append(series("attendant", "uniform 128", [210], split="2x1"))
        group.series[0].split = "1x2"
        found = {one["column"]: one for one in marks.speed(group)}["uniform 128"]
        self.assertEqual((found["value"], found["ways"]), (0.8, ["1x2", "2x1, 1024"]))
        self.assertIn("0.800 × OpenVINO [1x2 : 2x1, 1024]", report.mark_cell(found))
        self.assertIn("| 240 (1x2) |", report.throughput([group], ["uniform 128"]))
        self.assertIn("| 300 (2x1, 1024) |", report.throughput([group], ["uniform 128"]))

    def test_amx_has_marks_of_its_own(self):
        group = self.group([240], [200])
        self.assertEqual(marks.AMX_MARKS.keys(), marks.MARKS.keys())
        bounds = [{one["column"]: one["mark"] for one in marks.all_of([group], amx)} for amx in (False, True)]
        self.assertEqual([found["uniform 128"] for found in bounds], [1.10, 1.05])
        self.assertEqual([found[marks.ARRIVAL] for found in bounds], [2.3, 1.5])

    def test_a_model_without_marks_is_to_reach_what_bert_does(self):
        bert, other = self.group([240, 120], [200, 100]), self.group([150], [100], "mpnet-base")
        other.series[-1].samples = [140]
        found = {one["column"]: one for one in marks.all_of([other, bert], amx=False) if one["model"] == "mpnet-base"}
        self.assertEqual((found["uniform 128"]["value"], found["uniform 128"]["mark"]), (1.5, 1.2))
        self.assertTrue(found["uniform 128"]["reached"])
        self.assertFalse(found[marks.ARRIVAL]["reached"])
        self.assertEqual([one for one in marks.all_of([other], amx=False) if one["model"] == "mpnet-base"], [])

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
