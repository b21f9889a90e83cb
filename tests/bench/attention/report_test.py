# SPDX-License-Identifier: Apache-2.0
"""What needs neither a measurement nor matplotlib."""

import json
import unittest

import series


def line(kind, length, **fields):
    return json.dumps({"kind": kind, "title": kind, "formula": "", "len": length} | fields)


class SeriesTest(unittest.TestCase):
    def test_reads_measurements_and_cuts(self):
        found = series.read([
            line("flash", 128, seconds=0.5, calls=1, scratch_bytes=10, weights_bytes=5, peak_bytes=16),
            line("flash", 256, cut="time: up to 99 s")])
        self.assertEqual(found["flash"].seconds, {128: 0.5})
        self.assertEqual(found["flash"].bytes, {128: 15})
        self.assertEqual(found["flash"].cut, {256: "time: up to 99 s"})

    def test_slope_is_of_the_upper_half(self):
        values = {1: 7.0, 2: 7.0, 4: 16.0, 8: 64.0}  # flat below, n^2 above
        self.assertAlmostEqual(series.slope(values), 2)
        self.assertIsNone(series.slope({128: 1.0}))

    def test_least_squares_weighs_every_length(self):
        # Logarithms of 2: (0, 0), (1, 1), (2, 1), (3, 2) lie about a line that rises by 0.6.
        upper = {8: 1.0, 16: 2.0, 32: 2.0, 64: 4.0}
        self.assertAlmostEqual(series.slope({1: 9.0, 2: 9.0, 3: 9.0, 4: 9.0} | upper), 0.6)

    def test_overtaking_is_where_the_lines_cross(self):
        quadratic = {n: n * n / 1000 for n in (100, 1000, 10000)}
        linear = {n: series.MARGIN * n / 2 for n in (100, 1000, 10000)}  # within the margin from 500 on
        self.assertAlmostEqual(series.overtakes(linear, quadratic), 500)
        self.assertIsNone(series.overtakes(quadratic, linear))
        self.assertEqual(series.overtakes({1: 1.0, 2: 1.0}, {1: 3.0, 2: 3.0}), 1)

    def test_overtaking_counts_from_where_it_stays_so(self):
        slower = {1: 1.0, 2: 1.0, 4: 1.0, 8: 1.0}
        ahead = {1: 0.5, 2: series.MARGIN * 2, 4: series.MARGIN / 2, 8: 0.5}
        self.assertAlmostEqual(series.overtakes(ahead, slower), 2 * 2**0.5)

    def test_a_little_faster_is_noise(self):
        self.assertIsNone(series.overtakes({1: 0.97, 2: 0.97}, {1: 1.0, 2: 1.0}))


if __name__ == "__main__":
    unittest.main()
