"""A `Matrix` beside NumPy's arrays: indices, assignment, stacking; more numbers and containers; pickles."""

import copy
import pickle
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from conftest import positive_definite

import sunzi

BITS = 120


def square(order: int = 3) -> sunzi.Matrix:
    return sunzi.Matrix([[10 * row + col for col in range(order)] for row in range(order)], precision=BITS)


def test_rows_and_columns_count_their_entries() -> None:
    a = square()
    assert a[1][2] == 12 == a[1, 2] and a[:, 2][1] == 12 and a[-1][-1] == 22
    assert [list(row) for row in a] == a.to_list() and list(a[:, 1]) == [1, 11, 21]
    assert len(a[0]) == len(a[:, 0]) == 3 and a[0].shape == (1, 3) and a[:, 0].shape == (3, 1)
    assert a[0][1:] == [1, 2] and a[0][1:][0] == 1 and a[1].T[2] == 12 and a[0, 1:][1] == 2
    assert a[1] == [10, 11, 12] and a[:, 1] == [1, 11, 21] and a[1] != [10, 11, 13]
    assert (a[0] + [1, 1, 1])[2] == 3 and (2 * a[1])[0] == 20 and (a[2] - a[2])[0] == 0
    assert sunzi.Matrix(list(a)) == a and sunzi.Matrix([list(row) for row in a], precision=BITS) == a
    assert sunzi.dot(a[0], a[1]) == 35
    for line in (a[1], a[:, 1]):
        other = pickle.loads(pickle.dumps(line))
        assert list(other) == list(copy.copy(line)) == list(line) and other.shape == line.shape
    # A slice is no row: it counts rows.
    assert a[:1][0] == a[0] and len(a[:1]) == 1
    with pytest.raises(IndexError, match="column 3 is out of range for a matrix with 3 columns"):
        a[0][3]


def test_assignment() -> None:
    a, array = square(4), np.array(square(4).to_list(), dtype=object)
    assignments: list[tuple[object, object]] = [
        ((0, 0), Fraction(7, 2)),
        ((-1, 2), 9),
        (1, [4, 5, 6, 7]),
        ((slice(None), 3), [1, 2, 3, 4]),
        ((slice(1, 3), slice(None, None, 2)), [[8, 9], [10, 11]]),
        ((slice(None, None, -1), slice(0, 2)), np.arange(8.0).reshape(4, 2)),
        ((slice(2, 4), slice(2, 4)), 0),
    ]
    for key, value in assignments:
        a[key] = value
        array[key] = value
        assert a.to_list() == array.tolist()
    a[0:2] = a[1:3]
    assert a.to_list()[:2] == array.tolist()[1:3]
    a[0, 0] = Fraction(1, 3)
    assert a[0, 0] == sunzi.Matrix([[Fraction(1, 3)]], precision=BITS)[0, 0] and a.precision == BITS


def test_what_was_taken_keeps_its_numbers() -> None:
    a = square()
    row, transposed, other = a[0], a.T, sunzi.Matrix(a)
    gram = a.T @ a
    a[0, 1] = 99
    assert row == [0, 1, 2] and transposed[1, 0] == 1 and other[0, 1] == 1 and a[0, 1] == 99
    assert gram == other.T @ other != a.T @ a
    other[0, 1] = 5
    assert a[0, 1] == 99
    one = row.copy()
    one[1] = 3
    assert one == [0, 3, 2]


def test_assignments_that_are_refused() -> None:
    a = square()
    for taken in (a[0], a[:, 0], a.T, a[:], a[1:, 1:]):
        with pytest.raises(ValueError, match="assign to the other one"):
            taken[0] = 1
    with pytest.raises(ValueError, match="1 x 2 matrix is assigned to 1 x 3 entries"):
        a[0] = [1, 2]
    with pytest.raises(ValueError, match="the value is NaN"):
        a[0, 0] = float("nan")
    with pytest.raises(IndexError, match="row 3 is out of range for a matrix with 3 rows"):
        a[3, 0] = 1
    with pytest.raises(TypeError, match="the value is of type NoneType"):
        a[0, 0] = None
    assert a == square()


