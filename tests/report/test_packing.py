import base64

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from costa.report.packing import pack_edges, pack_points, pack_whole


def unpack(text):
    values, value, shift = [], 0, 0
    for byte in base64.b64decode(text):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    return values


@given(st.lists(st.integers(0, 2**53)))
def test_whole_numbers_come_back(values):
    assert unpack(pack_whole(values)) == values


@given(st.integers(1, 12), st.data())
def test_edges_come_back(n, data):
    pairs = data.draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))))
    edges = {(a, b) for a, b in pairs if a < b}
    both = np.array([*edges, *((b, a) for a, b in edges)], dtype=np.int64).reshape(-1, 2).T
    stream, found = iter(unpack(pack_edges(both, n))), set()
    for node in range(n):
        other = node
        for _ in range(next(stream)):
            other += next(stream)
            found.add((node, other))
    assert found == edges
    assert next(stream, None) is None


def test_points_keep_their_proportions():
    points = np.array([[-3, 10], [5, 10], [1, 12]], dtype=np.float32)
    packed = np.frombuffer(base64.b64decode(pack_points(points)), "<u2").reshape(-1, 2).astype(float)
    assert np.ptp(packed[:, 0]) == 65535
    np.testing.assert_allclose(packed[2] - packed[0], np.array([4, 2]) / 8 * 65535, atol=1)


def test_points_in_one_place_are_in_the_middle():
    packed = np.frombuffer(base64.b64decode(pack_points(np.ones((3, 2), np.float32))), "<u2")
    assert set(packed.tolist()) == {32768}
