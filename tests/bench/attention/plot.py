# SPDX-License-Identifier: Apache-2.0
"""Time and memory over length, both axes logarithmic, every line labelled at its end."""

import math

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "attendant"  # the same file for the same numbers
matplotlib.rcParams["font.family"] = "DejaVu Sans"

import matplotlib.pyplot as plt  # noqa: E402

# Colour says what a kind does with scores: all by dot products, all by tanh, some only, none.
STYLES = {
    "scaled_dot_product": ("#0b3c8c", "-", "dot-product, with weights"),
    "flash": ("#1f77d0", "-", "flash"),
    "multi_head": ("#555555", "-", "multi-head, projections too"),
    "luong_dot": ("#58a6e8", "--", "Luong dot"),
    "luong_general": ("#58a6e8", ":", "Luong general"),
    "additive": ("#c0392b", "-", "additive"),
    "luong_concat": ("#e67e73", "--", "Luong concat"),
    "local": ("#1a8f4a", "-", "local, window ±128"),
    "strided": ("#6cbf52", "-", "strided, √n"),
    "linear": ("#e08a00", "-", "linear"),
    "linformer": ("#8e44ad", "-", "Linformer, 256 keys"),
}


def spread(wanted, gap, low, high):
    """Places near the wanted ones (ascending), at least `gap` apart and within [low, high]."""
    groups = [[place, 1] for place in wanted]  # centre, members
    merged = True
    while merged:
        merged = False
        for i in range(len(groups) - 1):
            (a, n), (b, m) = groups[i], groups[i + 1]
            if b - a < gap * (n + m) / 2:
                groups[i:i + 2] = [[(a * n + b * m) / (n + m), n + m]]
                merged = True
                break
    places = []
    for centre, members in groups:
        half = gap * (members - 1) / 2
        centre = min(max(centre, low + half), high - half)
        places += [centre - half + gap * i for i in range(members)]
    return places


def draw_lines(axes, found, values_of, title, unit):
    lengths = sorted({length for one in found.values() for length in [*one.seconds, *one.cut]})
    ends = []
    for kind, (color, style, name) in STYLES.items():
        if kind not in found or not values_of(found[kind]):
            continue
        values = values_of(found[kind])
        x = sorted(values)
        axes.plot(x, [values[length] for length in x], color=color, linestyle=style, linewidth=1.7, marker="o",
                  markersize=3, zorder=3)
        if found[kind].cut:
            axes.plot(x[-1], values[x[-1]], marker="x", color=color, markersize=8, markeredgewidth=2, zorder=4)
        ends.append((math.log10(values[x[-1]]), x[-1], color, name))
    if any(one.cut for one in found.values()):
        axes.text(0.98, 0.02, "× longer is beyond the budget", transform=axes.transAxes, color="#555555", fontsize=8.5,
                  ha="right", va="bottom")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(lengths[0] / 1.15, lengths[-1] * 1.15)
    axes.set_xticks(lengths, [f"{length:,}" for length in lengths], fontsize=8.5)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axes.tick_params(axis="y", labelsize=8.5)
    axes.grid(color="#e8e8e8", linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
    axes.set_xlabel("tokens of the sequence", fontsize=9)
    axes.set_ylabel(unit, fontsize=9)
    label_ends(axes, sorted(ends), lengths[-1])


def label_ends(axes, ends, longest):
    low, high = (math.log10(limit) for limit in axes.get_ylim())
    places = spread([end[0] for end in ends], (high - low) * 0.042, low, high)
    for (end, x, color, name), place in zip(ends, places):
        axes.annotate("", xy=(x, 10**end), xytext=(longest * 1.32, 10**place), annotation_clip=False,
                      arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.6, "alpha": 0.6,
                                  "shrinkA": 0, "shrinkB": 2})
        axes.text(longest * 1.38, 10**place, name, color=color, fontsize=8.5, va="center", clip_on=False)


def draw(found, folder):
    figure, (time, memory) = plt.subplots(1, 2, figsize=(13.2, 5.8))
    draw_lines(time, found, lambda one: {n: s * 1e3 for n, s in one.seconds.items()}, "Time of a call", "milliseconds")
    draw_lines(memory, found, lambda one: {n: b / 2**20 for n, b in one.bytes.items()},
               "Memory beside operands and output", "MiB")
    figure.subplots_adjust(left=0.055, right=0.865, wspace=0.52, bottom=0.1, top=0.93)
    figure.savefig(folder / "attention.svg", metadata={"Date": None})
    figure.savefig(folder / "attention.png", dpi=130, metadata={"Software": None})
    plt.close(figure)
