# SPDX-License-Identifier: Apache-2.0
"""Shows that structure.py finds each kind of fault, and nothing in a tree that has none."""

import pathlib
import tempfile
import unittest

import structure

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"
CLEAN = {
    "kernels/core/shape.h": LICENCE + '#pragma once\n#include <vector>\n#include "absl/status/status.h"\n',
    "kernels/cpu/matmul/engine.cc": LICENCE + '#include <dnnl.hpp>\n#include "kernels/core/shape.h"\n',
    "server/rpc/tei/a.cc": LICENCE + '#include <grpcpp/grpcpp.h>\n#include "inference/grpc_service.pb.h"\n',
    "proto/attendant/v1/encoder.proto": LICENCE + 'import "google/protobuf/any.proto";\n',
    "tests/kernels/shape_test.cc": LICENCE + '#include <gtest/gtest.h>\n#include "kernels/core/shape.h"\n',
    "README.md": "# Title\n[part](server/README.md#the-first-part)\n",
    "server/README.md": "# server\n## The first part\n[up](../README.md) [web](https://example.org/a)\n",
    ".ci/run": "#!/usr/bin/env bash\n# SPDX-License-Identifier: Apache-2.0\n",
    "build/generated.h": "generated code needs no licence\n",
}


def body(lines):
    return "{\n" + "  Step();\n" * lines + "}\n"


