"""`Matrix`: views, slices, operators, conversions, files, pickles."""

import copy
import itertools
import pickle
from fractions import Fraction

import gmpy2
import mpmath
import numpy as np
import pytest
from conftest import BITS, positive_definite, random_rows, round_to

import sunzi

ROWS = random_rows(6, 5, 100, seed=1)
SLICES = [0, 2, -1, slice(None), slice(1, 4), slice(None, None, -1), slice(4, 0, -2), slice(3, 3), slice(-3, None)]


@pytest.fixture
def matrix() -> sunzi.Matrix:
    return sunzi.Matrix(ROWS, precision=BITS)


@pytest.mark.parametrize("rows, cols", list(itertools.product(SLICES, SLICES)))
def test_slices_are_those_of_numpy(matrix: sunzi.Matrix, rows: object, cols: object) -> None:
    array = np.array(ROWS, dtype=object)
    two_dimensional = [slice(key, key + 1 or None) if isinstance(key, int) else key for key in (rows, cols)]
    for view, whole in ((matrix, array), (matrix.T, array.T), (matrix[1:, :4], array[1:, :4])):
        part = view[rows, cols]
        if isinstance(rows, int) and isinstance(cols, int):
            assert part == whole[rows, cols] and isinstance(part, Fraction)
        else:
            want = whole[tuple(two_dimensional)]
            assert part.shape == want.shape and part.to_list() == want.tolist()
            assert part.T.to_list() == want.T.tolist()


def test_shape_and_text(matrix: sunzi.Matrix) -> None:
    assert matrix.shape == (6, 5) and matrix.T.shape == (5, 6) and len(matrix) == 6
    assert repr(matrix).startswith("Matrix([[") and repr(matrix).endswith("]], precision=200, numbers='fraction')")
    assert str(matrix).startswith("6 x 5 matrix of 200-bit floats\n")
    assert matrix.nbytes == 6 * 5 * 8 * (1 + 4)
    assert matrix[2].to_list() == [ROWS[2]] and matrix[1:3].shape == (2, 5)
    assert [row.to_list()[0] for row in matrix] == ROWS
    with pytest.raises(TypeError, match="unhashable"):
        hash(matrix)


def test_transpose_twice(matrix: sunzi.Matrix) -> None:
    assert matrix.T.T == matrix and matrix.T != matrix
    assert matrix.T.to_list() == [list(col) for col in zip(*ROWS)]


def test_views_keep_their_numbers() -> None:
    view = sunzi.Matrix(ROWS, precision=BITS)[1:3, 2:4]
    assert view.to_list() == [row[2:4] for row in ROWS[1:3]]
    assert view.nbytes == 6 * 5 * 40 and view.copy().nbytes == 4 * 40 and view.copy() == view


def test_operators(matrix: sunzi.Matrix) -> None:
    other = sunzi.Matrix(random_rows(6, 5, 100, seed=2), precision=300)
    total = matrix + other
    assert total.precision == 300
    entries = [[round_to(x + y, 300) for x, y in zip(*rows)] for rows in zip(ROWS, other.to_list())]
    assert total.to_list() == entries
    assert total - other == matrix and -(-matrix) == matrix
    assert (matrix - matrix).to_list() == [[0] * 5] * 6
    assert (2 * matrix).to_list() == (matrix * 2).to_list() == [[2 * x for x in row] for row in ROWS]
    assert (matrix * gmpy2.mpfr("0.5")).to_list() == [[x / 2 for x in row] for row in ROWS]
    assert matrix.T + other.T == total.T
    assert matrix + ROWS == matrix * 2 == ROWS + matrix
    assert ROWS - matrix == matrix - matrix


def test_products_with_other_kinds(matrix: sunzi.Matrix) -> None:
    vector = [1, 2, 3, 4, 5]
    want = [sum(x * y for x, y in zip(row, vector)) for row in ROWS]
    assert [row[0] for row in (matrix @ vector).to_list()] == [round_to(x, BITS) for x in want]
    array = np.array([[1.0] * 6])
    left = array @ matrix
    assert isinstance(left, sunzi.Matrix) and left.shape == (1, 5) and left.numbers == "float"
    right = matrix @ np.array([[1.0]] * 5)
    assert isinstance(right, sunzi.Matrix) and right.shape == (6, 1)
    assert isinstance([[1] * 6] @ matrix, sunzi.Matrix)
    assert (np.float64(2.0) * matrix) == matrix * 2