def test_stacking() -> None:
    a, b = square(), sunzi.Matrix([["0.1", "0.2", "0.3"]], precision=300)
    below, beside = sunzi.vstack([a, b, [1, 2, 3], np.ones((1, 3))]), sunzi.hstack([a, b.T, [1, 2, 3]])
    assert below.shape == (6, 3) and below.precision == 300 and below[:3] == a and below[3] == b and below[4, 2] == 3
    assert beside.shape == (3, 5) and beside[:, 3] == b.T and beside[:, 4] == [1, 2, 3]
    beside[0, 0] = 5
    assert a[0, 0] == 0 and sunzi.vstack([a], precision=60).precision == 60
    for parts, message in (([a, [1, 2]], "part 1 has 2 columns, but part 0 has 3"), ([], "the list of matrices to join is empty")):
        with pytest.raises(ValueError, match=message):
            sunzi.vstack(parts)
    with pytest.raises(ValueError, match="part 1 has 1 rows, but part 0 has 3"):
        sunzi.hstack([a, b])
    with pytest.raises(ValueError, match="pass precision="):
        sunzi.vstack([[1, 2]])


def test_decimals() -> None:
    rows = [[Decimal("4.1"), Decimal("2")], [Decimal("2"), Decimal("1e1")]]
    factor = sunzi.cholesky(rows, precision=200)
    assert isinstance(factor[0][0], Decimal) and factor[0][1] == 0
    texts = sunzi.cholesky([[str(x) for x in row] for row in rows], precision=200)
    assert factor == [[Decimal(x) for x in row] for row in texts]
    assert sunzi.syrk([[Decimal(5)], [Decimal("7.0")]], exact=True) == [[Decimal(74)]]
    assert sunzi.Matrix(rows, precision=90)[0, 0] in sunzi.Matrix(rows, precision=90)
    assert sunzi.Matrix([[0.5]], numbers="decimal").to_list() == [[Decimal("0.5")]]
    for number, kind in ((Decimal("nan"), "NaN"), (Decimal("sNaN"), "NaN"), (Decimal("-Infinity"), "infinite")):
        with pytest.raises(ValueError, match=f"row 0, column 0 is {kind}"):
            sunzi.Matrix([[number]], precision=60)


def test_long_doubles() -> None:
    bits = np.finfo(np.longdouble).nmant + 1
    third = np.longdouble(1) / 3
    array = np.array([[third, 2], [-np.finfo(np.longdouble).max / 4, np.ldexp(third, -12000)]], dtype=np.longdouble)
    matrix = sunzi.Matrix(array)
    assert matrix.precision == bits and matrix[0, 0] == third and isinstance(matrix[0, 0], np.longdouble)
    assert Fraction(*third.as_integer_ratio()) == sunzi.Matrix(matrix, numbers="fraction")[0, 0]
    assert matrix.to_numpy().dtype == np.longdouble and (matrix.to_numpy() == array).all()
    assert (np.asarray(sunzi.syrk(np.eye(2, dtype=np.longdouble))) == np.eye(2)).all()
    product = sunzi.gemm(array[:1], array[:1].T)
    assert product.dtype == np.longdouble and abs(product[0, 0] - (4 + third * third)) < 2.0**-60
    for number, kind in ((np.longdouble("nan"), "NaN"), (-np.longdouble("inf"), "infinite")):
        with pytest.raises(ValueError, match=f"row 0, column 0 is {kind}"):
            sunzi.Matrix([[number]])
    with pytest.raises(OverflowError, match="too large for a numpy.longdouble"):
        sunzi.Matrix([["1e9999"]], precision=64, numbers="longdouble")[0, 0]


class Frame:
    """What data frames and tensors have."""

    def __init__(self, array: object) -> None:
        self.array = array

    def __array__(self, dtype: object = None, copy: object = None) -> object:
        return self.array


def test_what_gives_an_array() -> None:
    doubles = np.array([[4.0, 2.0], [2.0, 10.0]])
    assert (sunzi.cholesky(Frame(doubles)) == sunzi.cholesky(doubles)).all()
    assert sunzi.Matrix(Frame(doubles)) == doubles
    assert sunzi.Matrix(Frame(np.array([["0.5"]], dtype=object)), precision=60)[0, 0] == "5.0000000000000000000e-1"
    with pytest.raises(ValueError, match="0 dimensions"):
        sunzi.Matrix(Frame(np.array(1.0)))
    with pytest.raises(TypeError, match="masked"):
        sunzi.Matrix(Frame(np.ma.masked_array([[1.0]], mask=[[True]])))


