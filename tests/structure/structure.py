#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the tree and says where it leaves the house's order.

    tests/structure/structure.py [ROOT]

Checked: the include arrows of rules.py, types and libraries that come through other headers, includes that are missing,
private names that meet in a unity build, types of two definitions, cycles between modules, permissions that nothing
uses, the licence line, the length of files, lines and functions, the number of files in a folder, loops over lists of
statuses, waits by the wall clock, links and paths on Markdown pages, and paths of one machine. Prints one line for each
fault; the exit code is 1 when there is one.
"""

import collections
import pathlib
import re
import sys

import reading
import rules

IMPORT = re.compile(r'^\s*import\s+(?:public\s+)?"([^"]+)"')
MACHINE_PATH = re.compile(r"(?<![A-Za-z0-9_.${}~])/(?:work|root|home|Users)/\w")
TIMED_WAIT = re.compile(r"\b(?:LockWhen|ReaderLockWhen|Await|Wait|WaitForNotification)With(?:Timeout|Deadline)\b")
WALL_CLOCK = (("server/", TIMED_WAIT, "SteadyCondVar"), ("client/", TIMED_WAIT, "std::condition_variable"),
              ("client/load/", re.compile(r"\babsl::Now\b"), "LoadClock"))
FOR_LIST = re.compile(r"\bfor\s*\(([^;(){}]*?)(\w+)\s*:\s*(?:[\w:]+\s*(?:<[^;{}]*>)?\s*)?(?=\{)")


def tree_files(root):
    """The files under root that are not built, as paths relative to it."""
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        top = relative.parts[0]
        if top == "build" or (top.startswith(".") and top != ".ci") or "__pycache__" in relative.parts:
            continue
        if path.is_file():
            yield relative


def is_source(relative):
    return (relative.suffix in rules.SOURCE_SUFFIXES or relative.name in rules.SOURCE_NAMES
            or relative.parts[0] == ".ci")


def module_of(name):
    """The module that a file belongs to, None for files of no module."""
    fitting = [m for m in rules.TABLE if name.startswith(m + "/")]
    return max(fitting, key=len, default=None)


def library_of(include):
    for library, prefixes in rules.LIBRARIES.items():
        if include.startswith(prefixes):
            return library
    return None


def covers(permission, module):
    """Whether a permission of rules.py, FOLDER or FOLDER/*, covers the module."""
    return permission == module or (permission.endswith("/*") and module.startswith(permission[:-1]))


def may_include(module, other):
    return module == other or any(covers(permission, other) for permission in rules.TABLE[module].modules)


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        files = list(tree_files(self.root))
        self.pages = [f for f in files if f.suffix == ".md"]
        self.files = [f for f in files if is_source(f)]
        self.texts = {f.as_posix(): (self.root / f).read_text(encoding="utf-8", errors="replace")
                      for f in self.files + self.pages}
        self.code = {f.as_posix(): reading.blank(self.texts[f.as_posix()]) for f in self.files
                     if f.suffix in rules.CODE_SUFFIXES}
        self.definitions = {name: reading.definitions(code) for name, code in self.code.items()}
        self.includes = {name: list(reading.includes(self.texts[name])) for name in self.code}
        self.faults = []
        self.arrows = collections.defaultdict(set)     # module -> modules that it includes
        self.libraries = collections.defaultdict(set)  # module -> libraries that it includes
        self.reached = {}                              # file -> files of the tree that it includes, directly or not

    def fault(self, name, line, message):
        self.faults.append(f"{name}:{line}: {message}")

    def check(self):
        for relative in self.files:
            name, text = relative.as_posix(), self.texts[relative.as_posix()]
            self.check_licence(name, text)
            self.check_paths(name, text)
            self.check_length(relative, text)
            if name in self.code:
                self.check_includes(name)
                self.check_functions(name)
                self.check_status_lists(name)
                self.check_wall_clock(name)
            elif relative.suffix == ".proto":
                self.check_imports(name, text)
        self.check_names()
        self.check_missing_includes()
        self.check_private_names()
        self.check_one_definition()
        self.check_leaks()
        self.check_cycles()
        self.check_folders()
        self.check_links()
        self.check_quoted_paths()
        return self.faults

    def check_licence(self, name, text):
        head = text.splitlines()[:2] or [""]
        if head[0].startswith("#!"):
            head = head[1:]
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
            self.fault(name, 1, "no 'SPDX-License-Identifier: Apache-2.0' at its head")

    def check_paths(self, name, text):
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line):
                self.fault(name, number, "a path of one machine")

    def check_length(self, relative, text):
        in_tests = relative.parts[0] == "tests"
        lines = text.count("\n")
        limit = rules.MAX_LINES.get(".cc" if in_tests else relative.suffix)
        if limit is not None and lines > limit:
            self.fault(relative.as_posix(), 1, f"has {lines} lines, the limit is {limit}")
        if relative.suffix in rules.CODE_SUFFIXES and not in_tests:
            for number, line in enumerate(text.splitlines(), 1):
                if len(line) > rules.MAX_COLUMNS:
                    self.fault(relative.as_posix(), number,
                               f"a line of {len(line)} columns, the limit is {rules.MAX_COLUMNS}")

    def check_includes(self, name):
        module = module_of(name)
        for number, quoted, include in self.includes[name] if module else ():
            self.check_include(name, number, module, quoted, include)

    def check_include(self, name, number, module, quoted, include):
        allowed = rules.TABLE[module]
        if include.startswith(".") or "/../" in include:
            self.fault(name, number, f'"{include}" is not written from the root')
        elif include in rules.ANYWHERE:
            return
        elif include in self.code or (include.endswith(".pb.h") and library_of(include) != "protobuf"):
            self.check_arrow(name, number, module, include)
        elif (library := library_of(include)) is None:
            if quoted:
                self.fault(name, number, f'"{include}" is neither in the tree nor a known library')
        elif library in allowed.private and name.endswith(rules.HEADER_SUFFIXES):
            self.fault(name, number, f"{module} may use {library} in .cc files only")
        elif library not in allowed.libraries | allowed.private:
            self.fault(name, number, f"{module} may not use {library}")
        self.libraries[module].add(library_of(include))

    def check_arrow(self, name, number, module, include):
        other = "proto" if include.endswith(".pb.h") else module_of(include)
        if name in rules.ANYWHERE:
            self.fault(name, number, "every module may include this header: it includes nothing of the tree")
        if other == module:
            return
        if other is None or not may_include(module, other):
            self.fault(name, number, f"{module} may not include {other or include}")
        self.arrows[module].add(other)

    def reach(self, name):
        """The files of the tree that `name` includes, directly or through other headers."""
        if name not in self.reached:
            self.reached[name] = set()  # ends circles
            for _, _, include in self.includes.get(name, ()):
                if include in self.code:
                    self.reached[name] |= {include} | self.reach(include)
        return self.reached[name]

    def check_names(self):
        """A type that comes through another header is an arrow to the module that defines it."""
        homes = collections.defaultdict(set)  # type -> files that define one of this name
        public = set()
        for name, code in self.code.items():
            for type_name, in_namespace in reading.types(code):
                homes[type_name].add(name)
                if in_namespace and name.endswith(rules.HEADER_SUFFIXES):
                    public.add(type_name)
        for name, code in self.code.items():
            module = module_of(name)
            if module is None or module == "tests":
                continue
            for used, line in reading.names(code).items():
                if used not in public or len(homes[used]) != 1:
                    continue
                home, = homes[used]
                other = module_of(home)
                if home not in self.reach(name) or other == module:
                    continue
                if not may_include(module, other):
                    self.fault(name, line, f"{module} uses {used} of {other}, which it may not include")
                self.arrows[module].add(other)

    def check_missing_includes(self):
        """A type or a constant that one header defines, in a source that does not include it: in unity form another
        source may have included it before."""
        homes = collections.defaultdict(set)   # name -> files that define it
        known = {}                             # file -> names that mean something else there
        for name, code in self.code.items():
            for type_name, in_namespace in reading.types(code):
                homes[type_name].add(name if in_namespace else None)
            for constant in reading.constants(code):
                homes[constant].add(name)
            known[name] = reading.others(code)
        for name, code in self.code.items():
            if not name.endswith(".cc") or module_of(name) in (None, "tests"):
                continue
            near = {name} | self.reach(name)
            for used, line in (reading.names(code) | reading.names(code, reading.CONSTANT_USE)).items():
                home = next(iter(homes[used])) if len(homes[used]) == 1 else None
                if home is None or not home.endswith(".h") or not may_include(module_of(name), module_of(home)):
                    continue
                if home not in near and not any(used in known[other] for other in near):
                    self.fault(name, line, f"uses {used} of {home}, which it does not include")

    def check_private_names(self):
        """A unity build takes several sources of a library at a time: one's private names are the others' too."""
        for page, text in self.texts.items():
            if not page.endswith("CMakeLists.txt"):
                continue
            folder = page.removesuffix("CMakeLists.txt")
            for sources in reading.library_sources(text):
                self.check_library([folder + source for source in sources if folder + source in self.code])

    def check_library(self, sources):
        homes = {}  # what is known in some namespace -> the file that defines or declares it
        for header in sorted(set().union(*(self.reach(name) for name in sources))):
            for known in self.definitions[header]:
                homes.setdefault(known, header)
        for name in sources:
            for (path, what), line in self.definitions[name].items():
                if path[-1:] != (None,):
                    continue
                home = homes.get((path[:-1], what)) or homes.setdefault((path, what), name)
                if home != name:
                    self.fault(name, line, f"{what} is a name of {home} too: a unity build takes both at a time")

    def check_one_definition(self):
        """A type of two definitions: in a program that has both, one's functions may be called for the other."""
        homes = {}
        for name, definitions in self.definitions.items():
            if module_of(name) in (None, "tests"):
                continue
            for (path, what), line in definitions.items():
                is_type = "(" not in what and not re.match("k[A-Z]", what)
                if None in path or not is_type:
                    continue
                home = homes.setdefault((path, what), name)
                # A file that includes the other defines a class within the type.
                if home != name and home not in self.reach(name) and name not in self.reach(home):
                    self.fault(name, line, f"{what} is a type of {home} too: a program may have one of them only")

    def check_leaks(self):
        """A library that a module may not use must not come through the headers of another."""
        for name in self.code:
            module = module_of(name)
            if module is None or module == "tests":
                continue
            allowed = rules.TABLE[module].libraries | rules.TABLE[module].private | {None}
            for number, _, include in self.includes[name]:
                if include not in self.code or module_of(include) == module:
                    continue
                for header in sorted({include} | self.reach(include)):
                    libraries = {library_of(i) for _, _, i in self.includes[header]}
                    self.libraries[module] |= libraries
                    for library in sorted(libraries - allowed):
                        self.fault(name, number, f"{module} gets {library} through {header}")
                        allowed = allowed | {library}  # once for each file

    def check_functions(self, name):
        for first, last in reading.function_bodies(self.code[name]):
            if last - first + 1 > rules.MAX_FUNCTION_LINES:
                self.fault(name, first, f"a function of {last - first + 1} lines, the limit is "
                                        f"{rules.MAX_FUNCTION_LINES}")

    def check_status_lists(self, name):
        """An initializer list evaluates every check in it before the loop looks at the first."""
        if name.startswith("tests/"):
            return
        code = self.code[name]
        for match in FOR_LIST.finditer(code):
            body = code[reading.end_of_braces(code, match.end()):]
            is_tested = re.match(rf"\s*\)\s*\{{?\s*if\s*\(\s*!\s*{match.group(2)}\s*\.ok\(\)", body)
            if re.search(r"\bStatus(?:Or\s*<.*>)?\b[\s&]*(?:const\b[\s&]*)?$", match.group(1)) or is_tested:
                self.fault(name, code.count("\n", 0, match.start()) + 1,
                           "a loop over a list of statuses, use ATTENDANT_RETURN_IF_ERROR for each")

    def check_wall_clock(self, name):
        """It may be set while a wait or a timeout lasts."""
        for folder, pattern, instead in WALL_CLOCK:
            if name.startswith(folder):
                for number, line in enumerate(self.code[name].splitlines(), 1):
                    if match := pattern.search(line):
                        self.fault(name, number, f"{match.group()} follows the wall clock, use {instead}")

    def check_imports(self, name, text):
        for number, line in enumerate(text.splitlines(), 1):
            match = IMPORT.match(line)
            if not match or match.group(1).startswith("google/protobuf/"):
                continue
            if "proto/" + match.group(1) not in self.texts:
                self.fault(name, number, f'imports "{match.group(1)}", which is not in proto/')

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

    def check_folders(self):
        folders = collections.Counter(f.parent.as_posix() for f in self.files + self.pages)
        for folder, count in sorted(folders.items()):
            if count > rules.MAX_FILES:
                self.faults.append(f"{folder}: holds {count} files, the limit is {rules.MAX_FILES}")

    def check_links(self):
        for page in self.pages:
            for number, path, anchor in reading.links(self.texts[page.as_posix()]):
                target = (self.root / page.parent / path).resolve() if path else self.root.resolve() / page
                if not target.exists():
                    self.fault(page.as_posix(), number, f"a link to {path}, which does not exist")
                elif anchor and target.suffix == ".md" and anchor not in reading.anchors(target.read_text("utf-8")):
                    self.fault(page.as_posix(), number, f"a link to #{anchor}, which {path or 'the page'} does not have")

    def check_quoted_paths(self):
        """A path that begins with a folder beside the page, or of the tree, leads to a file, perhaps to x.h by x."""
        for page in self.pages:
            for number, path in reading.quoted_paths(self.texts[page.as_posix()]):
                first = path.split("/")[0]
                bases = [b for b in (self.root / page.parent, self.root) if (b / first).is_dir() and first != "build"]
                if bases and not any((b / path).exists() or list(b.glob(path + ".*")) for b in bases):
                    self.fault(page.as_posix(), number, f"the path {path}, which does not exist")

    def check_permissions(self):
        """Permissions that nothing uses, after check(). Tests may use everything."""
        for module, allowed in rules.TABLE.items():
            unused = [p for p in allowed.modules if not any(covers(p, m) for m in self.arrows[module])]
            unused += (allowed.libraries | allowed.private) - self.libraries[module]
            for permission in sorted(unused) if module != "tests" else ():
                self.faults.append(f"tests/structure/rules.py: {module} may include {permission}, but does not")
        return self.faults


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    tree = Tree(root)
    tree.check()
    faults = tree.check_permissions()
    for fault in faults:
        print(fault)
    print(f"{len(tree.files)} files, {len(faults)} faults")
    return 1 if faults or not tree.files else 0


if __name__ == "__main__":
    sys.exit(main())
