# SPDX-License-Identifier: Apache-2.0
"""Reads C++ and Markdown just well enough for structure.py: no comments, no literals, types, functions, links."""

import re

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
NOT_CODE = re.compile(r"^\s*(?:#(?:[^\n\\]|\\.)*|(?:public|protected|private)\s*:)", re.MULTILINE | re.DOTALL)
SCOPE = re.compile(r'\s*(?:template\s*<[^{]*>\s*)?(?:inline\s+)?'
                   r'(?:(?:namespace|class|struct|union|enum)\b|extern\s*"")')
# Comments, strings and character literals (not the digit separator of 1'000), in one pass.
BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)
# A type's definition or alias. clang-format indents all but those of a namespace.
TYPE = re.compile(r"^([ \t]*)(?:template\s*<[^;{]*?>\s*)?(?:(?:class|struct|enum(?: class)?)\s+(?:alignas\([^)]*\)\s*)?"
                  r"([A-Z]\w+)\b(?=[^;()]*\{)|using\s+([A-Z]\w+)\s*=)", re.MULTILINE)
# A type's use: neither a member nor a name of another namespace.
NAME = re.compile(r"(?:(\w+)::|(?:\.|->)\s*)?\b([A-Z]\w*[a-z]\w*)\b")
# A constant of a namespace, and any mention of one's name that declares it.
CONSTANT = re.compile(r"^(?:inline\s+)?constexpr\b[^;{}()=]*?\b(k[A-Z]\w*)\b(?=[\[\]\w\s]*[={])", re.MULTILINE)
CONSTANT_USE = re.compile(r"(?:(\w+)::|(?:\.|->)\s*)?\b(k[A-Z]\w*)\b")
# What else a name may be: a type without a definition, a template parameter, a function, a constant of a block.
OTHER = re.compile(r"\b(?:class|struct|typename(?:\.\.\.)?)\s+([A-Z]\w*)\s*[;,>=]|"
                   r"(?<!return)(?<!new)[\w>][&*\s]+([A-Z]\w*)\(|\b(k[A-Z]\w*)\b(?:\[[^\]]*\])*\s*=")
# A namespace, a function or a variable of one: clang-format indents what belongs to a class or a block.
NAMESPACE = re.compile(r"^(?:inline )?namespace(?: ([\w:]+))? \{$", re.MULTILINE)
FUNCTION = re.compile(r"^(?!return\b|using\b|else\b|friend\b)[A-Za-z][\w:<>,&*\s]*?[\s&*]([A-Z]\w*)\(", re.MULTILINE)
VARIABLE = re.compile(r"^(?:[a-z]+ )*?const(?:expr|init)?\b[^;{}()=]*?\b(k[A-Z]\w*)\b(?=[\[\]\w\s]*[={(])",
                      re.MULTILINE)
LIBRARY = re.compile(r"^attendant_library\(([^()]*)\)", re.MULTILINE)
QUOTED_PATH = re.compile(r"`(\w[\w.-]*(?:/[\w.{},-]+)+)`")
LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)


