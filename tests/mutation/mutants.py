# SPDX-License-Identifier: Apache-2.0
"""The tables of mutants, checked against the sources, and the sources rewritten so that one build holds them all.

A table is a file of `areas/`, plain data:

    TESTS = ["batcher_test", "core_test:PoolingTest.*"]     # test programs, each with a GoogleTest filter or all
    MUTANTS = {"server/batching/batch_policy.cc": [("now >= ripe", "now > ripe"), ...]}
    EQUIVALENT = [("FILE", "ORIGINAL", "REPLACEMENT", "why no test can tell")]

ORIGINAL occurs once in its file. Where it needs context to be unique, «» mark the part that REPLACEMENT stands for.
That part is an expression, or statements that end with a semicolon. FILE_TESTS = {FILE: TESTS} names other tests than
the area's for some files.
"""

import ast
import dataclasses
import importlib.util
import pathlib
import re
import zlib

HERE = pathlib.Path(__file__).resolve().parent
VARIABLE = "ATTENDANT_MUTANT"
HEADER = "tests/mutation/mutant.h"


class TableError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Mutant:
    area: str
    index: int  # in its area, from 1
    file: str
    begin: int  # of the replaced part, in characters
    end: int
    line: int
    original: str  # the replaced part
    replacement: str
    tests: tuple

    @property
    def name(self):
        return f"{self.area}.{self.index}"

    @property
    def number(self):
        """Depends on the mutant alone: an edit of the table recompiles no other file."""
        return zlib.crc32(f"{self.file}\0{self.original}\0{self.replacement}\0{self.begin}".encode()) & 0x7FFFFFFF


def load_area(path):
    """The table of a file. A name that stands twice in a dictionary would lose the first one's mutants."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [key.value for key in node.keys] if isinstance(node, ast.Dict) else []
        for name in names:
            if names.count(name) > 1:
                raise TableError(f"{path.name}: {name} stands twice")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find(text, where, pattern):
    """The extent of the marked part of `pattern`, which must occur exactly once in `text`."""
    before, mark, rest = pattern.partition("«")
    part, closing, after = rest.partition("»") if mark else (pattern, "»", "")
    if not closing or "«" in part + after or "»" in after:
        raise TableError(f"{where}: the marks of {pattern!r} do not match")
    before = before if mark else ""
    found = text.count(before + part + after)
    if found != 1:
        raise TableError(f"{where}: occurs {found} times, must occur once: {pattern!r}")
    begin = text.index(before + part + after) + len(before)
    return begin, begin + len(part)


PRECEDENCE = {"=": -1, "+=": -1, "-=": -1, "*=": -1, "?": 0, ":": 0, "||": 1, "&&": 2, "|": 3, "^": 3, "&": 4, "==": 5,
              "!=": 5, "<": 6, ">": 6, "<=": 6, ">=": 6, "<<": 7, ">>": 7, "+": 8, "-": 8, "*": 9, "/": 9, "%": 9}
LOOSEST = 10


def top_level(text):
    """`text` without what stands in brackets or quotes."""
    out, depth, quote, previous = [], 0, "", ""
    for c in text:
        if quote:
            quote = "" if c == quote and previous != "\\" else quote
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif depth == 0:
            out.append(c)
        previous = c
    return "".join(out)


def heads(text):
    """What stands before the end of `text`, then before each brace that is open there, from the inside."""
    closed, end = 0, len(text)
    for at in range(len(text) - 1, -1, -1):
        if text[at] == "{" and closed == 0:
            yield re.split("[;{}]", text[:end])[-1]
            end = at
        closed += {"}": 1, "{": -1 if closed else 0}.get(text[at], 0)
    yield re.split("[;{}]", text[:end])[-1]


def is_constant(text, begin):
    """Whether the place is part of a constant. The body of a constexpr function is none."""
    first, *outer = heads(text[:begin])
    return re.search(r"\bconstexpr\b|\bstatic_assert\b", first) or any(
        re.search(r"\bconstexpr\b[^()]*(=|$)|\bstatic_assert\b", head) for head in outer)


def check_expression(where, text, begin, end, replacement):
    """Brackets around the part must not change what it means. Operators have spaces around them, as clang-format
    writes them."""
    for expression in (text[begin:end], replacement):
        bare = re.sub(r"""\"(\\.|[^"\\])*"|'(\\.|[^'\\])*'""", "0", expression)  # without quoted text
        words = bare.split()
        open_ends = not words or words[0] in PRECEDENCE or words[-1] in PRECEDENCE or expression[0] == "."
        unbalanced = any(bare.count(a) != bare.count(b) for a, b in ("()", "[]", "{}"))
        if open_ends or unbalanced or words[0] in ("if", "}", "return") or words.count("?") > words.count(":"):
            raise TableError(f"{where}: no expression: {expression!r} in place of {text[begin:end]!r}")
    part = top_level(text[begin:end])
    if "," in part or ";" in part:
        raise TableError(f"{where}: more than one expression: {text[begin:end]!r}")
    inner = min((PRECEDENCE[word] for word in part.split() if word in PRECEDENCE), default=LOOSEST)
    left = text[max(0, begin - 40):begin].split()[-1:] if text[begin - 1].isspace() else []
    right = text[end:end + 40].split()[:1] if text[end:end + 1].isspace() else []
    before, after = (PRECEDENCE.get("".join(word), -2) for word in (left, right))
    chained = inner == before and before in (PRECEDENCE["&&"], PRECEDENCE["||"])
    glued = text[begin - 1] in ".>" or text[end] in "([" or (text[begin - 1] in "!~*&-" and inner < LOOSEST)
    glued = glued or (text.startswith((".", "->"), end) and inner < LOOSEST)  # x.y in "!x" without its member
    glued = glued or (text[begin - 1] in "< " and text[end] == ">")  # an argument of a template is a constant
    if is_constant(text, begin):
        raise TableError(f"{where}: part of a constant: {text[begin:end]!r}")
    if glued or after > inner or (before >= inner and not chained):
        raise TableError(f"{where}: not a whole expression: {text[begin:end]!r}")


