#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the tree and says where it leaves the house's order.

    tests/structure/structure.py [ROOT]

Checked: the include arrows of rules.py, cycles between modules, the licence line, the length of files and
functions, loops over lists of statuses, and paths of one machine. Prints one line for each fault; the exit code is 1 when there is one.
"""

import collections
import pathlib
import re
import sys

import rules

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
IMPORT = re.compile(r'^\s*import\s+(?:public\s+)?"([^"]+)"')
MACHINE_PATH = re.compile(r"(?<![A-Za-z0-9_.${}~])/(?:work|root|home|Users)/\w")
NOT_CODE = re.compile(r"^\s*(?:#(?:[^\n\\]|\\.)*|(?:public|protected|private)\s*:)", re.MULTILINE | re.DOTALL)
SCOPE = re.compile(r'\s*(?:template\s*<[^{]*>\s*)?(?:inline\s+)?'
                   r'(?:(?:namespace|class|struct|union|enum)\b|extern\s*"")')
# Comments, strings and character literals (not the digit separator of 1'000), in one pass.
BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)
FOR_LIST = re.compile(r"\bfor\s*\(([^;(){}]*?)(\w+)\s*:\s*(?:[\w:]+\s*(?:<[^;{}]*>)?\s*)?(?=\{)")


def source_files(root):
    """The sources under root, as paths relative to it."""
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        top = relative.parts[0]
        if top == "build" or (top.startswith(".") and top != ".ci") or "__pycache__" in relative.parts:
            continue
        if path.is_file() and (path.suffix in rules.SOURCE_SUFFIXES or path.name in rules.SOURCE_NAMES
                               or top == ".ci"):
            yield relative


def module_of(relative):
    """The module that a file belongs to, None for files of no module."""
    name = pathlib.PurePath(relative).as_posix()
    fitting = [m for m in rules.TABLE if name.startswith(m + "/")]
    return max(fitting, key=len, default=None)


def library_of(include):
    for library, prefixes in rules.LIBRARIES.items():
        if include.startswith(prefixes):
            return library
    return None


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = list(source_files(self.root))
        self.faults = []
        self.arrows = collections.defaultdict(set)  # module -> modules that it includes

    def fault(self, relative, line, message):
        self.faults.append(f"{relative.as_posix()}:{line}: {message}")

    def check(self):
        for relative in self.files:
            text = (self.root / relative).read_text(encoding="utf-8", errors="replace")
            self.check_licence(relative, text)
            self.check_paths(relative, text)
            self.check_length(relative, text)
            if relative.suffix in (".h", ".cc", ".cu", ".cuh"):
                self.check_includes(relative, text)
                self.check_functions(relative, text)
                self.check_status_lists(relative, text)
            elif relative.suffix == ".proto":
                self.check_imports(relative, text)
        self.check_cycles()
        return self.faults

    def check_licence(self, relative, text):
        head = text.splitlines()[:2] or [""]
        if head[0].startswith("#!"):
            head = head[1:]
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
            self.fault(relative, 1, "no 'SPDX-License-Identifier: Apache-2.0' at its head")

    def check_paths(self, relative, text):
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line):
                self.fault(relative, number, "a path of one machine")

    def check_length(self, relative, text):
        lines = text.count("\n")
        limit = rules.MAX_LINES.get(".cc" if relative.parts[0] == "tests" else relative.suffix)
        limit = rules.LONGER.get(relative.as_posix(), limit)
        if limit is not None and lines > limit:
            self.fault(relative, 1, f"has {lines} lines, the limit is {limit}")

    def check_includes(self, relative, text):
        module = module_of(relative)
        for number, line in enumerate(text.splitlines(), 1):
            match = INCLUDE.match(line)
            if match and module:
                self.check_include(relative, number, module, match.group(1) == '"', match.group(2))

    def check_include(self, relative, number, module, quoted, include):
        allowed = rules.TABLE[module]
        if include.startswith(".") or "/../" in include:
            self.fault(relative, number, f'"{include}" is not written from the root')
        elif (self.root / include).is_file() or include.endswith(".pb.h"):
            self.check_arrow(relative, number, module, include)
        elif (library := library_of(include)) is None:
            if quoted:
                self.fault(relative, number, f'"{include}" is neither in the tree nor a known library')
        elif library in allowed.private:
            if relative.suffix != ".cc":
                self.fault(relative, number, f"{module} may use {library} in .cc files only")
        elif library not in allowed.libraries:
            self.fault(relative, number, f"{module} may not use {library}")

    def check_arrow(self, relative, number, module, include):
        other = "proto" if include.endswith(".pb.h") else module_of(include)
        if other == module:
            return
        if other is None or other not in rules.TABLE[module].modules:
            self.fault(relative, number, f"{module} may not include {other or include}")
        self.arrows[module].add(other)

    def check_imports(self, relative, text):
        for number, line in enumerate(text.splitlines(), 1):
            match = IMPORT.match(line)
            if not match or match.group(1).startswith("google/protobuf/"):
                continue
            if not (self.root / "proto" / match.group(1)).is_file():
                self.fault(relative, number, f'imports "{match.group(1)}", which is not in proto/')

    def check_functions(self, relative, text):
        for first, last in function_bodies(text):
            if last - first + 1 > rules.MAX_FUNCTION_LINES:
                self.fault(relative, first, f"a function of {last - first + 1} lines, the limit is "
                                            f"{rules.MAX_FUNCTION_LINES}")

    def check_status_lists(self, relative, text):
        """An initializer list evaluates every check in it before the loop looks at the first."""
        if relative.parts[0] == "tests":
            return
        code = blank(text)
        for match in FOR_LIST.finditer(code):
            body = code[end_of_braces(code, match.end()):]
            is_tested = re.match(rf"\s*\)\s*\{{?\s*if\s*\(\s*!\s*{match.group(2)}\s*\.ok\(\)", body)
            if re.search(r"\bStatus(?:Or\s*<.*>)?\b[\s&]*(?:const\b[\s&]*)?$", match.group(1)) or is_tested:
                self.fault(relative, code.count("\n", 0, match.start()) + 1,
                           "a loop over a list of statuses, use ATTENDANT_RETURN_IF_ERROR for each")

    def check_cycles(self):
        done = set()

        def visit(module, way):
            if module in way:
                circle = " -> ".join(way[way.index(module):] + [module])
                self.faults.append(f"modules include each other in a circle: {circle}")
            elif module not in done:
                for other in sorted(self.arrows.get(module, ())):
                    visit(other, way + [module])
                done.add(module)

        for module in sorted(self.arrows):
            visit(module, [])


def blank(text):
    """The text with comments and literals emptied; lines stay where they are."""
    def keep_lines(match):
        edge = '""' if match.group(0)[0] in "\"'R" else ""
        return edge + "\n" * match.group(0).count("\n")
    return BLANKED.sub(keep_lines, text)


def end_of_braces(code, start):
    """The end of the block in braces that begins at start."""
    depth = 0
    for at in range(start, len(code)):
        depth += (code[at] == "{") - (code[at] == "}")
        if depth == 0:
            return at + 1
    return len(code)


def function_bodies(text):
    """First and last line of every brace block that stands directly in a namespace or class, and is neither
    of these itself nor an initializer."""
    code = blank(text)
    stack = []  # for each open brace: (line, kind); kind is "scope", "function" or "other"
    head_start, line = 0, 1
    for at, char in enumerate(code):
        if char == "\n":
            line += 1
        elif char == "{":
            stack.append((line, block_kind(code[head_start:at], stack)))
            head_start = at + 1
        elif char == "}" and stack:
            first, kind = stack.pop()
            head_start = at + 1
            if kind == "function":
                yield first, line
        elif char == ";":
            head_start = at + 1


def block_kind(head, stack):
    if any(kind != "scope" for _, kind in stack):
        return "other"
    head = NOT_CODE.sub("", head)
    if SCOPE.match(head):
        return "scope"
    after_initializers = not head.strip()  # Type() : member_{1} {
    is_function = after_initializers or (")" in head and not head.rstrip().endswith("="))
    return "function" if is_function else "other"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    tree = Tree(root)
    faults = tree.check()
    for fault in faults:
        print(fault)
    print(f"{len(tree.files)} files, {len(faults)} faults")
    return 1 if faults or not tree.files else 0


if __name__ == "__main__":
    sys.exit(main())
