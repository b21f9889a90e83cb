#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""English texts with the lengths of real traffic, cut from what every Debian machine holds.

    real_texts.py TOKENIZER_JSON OUTPUT      writes OUTPUT as JSON: [{"text": "...", "tokens": 29}, ...]

Sources: the licences of /usr/share/common-licenses and the descriptions of the installed packages. A text begins where a
sentence of them does and ends with the token that fills its length. Lengths are log-normal draws with median 29 tokens,
as spread as gives a mean of 63.5 when cut off at 512; all tokens count, [CLS] and [SEP] too. Their number is prime: a client that takes every n-th text sees them all. Needs
`tokenizers`.
"""

import json
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys

COUNT, MEDIAN, MEAN, SHORTEST, LONGEST = 251, 29, 63.5, 4, 512
SEED = 1
LICENCES = pathlib.Path("/usr/share/common-licenses")


def lens(sigma):
    numbers = random.Random(SEED)
    drawn = [round(numbers.lognormvariate(math.log(MEDIAN), sigma)) for _ in range(COUNT)]
    centre = statistics.median(drawn)  # the sample's own median onto MEDIAN
    return [min(max(round(length * MEDIAN / centre), SHORTEST), LONGEST) for length in drawn]


def spread():
    """The sigma at which the sample's mean is MEAN, by bisection."""
    low, high = 0.1, 3.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if statistics.mean(lens(middle)) < MEAN else (low, middle)
    return high


def passages():
    """The sources' words, without line breaks and drawn lines."""
    for path in sorted(LICENCES.iterdir()):
        if not path.is_symlink():
            yield path.read_text(errors="replace")
    query = ["dpkg-query", "--show", "--showformat", "${Description}\n\n"]
    for description in sorted(set(subprocess.run(query, stdout=subprocess.PIPE, check=True).stdout.decode(
            errors="replace").split("\n\n"))):
        yield description


def words():
    for passage in passages():
        yield from (word for word in passage.split() if re.search(r"\w", word))


def cut(source, wanted, tokenizer):
    """One text for each length, from places spread over all of the source."""
    starts = [0, *(i + 1 for i, word in enumerate(source) if word.endswith("."))]
    numbers = random.Random(SEED)
    for length in wanted:
        begin = numbers.choice([start for start in starts if start + length < len(source)])
        text = " ".join(source[begin:begin + length])
        encoding = tokenizer.encode(text)
        last = encoding.offsets[min(length - 2, len(encoding) - 2)][1]  # the last token before [SEP]
        text = text[:last]
        yield {"text": text, "tokens": len(tokenizer.encode(text))}


def main():
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(sys.argv[1])
    tokenizer.no_padding()
    tokenizer.no_truncation()
    texts = list(cut(list(words()), lens(spread()), tokenizer))
    pathlib.Path(sys.argv[2]).write_text(json.dumps(texts, indent=0) + "\n")
    found = [text["tokens"] for text in texts]
    print(f"{len(texts)} texts: mean {statistics.mean(found):.1f} tokens, median {statistics.median(found):g}, "
          f"{min(found)} to {max(found)}")


if __name__ == "__main__":
    main()