def check_statement(where, text, begin):
    """What stands before the part must be the end of something else."""
    before = text[:begin].rstrip(" ")
    if not before or before[-1] not in "\n{};):":
        raise TableError(f"{where}: not a whole statement: {text[begin:begin + 60]!r}")
    if text.startswith(("auto ", "const "), begin):
        raise TableError(f"{where}: what a branch declares is lost behind it: {text[begin:begin + 60]!r}")


def read_mutants(root, areas=HERE / "areas"):
    """Every mutant of every area, and the areas' own tests by name. Raises TableError."""
    mutants, tests, errors = [], {}, []
    for path in sorted(areas.glob("*.py")):
        area = load_area(path)
        tests[path.stem] = tuple(area.TESTS)
        own_tests = getattr(area, "FILE_TESTS", {})
        index = 0
        for file, changes in area.MUTANTS.items():
            text = (root / file).read_text(encoding="utf-8")
            for original, replacement in changes:
                index += 1
                try:
                    where = f"{path.name}: {file}"
                    begin, end = find(text, where, original)
                    if is_statement(text[begin:end]):
                        check_statement(where, text, begin)
                    else:
                        check_expression(where, text, begin, end, replacement)
                except TableError as error:
                    errors.append(str(error))
                    continue
                mutants.append(Mutant(path.stem, index, file, begin, end, text.count("\n", 0, begin) + 1,
                                      text[begin:end], replacement, tuple(own_tests.get(file, area.TESTS))))
        for file, original, _, why in getattr(area, "EQUIVALENT", []):
            find((root / file).read_text(encoding="utf-8"), f"{path.name}: {file}", original)
            if not why:
                raise TableError(f"{path.name}: {file}: an equivalent mutant needs its reason")
    if errors:
        raise TableError("\n".join(errors))
    check_apart(mutants)
    return mutants, tests


def check_apart(mutants):
    """Mutants of one place share it exactly; others do not overlap."""
    by_file = {}
    for mutant in mutants:
        by_file.setdefault(mutant.file, []).append(mutant)
    for file, of_file in by_file.items():
        of_file.sort(key=lambda mutant: (mutant.begin, mutant.end))
        for a, b in zip(of_file, of_file[1:]):
            if b.begin < a.end and (a.begin, a.end) != (b.begin, b.end):
                raise TableError(f"{file}: {a.name} and {b.name} overlap")
    if len({mutant.number for mutant in mutants}) != len(mutants):
        raise TableError("two mutants are the same")


def is_statement(text):
    return text.rstrip().endswith((";", "}"))


def switch(mutants):
    """C++ that is the original, or the mutant that the environment chooses."""
    original = mutants[0].original
    if is_statement(original):
        chain = "".join(f"if (attendant_mutant == {m.number}) {{ {m.replacement} }} else " for m in mutants)
        return f"{chain}{{ {original} }}"
    chain = "".join(f"attendant_mutant == {m.number} ? ({m.replacement}) : " for m in mutants)
    return f"({chain}({original}))"


def rewrite(text, mutants):
    places = {}
    for mutant in mutants:
        places.setdefault((mutant.begin, mutant.end), []).append(mutant)
    for begin, end in sorted(places, reverse=True):
        text = text[:begin] + switch(places[begin, end]) + text[end:]
    return text


def includers(root, sources, file):
    """The .cc files that include an .inc file, which cannot include anything itself."""
    if not file.endswith(".inc"):
        return {file}
    found = set()
    for source in sources:
        if source.endswith((".cc", ".inc")) and f'#include "{file}"' in (root / source).read_text(encoding="utf-8"):
            found |= includers(root, sources, source)
    return found


def add_include(text):
    return re.sub(r"^(#include|#pragma once)", rf'#include "{HEADER}"\n\1', text, count=1, flags=re.MULTILINE)


def rewritten_sources(root, sources, mutants):
    """{file: text} of the sources that hold mutants."""
    by_file, including = {}, set()
    for mutant in mutants:
        by_file.setdefault(mutant.file, []).append(mutant)
    for file in by_file:
        including |= includers(root, [s for s in sources if s.startswith(file.split("/")[0])], file)
    texts = {}
    for file in by_file.keys() | including:
        text = rewrite((root / file).read_text(encoding="utf-8"), by_file.get(file, []))
        texts[file] = add_include(text) if file in including else text
    return texts
