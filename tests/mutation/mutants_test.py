# SPDX-License-Identifier: Apache-2.0
import pathlib
import tempfile
import unittest

import mutants

SOURCE = """#include <a.h>
int Add(int a, int b) {
  if (a < 0 && b < 0) return -1;
  total += a;
  return Pair(a + b, 2 * a);
  Sum<int, 1>(b);
  if (a > 2 || !seen.insert(a).second) ++a;
  constexpr int kMost = 7;
  constexpr std::array kPairs = std::to_array<Two>({{.a = 8, .b = 9}, {10, 11}});
}
"""


class TableTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "areas").mkdir()
        (self.root / "add.cc").write_text(SOURCE, encoding="utf-8")

    def read(self, *changes):
        table = f"TESTS = ['t']\nMUTANTS = {{'add.cc': {list(changes)!r}}}\n"
        (self.root / "areas" / "one.py").write_text(table, encoding="utf-8")
        return mutants.read_mutants(self.root, self.root / "areas")[0]

    def rewrite(self, *changes):
        return mutants.rewritten_sources(self.root, ["add.cc"], self.read(*changes))["add.cc"]

    def test_an_expression_becomes_a_choice(self):
        [mutant] = self.read(("a + b", "a - b"))
        self.assertEqual(mutant.line, 5)
        self.assertIn(f"Pair((attendant_mutant == {mutant.number} ? (a - b) : (a + b)), 2 * a)",
                      self.rewrite(("a + b", "a - b")))

    def test_a_statement_becomes_a_branch(self):
        [mutant] = self.read(("total += a;", ""))
        self.assertIn(f"if (attendant_mutant == {mutant.number}) {{  }} else {{ total += a; }}",
                      self.rewrite(("total += a;", "")))

    def test_marks_give_context(self):
        self.assertIn("(b - 0)", self.rewrite(("&& b < «0»", "b - 0")))

    def test_two_mutants_share_a_place(self):
        text = self.rewrite(("a + b", "a - b"), ("a + b", "a * b"))
        self.assertIn("? (a - b) : attendant_mutant ==", text)
        self.assertEqual(text.count("(a + b)"), 1)

    def test_the_header_comes_first(self):
        self.assertTrue(self.rewrite(("a + b", "a")).startswith(f'#include "{mutants.HEADER}"\n#include <a.h>'))

    def test_a_number_does_not_depend_on_others(self):
        alone = self.read(("a + b", "a"))[0].number
        self.assertEqual(self.read(("total += a;", ""), ("a + b", "a"))[-1].number, alone)

    def test_refuses(self):
        for original, replacement in [("a * b", "a"),  # is not there
                                      ("a", "b"),  # is there more than once
                                      ("0 && b", "1"),  # part of two expressions
                                      ("a + b, 2 * a", "0, 0"),  # two expressions
                                      ("a «+ b»", ""),  # an operator without its left side
                                      ("a «+» b", "-"),  # an operator alone
                                      ("a + b", "a +"),
                                      ("Pair(a + b, 2 * a", "0"),  # half of a call
                                      ("«Pair»(a + b", "0"),  # a function without its arguments
                                      ("a > 2 || !seen", "!seen"),  # an operand without its member
                                      ("a + b", ""),
                                      ("to«tal += a;»", ""),  # part of a statement
                                      ("«a + b", "a"),  # one mark
                                      ("Sum<int, «1»>", "2"),  # an argument of a template
                                      ("kMost = «7»", "8"),  # a constant
                                      (".b = «9»", "8"),  # part of one
                                      ("«11»", "8")]:
            with self.subTest(original), self.assertRaises(mutants.TableError):
                self.read((original, replacement))

    def test_refuses_overlaps_and_repetitions(self):
        for second in (("Pair(a + b, 2 * a)", "0"), ("a + b", "a - b")):
            with self.subTest(second), self.assertRaises(mutants.TableError):
                self.read(("a + b", "a - b"), second)

    def test_refuses_a_file_that_stands_twice(self):
        table = "TESTS = ['t']\nMUTANTS = {'add.cc': [('a + b', '0')], 'add.cc': [('a + b', 'a')]}\n"
        (self.root / "areas" / "one.py").write_text(table, encoding="utf-8")
        with self.assertRaises(mutants.TableError):
            mutants.read_mutants(self.root, self.root / "areas")

    def test_an_equivalent_mutant_has_a_reason(self):
        table = "TESTS = ['t']\nMUTANTS = {}\nEQUIVALENT = [('add.cc', 'a + b', 'b + a', '')]\n"
        (self.root / "areas" / "one.py").write_text(table, encoding="utf-8")
        with self.assertRaises(mutants.TableError):
            mutants.read_mutants(self.root, self.root / "areas")


if __name__ == "__main__":
    unittest.main()
