# SPDX-License-Identifier: Apache-2.0
"""The parts of the comparison that need no server."""

import array
import base64
import json
import pathlib
import types
import unittest

import choice
import http_client
import report
import servers


def measured(inferences, p50, p99):
    return {"inferences_per_second": inferences, "p50_ms": p50, "p99_ms": p99}


class Marks(unittest.TestCase):
    CLIENTS = {"perf_analyzer": {
        "Triton": {"1": [measured(100, 8, 20)], "32": [measured(100, 300, 800), measured(50, 600, 1600)]},
        "Attendant": {"1": [measured(300, 4, 9)], "32": [measured(400, 70, 100), measured(200, 140, 200)]}}}

    def marks(self, overhead, clients=None, doors=None):
        return {one["name"]: one for one in report.marks_of(clients or self.CLIENTS, overhead, doors or {})}

    def test_ratios_are_of_the_same_round(self):
        found = self.marks({})
        rate = found["perf_analyzer: inferences_per_second, concurrency 32, to Triton"]
        self.assertEqual((rate["value"], rate["low"], rate["high"], rate["reached"]), (4, 4, 4, True))
        self.assertTrue(found["perf_analyzer: p99_ms, concurrency 32, to Triton"]["reached"])
        self.assertFalse(found["perf_analyzer: p50_ms, concurrency 1, to Triton"]["reached"])  # 4 / 8 > 0.4

    def test_overhead_is_judged_by_cpu_seconds(self):
        def rounds(server):
            return [{"engine": {"tokens_per_cpu_second": 1000}, "server": {"tokens_per_cpu_second": server}}]
        found = self.marks({"ids": rounds(940), "text": rounds(960)})
        self.assertFalse(found["tokens per CPU second with ids, to the engine alone"]["reached"])
        self.assertTrue(found["tokens per CPU second with text, to the engine alone"]["reached"])

    def test_peers_over_http_have_the_same_marks(self):
        found = self.marks({}, {"HTTP, OpenAI": {"infinity": {"32": [measured(100, 300, 800)]},
                                                 "Attendant": {"32": [measured(399, 70, 90)]}}})
        self.assertFalse(found["HTTP, OpenAI: inferences_per_second, concurrency 32, to infinity"]["reached"])
        self.assertTrue(found["HTTP, OpenAI: p99_ms, concurrency 32, to infinity"]["reached"])

    def test_ways_into_the_server_are_judged_beside_grpc(self):
        def way(p50, *rates):
            return {"1": [{"p50_ms": p50, "tokens_per_cpu_second": 1}],
                    "32": [{"p50_ms": 9, "tokens_per_cpu_second": rate} for rate in rates]}
        doors = {"gRPC": way(3, 1000, 2000), "KServe, binary": way(3.4, 920, 1800), "OpenAI, floats": way(9, 750, 1500)}
        found = self.marks({}, doors=doors)
        binary = found["CPU time per token, KServe, binary, to gRPC"]
        self.assertAlmostEqual(binary["low"], 1000 / 920)
        self.assertTrue(binary["reached"])
        self.assertFalse(found["CPU time per token, OpenAI, floats, to gRPC"]["reached"])  # 1.33
        self.assertFalse(found["p50 over KServe, binary, ms above gRPC"]["reached"])
        self.assertNotIn("CPU time per token, OpenAI, base64, to gRPC", found)

    def test_tables_show_what_was_measured(self):
        rounds = [measured(10, 1, 2) | {"tokens_per_cpu_second": rate, "own_us_per_token": 2} for rate in (2e4, 4e4, 1e6)]
        self.assertIn("| gRPC | 32 | 10 | 1 | 2 | 25 | 2 |", report.door_table({"gRPC": {"32": rounds}}))
        self.assertIn("| 4 | 9 | – |", report.client_table(self.CLIENTS))