def test_results_stay_matrices() -> None:
    a = sunzi.Matrix(positive_definite(7, seed=3), precision=BITS, numbers="mpmath")
    factor = a.cholesky()
    assert isinstance(factor, sunzi.Matrix) and factor.numbers == "mpmath" and isinstance(a[0, 0], mpmath.mpf)
    b = sunzi.Matrix.identity(7, precision=BITS)
    x = a.solve(b)
    assert isinstance(x, sunzi.Matrix)
    assert max(abs(v - (i == j)) for i, r in enumerate((a @ x).to_list("fraction")) for j, v in enumerate(r)) < 2**-180
    assert a.T.cholesky() == factor == a.cholesky(uplo="upper").T == a.cholesky(uplo="lower")
    assert isinstance(sunzi.syrk(a), sunzi.Matrix) and isinstance(sunzi.trsm(factor, b), sunzi.Matrix)
    assert sunzi.syrk(a) == sunzi.syrk(a).T == a.T @ a


def test_rounding() -> None:
    third = sunzi.Matrix([[Fraction(1, 3)]], precision=500)
    for bits in (2, 64, 65, 128, 499, 500, 501):
        assert third.rounded(bits).precision == bits
        assert third.rounded(bits=bits)[0, 0] == round_to(third[0, 0], bits)
    assert sunzi.Matrix(third, precision=77)[0, 0] == round_to(third[0, 0], 77)
    assert sunzi.Matrix(third).precision == 500


@pytest.mark.parametrize("digits", [-400, -3, -1, 0, 1, 2, 3, 17, 60, 400, 2000])
def test_rounding_to_decimals_is_that_of_fractions(digits: int) -> None:
    ties = [Fraction(1, 2), Fraction(3, 2), Fraction(-5, 2), Fraction(1, 8), Fraction(3, 8), Fraction(25), Fraction(35)]
    values = ties + [Fraction(1, 3), Fraction(-2, 3), Fraction(0), Fraction(10) ** 60 + 5, Fraction(1, 10**500)]
    matrix = sunzi.Matrix([values], precision=BITS)
    held = matrix.to_list()[0]
    # Python's rounding of fractions is exact, to nearest, ties to even.
    want = [round_to(Fraction(round(x, digits)), BITS) for x in held]
    for rounded in (matrix.round(digits), round(matrix, digits), matrix.round(ndigits=digits)):
        assert rounded.to_list() == [want] and rounded.precision == BITS
    assert matrix.T.round(digits) == matrix.round(digits).T
    assert round(matrix) == matrix.round() == matrix.round(0)


def test_rounding_to_decimals_as_numpy_does() -> None:
    array = np.array([[1.2345, -0.5], [2.5, 1e300]])
    assert sunzi.Matrix(array).round(3).to_numpy().tolist() == array.round(3).tolist()
    assert round(sunzi.Matrix([["1e-100000000"]], precision=60), 5)[0, 0] == "0"
    assert sunzi.Matrix([["1e100000000"]], precision=60).round(5) == sunzi.Matrix([["1e100000000"]], precision=60)
    with pytest.raises(TypeError):
        sunzi.Matrix(array).round(1.5)


def test_indices_beyond_the_machine_are_index_errors(matrix: sunzi.Matrix) -> None:
    for key in ((1 << 70, 0), (0, -(1 << 70)), 1 << 64):
        with pytest.raises(IndexError, match="is out of range for a matrix with [56]"):
            matrix[key]
        with pytest.raises(IndexError):
            matrix[key] = 1
    with pytest.raises(TypeError, match="a row index must be .* its type is str"):
        matrix["a"]


LISTS = [
    [0, 2],
    [2, 0, 2, -1],
    [],
    range(1, 4),
    (1, 3),
    np.array([3, -2, 0]),
    [True, False, True, True, False],
    np.array([False, True, False, True, True]),
    [np.True_, False, False, False, np.True_],
]
"""For a matrix of five rows and columns."""


@pytest.mark.parametrize("chosen", LISTS, ids=str)
def test_lists_and_masks_choose_as_in_numpy(chosen: object) -> None:
    rows = random_rows(5, 5, 100, seed=4)
    matrix, array = sunzi.Matrix(rows, precision=BITS), np.array(rows, dtype=object)
    key = np.array(list(chosen), dtype=bool if len(chosen) == 5 else int)  # type: ignore[arg-type, call-overload]
    for ours, whole in ((matrix, array), (matrix.T, array.T)):
        if not isinstance(chosen, tuple):  # a tuple is a pair of indices
            assert ours[chosen].to_list() == whole[key].tolist()
        assert ours[chosen, :].to_list() == whole[key].tolist() and ours[chosen, :].shape == whole[key].shape
        assert ours[:, chosen].to_list() == whole[:, key].tolist()
        assert ours[1:4, chosen].to_list() == whole[1:4, key].tolist()
        assert ours[chosen, ::2].to_list() == whole[key, ::2].tolist()
        for single, entries in ((ours[chosen, 3], whole[key, 3]), (ours[3, chosen], whole[3, key])):
            assert list(single) == entries.tolist() and len(single) == len(entries)
        assert list(ours[chosen, chosen]) == whole[key, key].tolist(), "pairs, as two lists are in NumPy"
        assert ours[np.ix_(key, key)].to_list() == whole[np.ix_(key, key)].tolist()