def test_contexts_are_pickled() -> None:
    context = sunzi.Context(threads=1, memory="3M", kernel=sunzi.kernels()[-1], freivalds=True)
    other = pickle.loads(pickle.dumps(context))
    assert repr(other) == repr(context) and other.memory == 3 << 20
    assert repr(pickle.loads(pickle.dumps(sunzi.Context()))) == repr(sunzi.Context())
    soft = sunzi.Context(threads=1, device=["soft"])
    assert pickle.loads(pickle.dumps(soft)).devices == ["soft"]


@pytest.mark.parametrize("accuracy", ["norm", "entrywise"])
def test_factors_are_pickled(accuracy: str) -> None:
    a = sunzi.Matrix(positive_definite(9, 4), precision=150, numbers="mpmath")
    factor = sunzi.Cholesky(a, accuracy=accuracy)
    other = pickle.loads(pickle.dumps(factor))
    b = [[1, 2]] * 9
    assert other.L == factor.L and other.solve(b) == factor.solve(b) and other.inverse() == factor.inverse()
    assert other.log_det() == factor.log_det() and other.log_det_digits() == factor.log_det_digits()
    given = sunzi.Cholesky.from_factor(factor.L.to_list(), accuracy=accuracy, precision=150)
    assert given.solve(b) == factor.solve(b) and given.L == factor.L
    assert sunzi.Cholesky.from_factor([[2, 7], [1, 3]], precision=60).L.to_list() == [[2, 0], [1, 3]]
    with pytest.raises(sunzi.SingularError, match="index 1"):
        sunzi.Cholesky.from_factor([[2.0, 0.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="1 x 2"):
        sunzi.Cholesky.from_factor([[2.0, 0.0]])


def test_results_beyond_the_exponents() -> None:
    a = sunzi.Matrix([[1, 2], [3, "1e300000000"]], precision=60)
    for work in (lambda: a * "1e300000000", lambda: a / "1e-300000000"):
        with pytest.raises(ValueError, match="exponent 1073741824 at row 1, column 1 is outside"):
            work()


def test_files_in_a_format_of_choice(tmp_path: Path) -> None:
    a = square()
    for name in ("mtx", "bin", "csv", "npy", "json", "m"):
        path = tmp_path / f"numbers-{name}"
        a.save(path, format=name)
        assert sunzi.Matrix.load(path, format=name, precision=BITS) == a
    with pytest.raises(ValueError, match="format='xls' is not valid; use one of mtx, bin"):
        a.save(tmp_path / "a", format="xls")
    with pytest.raises(ValueError, match="does not determine the format"):
        a.save(tmp_path / "a")
    with pytest.raises(ValueError, match="does not state its precision: .*: pass precision="):
        sunzi.Matrix.load(tmp_path / "numbers-csv", format="csv")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        sunzi.Matrix.load(tmp_path / "nowhere", format="csv", precision=60)
    seen: list[tuple[int, int]] = []
    a.save(tmp_path / "b.csv", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == 9
    with pytest.raises(sunzi.MemoryLimitError):
        sunzi.Matrix.load(tmp_path / "numbers-bin", format="bin", context=sunzi.Context(threads=1, memory=100))


NUMPY = sorted(name for name in dir(np.linalg) if not name.startswith("_") and name != "test")
ABSENT = [name for name in NUMPY if not hasattr(sunzi, name)]


def test_names_of_numpy_that_are_there() -> None:
    assert set(NUMPY) - set(ABSENT) == {"cholesky", "det", "diagonal", "norm", "solve", "trace"}


@pytest.mark.parametrize("name", [*ABSENT, "lu_factor", "lu_solve", "schur", "array", "linalg", "cho_solve", "expm", "identity", "ones", "einsum"])
def test_names_of_numpy_and_scipy(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}': .{{15}}"):
        getattr(sunzi, name)
    assert not hasattr(sunzi, name)
    for there in re.findall(r"sunzi\.(\w+)", sunzi._absent.absent(name)):
        assert hasattr(sunzi, there), "a hint names what exists"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        sunzi.nonsense  # type: ignore[attr-defined]
