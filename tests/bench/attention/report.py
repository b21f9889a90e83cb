# SPDX-License-Identifier: Apache-2.0
"""Makes tables and a plot of attention_compare's lines. compare.sh runs it.

    report.py LINES OUTPUT_FOLDER [--page FILE]
"""

import argparse
import json
import pathlib

import plot
import series

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def text_of_time(seconds):
    milliseconds = seconds * 1e3
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def text_of_ratio(ratio):
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"


def text_of_slope(exponent):
    return "–" if exponent is None else f"{round(exponent, 2) + 0.0:.2f}"  # no -0.00


def text_of_bytes(count):
    mebibytes = count / 2**20
    return f"{mebibytes:,.0f}" if mebibytes >= 10 else f"{mebibytes:.2g}"


def table(found, values_of, text_of):
    lengths = sorted({length for one in found.values() for length in [*one.seconds, *one.cut]})
    rows = ["| | " + " | ".join(f"{length:,}" for length in lengths) + " | slope |",
            "|---|" + "---:|" * (len(lengths) + 1)]
    for one in found.values():
        values = values_of(one)
        cells = [text_of(values[length]) if length in values else f"({one.cut.get(length, '')})" for length in lengths]
        exponent = series.slope(values)
        rows.append(f"| {one.title} | " + " | ".join(cells) + f" | {text_of_slope(exponent)} |")
    return "\n".join(rows)


def ratios(found):
    """Additive attention's time over flash attention's."""
    flash, additive = found["flash"].seconds, found["additive"].seconds
    return {length: additive[length] / flash[length] for length in sorted(flash) if length in additive}


def findings(found):
    flash, weighted = found["flash"], found["scaled_dot_product"]
    by_length = ratios(found)
    lines = []
    behind = [length for length, ratio in by_length.items() if ratio <= 1]
    lines.append(f"- **Dot-product beats additive attention** at {'every length' if not behind else 'most lengths'}: "
                 f"additive takes {min(by_length.values()):.1f} to {max(by_length.values()):.1f} times as long as flash "
                 "(" + ", ".join(f"{ratio:.1f} at {length:,}" for length, ratio in by_length.items()) + ").")
    last = max(weighted.bytes)
    exponent = series.slope(flash.bytes)
    grows = "does not even grow with the length" if exponent < 0.05 else "stays linear, or below"
    lines.append(f"- **Flash attention's memory {grows}**: exponent {text_of_slope(exponent)}, "
                 f"{text_of_bytes(flash.bytes[max(flash.bytes)])} MiB at {max(flash.bytes):,}. With its weights, "
                 f"dot-product attention has {text_of_slope(series.slope(weighted.bytes))}: "
                 f"{text_of_bytes(weighted.bytes[last])} MiB at {last:,}, {text_of_ratio(weighted.bytes[last] / flash.bytes[last])} times flash's.")
    for kind in ("local", "strided", "linear", "linformer"):
        other = found[kind]
        title = other.title[0].upper() + other.title[1:]
        length = series.overtakes(other.seconds, flash.seconds)
        longest = max(set(other.seconds) & set(flash.seconds), default=0)
        if length is None:
            lines.append(f"- **{title}** overtakes exact attention (flash) at no measured length.")
            continue
        always = length == min(flash.seconds)
        lines.append(f"- **{title}** overtakes exact attention (flash) "
                     f"{'before' if always else 'at about'} {length:,.0f} tokens; at {longest:,} it is "
                     f"{text_of_ratio(flash.seconds[longest] / other.seconds[longest])} times as fast.")
    return "\n".join(lines)


def worst_peak(found):
    """How far what the process grew by is from what the operators say, where that is at least 4 MiB."""
    pairs = [(one.peak[length], one.bytes[length]) for one in found.values() for length in one.bytes
             if one.bytes[length] >= 2**22 and one.peak[length] > 0]
    return max((abs(peak / said - 1) for peak, said in pairs), default=None)


def markdown(found):
    worst = worst_peak(found)
    checked = ("" if worst is None else
               f" The process itself grew by as much, within {worst:.1%} (peak resident memory, where it is 4 MiB or "
               "more).")
    return f"""{findings(found)}

Milliseconds of a call, median. Slope: the exponent of the length, by least squares of the logarithms over the upper half of
the measured lengths. In parentheses: not run, since it would take that much, which is beyond the budget (10 s, 2.5 GiB).

{table(found, lambda one: one.seconds, text_of_time)}

Memory beside operands and output, MiB: scratch, and the weights where they are wanted.{checked}

{table(found, lambda one: one.bytes, text_of_bytes)}
"""


def put_into(page, text):
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{text}{END}{after}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lines", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    arguments = parser.parse_args()
    found = series.read(arguments.lines.read_text(encoding="utf-8").splitlines())
    text = markdown(found)
    if arguments.page:
        put_into(arguments.page, text)
    else:
        (arguments.output / "attention.md").write_text(text, encoding="utf-8")
    exponents = {one.kind: {"seconds": series.slope(one.seconds), "bytes": series.slope(one.bytes)}
                 for one in found.values()}
    result = {"kinds": [vars(one) for one in found.values()], "slopes": exponents}
    (arguments.output / "attention.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    plot.draw(found, arguments.output)
    print(text)


if __name__ == "__main__":
    main()