def test_masks_of_two_dimensions_and_assignment() -> None:
    rows = random_rows(4, 5, 100, seed=5)
    matrix, array = sunzi.Matrix(rows, precision=BITS), np.array(rows, dtype=object)
    mask = array > 0
    assert 0 < mask.sum() < 20
    for key in (mask, mask.tolist()):
        assert list(matrix[key]) == array[mask].tolist() and matrix[key].shape == (int(mask.sum()), 1)
    assert matrix[~mask].T.shape == (1, 20 - int(mask.sum()))
    assignments: list[tuple[object, object]] = [
        (mask, 0),
        ([0, 2], [[1] * 5, [2] * 5]),
        ((slice(None), [4, 0]), [[3, 4]] * 4),
        (([0, 1, 3], [1, 2, 3]), [7, 8, 9]),
        (([3, 3], [0, 1]), 5),
        (np.array([False, True, False, False]), 6),
        ((2, [1, 3]), [10, 11]),
        (~mask, list(range(int((~mask).sum())))),
    ]
    for key, value in assignments:
        matrix[key] = value
        array[key] = value  # type: ignore[index]
        assert matrix.to_list() == array.tolist()


def test_lists_that_choose_nothing_right(matrix: sunzi.Matrix) -> None:
    refusals: list[tuple[object, str]] = [
        ([0, 6], "row 6 is out of range for a matrix with 6 rows"),
        ((0, [5]), "column 5 is out of range for a matrix with 5 columns"),
        ([True, False], "a mask of 2 rows is given for a matrix with 6 rows"),
        ([True, 1, False, False, False, False], "holds both bool and integers"),
        (([0, 1, 2], [0, 1]), r"3 rows and 2 columns are listed: .* use a\[rows\]\[:, cols\] or numpy.ix_"),
        (np.ones((2, 2), dtype=bool), "the mask is 2 x 2, but the matrix is 6 x 5"),
        ([[0, 1], [2, 3]], "must be a mask of True and False"),
        (([[0, 1]], 0), "a list of rows must have one dimension, but it has 2"),
    ]
    for key, message in refusals:
        with pytest.raises(IndexError, match=message):
            matrix[key]
        with pytest.raises(IndexError):
            matrix[key] = 1
    with pytest.raises(ValueError, match="1 x 2 matrix is assigned to 2 x 5 entries"):
        matrix[[0, 1]] = [[1, 2]]


def test_equality_is_of_numbers() -> None:
    one = sunzi.Matrix([[1, 0.5]], precision=53)
    assert one == sunzi.Matrix([["1", "0.5"]], precision=900)
    assert one != sunzi.Matrix([[1, -0.5]], precision=53) and one == [[1, 0.5]] and one != one.T
    assert (one == 3) is False


def test_conversions(matrix: sunzi.Matrix) -> None:
    assert matrix.to_numpy().dtype == object and matrix.to_numpy().tolist() == ROWS
    doubles = matrix.to_numpy("float")
    assert doubles.dtype == np.float64 and doubles.tolist() == [[float(x) for x in row] for row in ROWS]
    assert np.asarray(matrix).tolist() == ROWS
    assert np.asarray(matrix.astype("float"), dtype=np.float32).dtype == np.float32
    assert matrix.to_mpmath().rows == 6 and matrix.T.to_flint().nrows() == 5
    assert matrix.astype("str")[0, 0] == matrix.to_list("str")[0][0]
    doubles[0, 0] = 1  # writable


def test_zeros_and_identity() -> None:
    assert sunzi.Matrix.zeros(2, 3, precision=60).to_list() == [[0, 0, 0], [0, 0, 0]]
    assert sunzi.Matrix.identity(2, precision=60, numbers="float").to_list() == [[1.0, 0.0], [0.0, 1.0]]
    assert sunzi.eye(3, precision=60) == sunzi.Matrix.identity(3, precision=60)
    for rows, cols in ((2, 4), (4, 2), (0, 3), (3, 0), (2, 2)):
        eye = sunzi.eye(rows, cols, precision=70, numbers="float")
        assert eye.to_list() == np.eye(rows, cols).tolist() and (eye.precision, eye.numbers) == (70, "float")
    assert sunzi.zeros(2, 1, precision=60) == sunzi.Matrix.zeros(2, 1, precision=60)