class Choice(unittest.TestCase):
    class Server:
        def __init__(self, *rates):
            self.rates, self.is_running = rates, False

        def go_on(self):
            self.is_running = True

        def pause(self):
            self.is_running = False

    def test_the_best_split_of_each_server_at_each_concurrency(self):
        started = {"Triton": {"1x2": self.Server(9, 90), "2x1": self.Server(7, 120)},
                   "Attendant": {"1x2": self.Server(30, 500), "2x1": self.Server(20, 400)}}
        running = []

        def ask(server, concurrency):
            running.append([each.is_running for each in choice.all_of(started)].count(True))
            return measured(server.rates[concurrency == 32], 1, 2)
        self.assertEqual(choice.best_splits(started, [1, 32], ask),
                         {("Triton", 1): "1x2", ("Triton", 32): "2x1", ("Attendant", 1): "1x2", ("Attendant", 32): "1x2"})
        self.assertEqual(running, [1] * 8)
        self.assertFalse(any(server.is_running for server in choice.all_of(started)))

    def test_a_server_with_one_split_is_not_asked(self):
        self.assertEqual(choice.best_splits({"infinity": {"1x2": self.Server()}}, [1], None), {("infinity", 1): "1x2"})

    def test_a_server_that_failed_is_stopped(self):
        server = self.Server()
        with self.assertRaises(ZeroDivisionError):
            choice.in_turn(server, lambda _: 1 / 0)
        self.assertFalse(server.is_running)

    def test_a_first_look_is_short(self):
        options = types.SimpleNamespace(seconds=3, threads=2)
        self.assertEqual((choice.short(options).seconds, choice.short(options).threads, options.seconds), (1, 2, 3))

    def test_the_report_names_the_split(self):
        rounds = {"Triton": {"32": [measured(100, 300, 800) | {"split": "2x1"}]},
                  "Attendant": {"32": [measured(300, 70, 90) | {"split": "1x2"}]}}
        names = [one["name"] for one in report.marks_of({"perf_analyzer": rounds}, {}, {})]
        self.assertIn("perf_analyzer: inferences_per_second, concurrency 32, to Triton [1x2 : 2x1]", names)
        self.assertIn("| Triton | 32 | 2x1 | 100 |", report.client_table({"perf_analyzer": rounds}))

    def test_instances_of_tritons_model_share_the_threads(self):
        options = types.SimpleNamespace(minilm=pathlib.Path("m"), openvino="o.xml", dtype="bf16")
        text = servers.triton_config(options, "4", types.SimpleNamespace(streams=2, threads=3))
        self.assertIn("instance_group [{ kind: KIND_CPU count: 2 }]", text)
        self.assertIn('key: "threads" value { string_value: "3" }', text)
        self.assertIn("max_batch_size: 4\n", text)


class HttpClient(unittest.TestCase):
    VALUES = [0.5, -1.25, 3.0]

    def test_bodies(self):
        openai = json.loads(http_client.body_of("openai-base64", "é"))
        self.assertEqual(openai, {"model": "minilm", "input": "é", "encoding_format": "base64"})
        kserve = json.loads(http_client.body_of("kserve-binary", "é"))
        self.assertEqual(kserve["inputs"][0]["data"], ["é"])
        self.assertTrue(kserve["outputs"][0]["parameters"]["binary_data"])

    def test_answers(self):
        packed = array.array("f", self.VALUES).tobytes()
        for way, values in (("openai-float", self.VALUES), ("openai-base64", base64.b64encode(packed).decode())):
            body = json.dumps({"data": [{"embedding": values}]})
            self.assertEqual(http_client.embedding_of(way, {}, body), self.VALUES)
        self.assertEqual(http_client.embedding_of("kserve-binary", {"Inference-Header-Content-Length": "2"}, b"{}" + packed),
                         self.VALUES)

    def test_the_warm_up_counts_for_tokens_only(self):
        requests = [(0, 1, 5)] + [(start, start + 0.1 * n, 7) for n, start in ((1, 2), (2, 3), (3, 4))] + [(4.9, 5.2, 9)]
        found = http_client.summary(requests, 2, 5)
        self.assertEqual((found["inferences_per_second"], found["tokens"]), (1, 5 + 21 + 9))
        self.assertAlmostEqual(found["p50_ms"], 200)
        self.assertAlmostEqual(found["p99_ms"], 300)
        with self.assertRaises(ValueError):
            http_client.summary(requests, 6, 7)


class ProcessorTime(unittest.TestCase):
    def test_of_all_processes_of_a_group(self):
        def stat(name, group, user, system):
            return f"9 ({name}) S 1 {group} 7 0 -1 0 0 0 0 0 {user} {system} 0 0 20"
        stats = [stat("triton", 7, 100, 20), "", stat("a ) b", 7, 3, 4), stat("other", 8, 1000, 1000)]
        self.assertEqual(servers.ticks(stats, 7), 127)
        threads = [stat("batch-0", 7, 100, 20), stat("compute", 7, 50, 5), "", stat("http", 7, 3, 4), stat("decode", 7, 1, 0)]
        self.assertEqual(servers.ticks_outside(threads, servers.COMPUTING), 8)


if __name__ == "__main__":
    unittest.main()
