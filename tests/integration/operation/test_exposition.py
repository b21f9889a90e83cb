# SPDX-License-Identifier: Apache-2.0
"""The reader of metrics pages is strict: what Prometheus would refuse, it refuses."""

import pytest

from harness import exposition

COUNTER = "# HELP a_total Things.\n# TYPE a_total counter\n"
HISTOGRAM = "# HELP h Times.\n# TYPE h histogram\n"
BUCKETS = 'h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 3\nh_sum 4.5\nh_count 3\n'


def test_values():
    page = exposition.Page(COUNTER + 'a_total{x="1",y="q\\"\\\\\\n"} 2\na_total{x="2"} 3\n' + HISTOGRAM + BUCKETS)
    assert page.value("a_total") == 5
    assert page.value("a_total", x="2") == 3
    assert page.value("h_bucket", le="1") == 2
    assert page.label_values("x") == {"1", "2"}


@pytest.mark.parametrize("page", [
    COUNTER + "a_total 1",
    COUNTER + "a_total 1\na_total 1\n",
    COUNTER + 'a_total{x="1",x="2"} 1\n',
    COUNTER + "a_total{x=1} 1\n",
    COUNTER + 'a_total{x="a"b"} 1\n',
    COUNTER + "a_total one\n",
    COUNTER + "a_total -1\n",
    COUNTER + "b_total 1\n",
    COUNTER + "a_total 1\n" + COUNTER,
    "a_total 1\n",
    "# TYPE a_total counter\na_total 1\n",
    "# HELP a_total Things.\n# TYPE a_total number\na_total 1\n",
    HISTOGRAM,
    HISTOGRAM + BUCKETS.replace("h_count 3", "h_count 4"),
    HISTOGRAM + BUCKETS.replace('le="1"} 2', 'le="1"} 9'),
    HISTOGRAM + 'h_bucket{le="1"} 2\nh_sum 1\nh_count 2\n',
])
def test_faults_are_found(page):
    with pytest.raises((AssertionError, ValueError)):
        exposition.parse(page)