@pytest.mark.parametrize("numbers", ["gmpy2", "mpmath", "flint", "float", "str", "fraction"])
def test_pickle_and_copy(numbers: str) -> None:
    matrix = sunzi.Matrix(ROWS, precision=BITS, numbers=numbers)
    for view in (matrix, matrix.T, matrix[1:4, ::2]):
        for other in (pickle.loads(pickle.dumps(view)), copy.copy(view), copy.deepcopy(view)):
            assert other == view and (other.precision, other.numbers) == (BITS, numbers)


@pytest.mark.parametrize("ending", [".mtx", ".bin"])
def test_files(matrix: sunzi.Matrix, tmp_path: object, ending: str) -> None:
    path = tmp_path / f"p{ending}"
    matrix.T.save(path)
    assert sunzi.Matrix.load(path) == matrix.T
    assert sunzi.Matrix.load(str(path), numbers="float")[0, 0] == float(ROWS[0][0])
    with pytest.raises(FileNotFoundError, match="absent"):
        sunzi.Matrix.load(tmp_path / f"absent{ending}")
    with pytest.raises(ValueError, match=r"\.xls"):
        matrix.save(tmp_path / "p.xls")


def test_damaged_bytes(matrix: sunzi.Matrix) -> None:
    data = matrix.to_bytes()
    for damaged in (data[:-1], data[:10], b"", data[:100] + bytes([data[100] ^ 1]) + data[101:], data + b"x"):
        with pytest.raises(ValueError):
            sunzi.Matrix.from_bytes(damaged)


def test_a_matrix_behaves_as_an_array_does() -> None:
    a = sunzi.Matrix([[1, -2], [Fraction(1, 3), 4], [-5, 0]], precision=120)
    third = a[1, 0]
    assert (a.ndim, a.size, a.shape) == (2, 6, (3, 2))
    assert a.tolist() == a.to_list() == [[1, -2], [third, 4], [-5, 0]]
    assert abs(a).to_list() == [[1, 2], [third, 4], [5, 0]]
    assert (a / 2).to_list() == [[Fraction(1, 2), -1], [third / 2, 2], [Fraction(-5, 2), 0]]
    seventh = (a / 7)[0, 0]
    assert abs(seventh - Fraction(1, 7)) <= Fraction(1, 7) / 2**120 and seventh != Fraction(1, 7)
    assert a.trace() == 5 and a.diagonal() == [1, 4] and a.T.diagonal() == [1, 4]
    assert sunzi.Matrix([[2**-200.0, 0], [0, 1]], precision=53).trace() == 1
    assert third in a and -5 in a and 0 in a and 5 not in a and "-2" in a
    with pytest.raises(ZeroDivisionError):
        a / 0
    with pytest.raises(TypeError, match="solve"):
        a / a  # type: ignore[operator]


def test_a_matrix_equals_what_holds_its_numbers() -> None:
    a = sunzi.Matrix([[1, 2], [3, 4]], precision=100)
    for same in ([[1, 2], [3, 4]], np.array([[1.0, 2.0], [3.0, 4.0]]), ((1, 2), (3, 4)), a.rounded(60)):
        assert a == same and not a != same
    for other in ([[1, 2], [3, 5]], np.ones((2, 2)), [[1, 2, 3]], "1 2 3 4", None, 1, [["x"]]):
        assert a != other
    assert sunzi.Matrix([["0.1"]], precision=70) == [["0.1"]]


def test_matrices_are_stacked() -> None:
    a = sunzi.Matrix([[1, 2], [3, 4]], precision=100)
    assert sunzi.Matrix(list(a)) == a
    b = sunzi.Matrix([["0.1", "0.2"]], precision=200)
    both = sunzi.Matrix([a, b])
    assert both.shape == (3, 2) and both.precision == 200 and both[2:] == b and both[:2] == a
    with pytest.raises(ValueError, match="matrix 1 has 1 columns, but matrix 0 has 2"):
        sunzi.Matrix([a, sunzi.Matrix([[1]], precision=10)])


def test_sizes_that_are_none() -> None:
    for make in (lambda: sunzi.Matrix.identity(-1, precision=10), lambda: sunzi.Matrix.zeros(-1, 2, precision=10)):
        with pytest.raises(ValueError, match="=-1 is out of range"):
            make()
    with pytest.raises(TypeError, match="order=two is of type str"):
        sunzi.Matrix.identity("two", precision=10)  # type: ignore[arg-type]


def test_memory_in_words() -> None:
    assert sunzi.Context(threads=1, memory="2G").memory == 2 << 30
    assert sunzi.Context(threads=1, memory="1.5 MiB").memory == 3 << 19
    assert sunzi.Context(threads=1, memory="4096").memory == 4096
    for wrong in ("much", "-1", "2X", "", "inf"):
        with pytest.raises(ValueError, match=r'is not a number of bytes, such as "2G"'):
            sunzi.Context(threads=1, memory=wrong)