def includes(text):
    """(line, whether in quotes, path) of every include."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1) == '"', match.group(2)


def blank(text):
    """The text with comments and literals emptied; lines stay where they are."""
    def keep_lines(match):
        edge = '""' if match.group(0)[0] in "\"'R" else ""
        return edge + "\n" * match.group(0).count("\n")
    return BLANKED.sub(keep_lines, text)


def types(code):
    """(name, whether it stands directly in a namespace) of every type that blanked code defines."""
    for match in TYPE.finditer(code):
        yield match.group(2) or match.group(3), not match.group(1)


def constants(code):
    """The names of the constants that blanked code defines directly in a namespace."""
    return CONSTANT.findall(code)


def others(code):
    """The names that blanked code declares as something else than a type or a constant of a namespace."""
    return {name for match in OTHER.finditer(code) for name in match.groups() if name}


def namespaces(code, base=()):
    """(path, begin, end) of every namespace of blanked code; a namespace without a name is None in its path."""
    match = NAMESPACE.search(code)
    while match:
        end = end_of_braces(code, match.end() - 1)
        path = base + ((match.group(1),) if match.group(1) != "attendant" else ())
        yield path, match.end(), end
        for inner, first, last in namespaces(code[match.end():end], path):
            yield inner, match.end() + first, match.end() + last
        match = NAMESPACE.search(code, end)


def parameters(code, start):
    """The types of a function's parameters, whose list begins at start."""
    parts, depth = [""], 1
    for char in code[start:]:
        depth += (char in "(<[{") - (char in ")>]}")
        if depth == 0:
            break
        if char == "," and depth == 1:
            parts.append("")
        else:
            parts[-1] += char
    kinds = [re.sub(r"\s*=.*", "", " ".join(part.split())) for part in parts]
    return ", ".join(re.sub(r"(?<=[\s&*>])[a-z_]\w*$", "", kind).strip() for kind in kinds)


def definitions(code):
    """{(namespaces, name or signature): line} of the types, functions and variables that blanked code has directly in
    namespaces."""
    found = {}
    places = list(namespaces(code))
    for pattern in (TYPE, FUNCTION, VARIABLE):
        for match in pattern.finditer(code):
            if pattern is TYPE and match.group(1):
                continue
            name = match.group(2) or match.group(3) if pattern is TYPE else match.group(1)
            if pattern is FUNCTION:
                name += f"({parameters(code, match.end())})"
            around = [path for path, first, last in places if first <= match.start() < last]
            if around:
                found.setdefault((around[-1], name), code.count("\n", 0, match.start()) + 1)
    return found


def library_sources(text):
    """For each attendant_library of a CMakeLists.txt, its sources that a unity build takes together."""
    for match in LIBRARY.finditer(text):
        part, sources = None, []
        for word in re.sub(r"#[^\n]*", "", match.group(1)).split():
            if word in ("SOURCES", "ALONE", "PUBLIC", "PRIVATE", "PCH"):
                part = word
            elif part == "SOURCES" and word.endswith(".cc"):
                sources.append(word)
        yield sources


def names(code, pattern=NAME):
    """The names in blanked code that may be types of this project, or with CONSTANT_USE its constants, with the line of
    their first use."""
    found = {}
    for match in pattern.finditer(code):
        scope = match.group(1)
        if match.group(0).startswith((".", "-")) or scope not in (None, "attendant", "client"):
            continue
        found.setdefault(match.group(2), match.start())
    return {name: code.count("\n", 0, at) + 1 for name, at in found.items()}


def end_of_braces(code, start):
    """The end of the block in braces that begins at start."""
    depth = 0
    for at in range(start, len(code)):
        depth += (code[at] == "{") - (code[at] == "}")
        if depth == 0:
            return at + 1
    return len(code)


def function_bodies(code):
    """First and last line of every brace block of blanked code that stands directly in a namespace or class, and is
    neither of these itself nor an initializer."""
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


def links(text):
    """(line, path, anchor) of every relative link of a Markdown page."""
    for number, line in enumerate(text.splitlines(), 1):
        for target in LINK.findall(line):
            if not re.match(r"[a-z]+:", target):
                path, _, anchor = target.partition("#")
                yield number, path, anchor


def quoted_paths(text):
    """(line, path) of every `folder/file` in back quotes on a Markdown page; `a.{h,cc}` counts as two."""
    for number, line in enumerate(text.splitlines(), 1):
        for quoted in QUOTED_PATH.findall(line):
            choice = re.search(r"\{([\w,]+)\}", quoted)
            for ending in choice.group(1).split(",") if choice else [""]:
                yield number, quoted.replace(choice.group(0), ending) if choice else quoted


def anchors(text):
    """The anchors that GitHub gives to the headings of a page."""
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in HEADING.findall(text)}