class StructureTest(unittest.TestCase):
    def faults(self, **added):
        """Faults of the clean tree with these files added."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (CLEAN | added).items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return structure.Tree(folder).check()

    def unused(self, *modules, **added):
        """The permissions of these modules that nothing in the tree uses."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in added.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            tree = structure.Tree(folder)
            self.assertEqual(tree.check(), [])
            return [f for f in tree.check_permissions() if any(f": {m} may include" in f for m in modules)]

    def fault(self, name, text):
        """The one fault that a file with this text brings."""
        faults = self.faults(**{name: text})
        self.assertEqual(len(faults), 1, faults)
        return faults[0]

    def test_clean_tree_has_no_fault(self):
        self.assertEqual(self.faults(), [])

    def test_forbidden_arrow(self):
        fault = self.fault("kernels/core/bad.cc", LICENCE + '#include "server/batching/queue.h"\n')
        self.assertIn("neither in the tree", fault)
        files = {"server/batching/queue.h": LICENCE,
                 "kernels/core/bad.cc": LICENCE + '#include "server/batching/queue.h"\n'}
        self.assertEqual(self.faults(**files),
                         ["kernels/core/bad.cc:2: kernels/core may not include server/batching"])

    def test_headers_for_every_module(self):
        macros = "kernels/core/status_macros.h"
        self.assertEqual(self.faults(**{macros: LICENCE, "client/good.cc": LICENCE + f'#include "{macros}"\n'}), [])
        fault = self.fault(macros, LICENCE + '#include "kernels/core/shape.h"\n')
        self.assertIn("includes nothing of the tree", fault)

    def test_device_code_is_read_as_well(self):
        for suffix in ("cu", "cuh"):
            fault = self.fault(f"kernels/cuda/bad.{suffix}", LICENCE + '#include "absl/status/status.h"\n')
            self.assertIn("kernels/cuda may not use absl", fault)
        long = LICENCE + "__global__ void Kernel(int n) " + body(70)
        self.assertIn("a function of 72 lines", self.fault("kernels/cuda/bad.cu", long))

    def test_generated_code_belongs_to_proto(self):
        fault = self.fault("server/batching/bad.h", LICENCE + '#include "attendant/v1/encoder.pb.h"\n')
        self.assertEqual(fault, "server/batching/bad.h:2: server/batching may not include proto")

    def test_a_librarys_own_generated_code_belongs_to_the_library(self):
        include = LICENCE + "#include <google/protobuf/descriptor.pb.h>\n"
        self.assertIn("server/batching may not use protobuf", self.fault("server/batching/bad.cc", include))
        self.assertEqual(self.faults(**{"server/rpc/scan/good.cc": include}), [])

    def test_forbidden_library(self):
        for include in ("<grpcpp/grpcpp.h>", '"grpcpp/grpcpp.h"', "<prometheus/registry.h>", "<dnnl.hpp>"):
            fault = self.fault("server/batching/bad.cc", LICENCE + f"#include {include}\n")
            self.assertIn("server/batching may not use", fault)

    def test_private_library_stays_out_of_headers(self):
        self.assertEqual(self.faults(**{"kernels/io/a.cc": LICENCE + "#include <nlohmann/json.hpp>\n"}), [])
        fault = self.fault("kernels/io/a.h", LICENCE + "#include <nlohmann/json.hpp>\n")
        self.assertIn("in .cc files only", fault)

    def test_nothing_includes_tests(self):
        faults = self.faults(**{"tests/a.h": LICENCE, "server/bad.cc": LICENCE + '#include "tests/a.h"\n'})
        self.assertEqual(faults, ["server/bad.cc:2: server may not include tests"])

    def test_includes_are_written_from_the_root(self):
        self.assertIn("not written from the root",
                      self.fault("kernels/cpu/bad.cc", LICENCE + '#include "../core/shape.h"\n'))

    def test_cycle(self):
        circle = "server/metrics -> server/models -> server/metrics"
        files = {"server/models/a.h": LICENCE + '#include "server/metrics/b.h"\n',
                 "server/metrics/b.h": LICENCE + '#include "server/models/a.h"\n'}
        faults = self.faults(**files)
        self.assertTrue(any(circle in fault for fault in faults), faults)

    def test_rooms_of_a_module_have_arrows(self):
        files = {"kernels/cpu/encoder/a.h": LICENCE, "kernels/cpu/matmul/b.cc": LICENCE + '#include "kernels/cpu/encoder/a.h"\n'}
        self.assertEqual(self.faults(**files),
                         ["kernels/cpu/matmul/b.cc:2: kernels/cpu/matmul may not include kernels/cpu/encoder"])
        client = {"client/cli/a.h": LICENCE, "client/b.cc": LICENCE + '#include "client/cli/a.h"\n'}
        self.assertEqual(self.faults(**client), ["client/b.cc:2: client may not include client/cli"])

    def test_check_h_is_for_every_module(self):
        check = {"kernels/core/check.h": LICENCE, "client/a.cc": LICENCE + '#include "kernels/core/check.h"\n'}
        self.assertEqual(self.faults(**check), [])
        shape = {"kernels/core/shape.h": LICENCE, "client/a.cc": LICENCE + '#include "kernels/core/shape.h"\n'}
        self.assertEqual(self.faults(**shape), ["client/a.cc:2: client may not include kernels/core"])

    def test_type_through_another_header(self):
        files = {"server/text/a.h": LICENCE + "namespace attendant {\nstruct TokenizedText {\n  int a;\n};\n}\n",
                 "server/models/b.h": LICENCE + '#include "server/text/a.h"\n',
                 "server/rpc/tei/c.cc": LICENCE + '#include "server/models/b.h"\nattendant::TokenizedText text;\n'}
        self.assertEqual(self.faults(**files), ["server/rpc/tei/c.cc:3: server/rpc/tei uses TokenizedText of "
                                                "server/text, which it may not include"])
        for elsewhere in ("v1::TokenizedText text;", "auto text = a.TokenizedText;", "// TokenizedText"):
            files["server/rpc/tei/c.cc"] = LICENCE + f'#include "server/models/b.h"\n{elsewhere}\n'
            self.assertEqual(self.faults(**files), [])
        files["server/rpc/tei/c.cc"] = (
            LICENCE + '#include "server/models/b.h"\nstruct TokenizedText {};  // its own\nTokenizedText text;\n')
        self.assertEqual(self.faults(**files), [])

    def test_missing_include(self):
        files = {"server/text/a.h": LICENCE + 'struct Words {\n};\ninline constexpr char kPlace[] = "";\n',
                 "server/text/b.h": LICENCE + '#include "server/text/a.h"\n'}
        for use, name in (("Words w;", "Words"), ("auto p = kPlace;", "kPlace")):
            self.assertEqual(self.faults(**files, **{"server/text/c.cc": LICENCE + use + "\n"}),
                             [f"server/text/c.cc:2: uses {name} of server/text/a.h, which it does not include"])
            good = LICENCE + f'#include "server/text/b.h"\n{use}\n'
            self.assertEqual(self.faults(**files, **{"server/text/c.cc": good}), [])
        for other in ("struct Words;\nWords* w;", "template <typename Words>\nWords Copy();", "int Words(int a);",
                      "auto w = a.Words;", "// Words", "int a = b::kPlace;", "const int kPlace = 1;\nint a = kPlace;"):
            self.assertEqual(self.faults(**files, **{"server/text/c.cc": LICENCE + other + "\n"}), [], other)

    def test_private_names_meet_in_a_unity_build(self):
        def source(private, place="attendant"):
            return LICENCE + f"namespace {place} {{\nnamespace {{\n\n{private}\n\n}}\n}}\n"

        def faults(first, second, alone="", **others):
            library = f"attendant_library(attendant_text\n  SOURCES a.cc {alone} b.cc\n  PUBLIC x)\n"
            return self.faults(**others, **{
                "server/text/CMakeLists.txt": "# SPDX-License-Identifier: Apache-2.0\n" + library,
                "server/text/a.cc": first, "server/text/b.cc": second})

        for first, second, name in (
                ("struct Pair {\n};", "using Pair = int;", "Pair"),
                ("constexpr int kKinds[] = {1};", "const char* const kKinds[2] = {};", "kKinds"),
                ("int Read(const Map<A, B>& fields);", "char* Read(const Map<A, B>& map, int);", None),
                ("int Read(const Map<A, B>& fields);", "char* Read(\n    const Map<A,\n B>& map) {\n}",
                 "Read(const Map<A, B>&)"),
                ("int Read(int a);", "void Use() {\n  Read(int);\n}", None),
                ("int Read(int a);", "struct Use {\n  int Read(int a);\n};", None)):
            expected = [f"server/text/b.cc:5: {name} is a name of server/text/a.cc too: a unity build takes both at a time"]
            self.assertEqual(faults(source(first), source(second)), expected if name else [], second)
        self.assertEqual(faults(source("struct A {\n};", "attendant::b"), source("struct A {\n};", "attendant::c")), [])
        self.assertEqual(faults(source("struct A {\n};"), source("struct A {\n};"), alone="ALONE"), [])
        header = {"server/text/c.h": LICENCE + "namespace attendant {\n\nint Read(int a);\n\n}\n"}
        user = LICENCE + '#include "server/text/c.h"\n'
        self.assertEqual(faults(user, source("char Read(int b);"), **header),
                         ["server/text/b.cc:5: Read(int) is a name of server/text/c.h too: a unity build takes both at a "
                          "time"])

    def test_type_of_two_definitions(self):
        def header(code, space="attendant"):
            return LICENCE + f"namespace {space} {{\n\n{code}\n\n}}\n"

        def faults(first, second):
            return self.faults(**{"server/text/a.h": first, "kernels/core/b.h": second})

        span = "struct Span {\n};"
        expected = ["server/text/a.h:4: Span is a type of kernels/core/b.h too: a program may have one of them only"]
        self.assertEqual(faults(header(span), header(span)), expected)
        self.assertEqual(faults(header(span), header("using Span = int;")), expected)
        self.assertEqual(faults(header(span), header(span, "attendant::core")), [])
        self.assertEqual(faults(header(span), header("struct Spans {\n};\nint Span(int a);")), [])
        nested = {"server/text/a.h": header("class Words {\n  class Impl;\n};"),
                  "server/text/a.cc": LICENCE + '#include "server/text/a.h"\n' + header("class Words::Impl {\n};")}
        self.assertEqual(self.faults(**nested), [])

    def test_type_through_another_header_makes_a_cycle(self):
        files = {"server/text/a.h": LICENCE + "struct Words {\n};\n",
                 "server/models/b.h": LICENCE + '#include "server/text/a.h"\nusing Models = Words;\n',
                 "server/text/c.cc": LICENCE + '#include "server/models/b.h"\nModels models;\n'}
        faults = self.faults(**files)
        self.assertTrue(any("server/models -> server/text -> server/models" in fault for fault in faults), faults)

    def test_library_through_another_header(self):
        files = {"server/metrics/a.h": LICENCE + "#include <prometheus/registry.h>\n",
                 "server/metrics/b.h": LICENCE + '#include "server/metrics/a.h"\n',
                 "server/models/c.cc": LICENCE + '#include "server/metrics/b.h"\n#include "server/metrics/a.h"\n'}
        self.assertEqual(self.faults(**files),
                         ["server/models/c.cc:2: server/models gets prometheus through server/metrics/a.h"])
        del files["server/models/c.cc"]
        self.assertEqual(self.faults(**files), [])

    def test_permissions_that_nothing_uses(self):
        room, rules = "kernels/checkpoints/families", "tests/structure/rules.py"
        files = {"kernels/core/a.h": LICENCE, "kernels/io/a.h": LICENCE,
                 f"{room}/b.cc": LICENCE + '#include "kernels/core/a.h"\n#include "kernels/io/a.h"\n'}
        self.assertEqual(self.unused(room, **files), [f"{rules}: {room} may include absl, but does not"])
        files[f"{room}/b.cc"] = LICENCE + '#include "absl/time/time.h"\n'
        self.assertEqual(self.unused(room, **files), [f"{rules}: {room} may include kernels/core, but does not",
                                                      f"{rules}: {room} may include kernels/io, but does not"])

    def test_files_in_a_folder(self):
        files = {f"client/load/a{i}.cc": LICENCE for i in range(25)}
        self.assertEqual(self.faults(**files), [])
        files["client/load/README.md"] = "# load\n"
        self.assertEqual(self.faults(**files), ["client/load: holds 26 files, the limit is 25"])

    def test_links_between_pages(self):
        self.assertEqual(self.fault("client/README.md", "# client\n[gone](../kernels/README.md)\n"),
                         "client/README.md:2: a link to ../kernels/README.md, which does not exist")
        self.assertEqual(self.fault("client/README.md", "[part](../server/README.md#second-part)\n"),
                         "client/README.md:1: a link to #second-part, which ../server/README.md does not have")

    def test_paths_on_pages(self):
        page = "Read `rpc/gone.h` and `flags/a.{h,cc}`, `flags/a`, `made/up.h`.\n"
        files = {"client/flags/a.h": LICENCE, "client/flags/a.cc": LICENCE, "client/README.md": page}
        self.assertEqual(self.faults(**files), [])
        files["client/rpc/b.h"] = LICENCE
        self.assertIn("client/README.md:1: the path rpc/gone.h, which does not exist", self.faults(**files))

    def test_included_code_is_read_as_well(self):
        self.assertIn("SPDX", self.fault("kernels/cpu/simd/a.inc", "no licence\n"))
        self.assertIn("has 401 lines", self.fault("kernels/cpu/simd/a.inc", LICENCE + "\n" * 400))
        self.assertIn("a line of 101 columns", self.fault("kernels/cpu/simd/a.inc", LICENCE + "// " + "x" * 98 + "\n"))
        self.assertIn("may not include server/text",
                      self.faults(**{"server/text/a.h": LICENCE, "kernels/cpu/simd/a.inc":
                                     LICENCE + '#include "server/text/a.h"\n'})[0])

    def test_licence(self):
        for name in ("client/a.cc", "deploy/a.sh", "tests/CMakeLists.txt", "tests/a.py"):
            self.assertIn("SPDX", self.fault(name, "no licence\n"))

    def test_machine_path(self):
        home = "/" + "home/somebody/models"
        self.assertEqual(self.fault("client/a.cc", LICENCE + f'auto p = "{home}";\n'),
                         "client/a.cc:2: a path of one machine")
        self.assertEqual(self.faults(**{"deploy/a.sh": "# SPDX-License-Identifier: Apache-2.0\ncd ~/work/x\n"}), [])

    def test_length(self):
        self.assertIn("has 241 lines, the limit is 240", self.fault("client/a.h", LICENCE + "\n" * 240))
        self.assertIn("has 401 lines, the limit is 400", self.fault("client/a.cc", LICENCE + "\n" * 400))

    def test_function_length(self):
        head = LICENCE + "namespace attendant {\n"
        self.assertEqual(self.faults(**{"client/a.cc": head + "int F() " + body(68) + "}\n"}), [])
        self.assertEqual(self.fault("client/a.cc", head + "int F() " + body(69) + "}\n"),
                         "client/a.cc:3: a function of 71 lines, the limit is 70")
        method = head + "class alignas(64) A {\n public:\n  A() : a_{1} " + body(90) + "};\n}\n"
        self.assertIn("client/a.cc:5: a function of 92 lines", self.fault("client/a.cc", method))

    def test_loop_over_a_list_of_statuses(self):
        body = "{\n    if (!s.ok()) return s;\n  }\n"
        for loop in ("for (const absl::Status& s :\n       {A(x), B(y)}) " + body,
                     "for (Status s : std::initializer_list<absl::Status>{A(), B()}) Keep(s);\n",
                     "for (const absl::StatusOr<int64_t>& s : {A({1, 2}), B()}) " + body,
                     "for (const auto& s : {A(), B()})\n    if (!s.ok()) return s.status();\n"):
            fault = self.fault("server/text/a.cc", LICENCE + "Status F() {\n  " + loop + "}\n")
            self.assertEqual(fault, "server/text/a.cc:3: a loop over a list of statuses, "
                                    "use ATTENDANT_RETURN_IF_ERROR for each")
            self.assertEqual(self.faults(**{"tests/a.cc": LICENCE + "Status F() {\n  " + loop + "}\n"}), [])
        for loop in ("for (const char* s : {a, b}) " + body.replace("!s.ok()", "*s"),
                     "for (const absl::Status& s : statuses) " + body,
                     "for (absl::Status (*s)(const T&) : {A, B}) " + body.replace("!s.ok()", "Bad(s)"),
                     "// for (const absl::Status& s : {A(), B()})\n"):
            self.assertEqual(self.faults(**{"server/text/a.cc": LICENCE + "Status F() {\n  " + loop + "}\n"}), [])

    def test_waits_by_the_wall_clock(self):
        wait = LICENCE + "  mutex_.AwaitWithTimeout(absl::Condition(&done), limit);\n"
        self.assertEqual(self.fault("server/text/a.cc", wait),
                         "server/text/a.cc:2: AwaitWithTimeout follows the wall clock, use SteadyCondVar")
        self.assertEqual(self.fault("client/a.cc", wait),
                         "client/a.cc:2: AwaitWithTimeout follows the wall clock, use std::condition_variable")
        now = LICENCE + "  const absl::Time now = absl::Now();\n"
        self.assertEqual(self.fault("client/load/a.cc", now),
                         "client/load/a.cc:2: absl::Now follows the wall clock, use LoadClock")
        self.assertEqual(self.faults(**{"client/cli/a.cc": now}), [])
        for name, text in (("tests/a.cc", wait), ("server/text/a.cc", LICENCE + "// No AwaitWithTimeout.\n")):
            self.assertEqual(self.faults(**{name: text}), [])

    def test_length_counts_functions_only(self):
        data = "constexpr int kTable[] = {\n" + "1'000,\n" * 90 + "};\n"
        scope = "struct alignas(8) A {\n" + "  int a;\n" * 90 + "};\n"
        comment = "// a brace { and a quote ' in a comment\n/* { */ const char* s = \"{\";\n" + "\n" * 90
        for text in (data, scope, comment):
            self.assertEqual(self.faults(**{"client/a.cc": LICENCE + text}), [])


if __name__ == "__main__":
    unittest.main()
