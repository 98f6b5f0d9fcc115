"""What is said of correct digits, against exact solutions of the system as it was given."""

from __future__ import annotations

import copy
import decimal
import math
import os
import pickle
import random
from fractions import Fraction

import flint
import sunzi
from conftest import exact_rows

EFFORT = int(os.environ.get("SUNZI_TEST_EFFORT", "1"))

# As in Rust: fifty times as many cases with the effort of a long run, 20.
SEEDS = 24 * (1 if EFFORT == 1 else 5 * EFFORT // 2)

Rows = list[list[Fraction]]


def hilbert(n: int, rng: random.Random) -> Rows:
    shift = rng.randint(1, 3)
    return [[Fraction(1, i + j + shift) for j in range(n)] for i in range(n)]


def vandermonde(n: int, rng: random.Random) -> Rows:
    shift = rng.randint(1, 3)
    nodes = [Fraction(k + shift, n + 3) for k in range(n + 2)]
    return [[sum((x ** (i + j) for x in nodes), Fraction(0)) for j in range(n)] for i in range(n)]


def moments(n: int, rng: random.Random) -> Rows:
    shift = rng.randint(1, 3)
    return [[Fraction(math.factorial(i + j + shift)) for j in range(n)] for i in range(n)]


def differences(n: int, rng: random.Random) -> Rows:
    rows = [[Fraction({0: 2, 1: -1}.get(abs(i - j), 0)) for j in range(n)] for i in range(n)]
    rows[0][0] = Fraction(1)
    rows[-1][-1] = 1 + Fraction(1, 2 ** rng.randint(4, 300))
    return rows


def deficient(n: int, rng: random.Random) -> Rows:
    g = [[rng.randint(-9, 9) for _ in range(n)] for _ in range(rng.randint(1, n - 1))]
    tiny = Fraction(1, 2 ** rng.randint(4, 300))
    return [[sum(row[i] * row[j] for row in g) + tiny * (i == j) for j in range(n)] for i in range(n)]


def autoregressive(n: int, rng: random.Random) -> Rows:
    near = 1 - Fraction(1, 2 ** rng.randint(4, 300))
    return [[near ** abs(i - j) for j in range(n)] for i in range(n)]


FAMILIES = [hilbert, vandermonde, moments, differences, deficient, autoregressive]


def as_given(form: str, value: Fraction) -> tuple[object, Fraction]:
    """A number as a caller has it, and what it is exactly."""
    if form == "text":
        return f"{value.numerator}/{value.denominator}", value
    if form == "float":
        return float(value), Fraction(float(value))
    if form == "decimal":
        with decimal.localcontext(prec=60):
            number = decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)
        return number, Fraction(number)
    return value, value


def given(form: str, rows: Rows) -> tuple[list[list[object]], Rows]:
    pairs = [[as_given(form, value) for value in row] for row in rows]
    return [[pair[0] for pair in row] for row in pairs], [[pair[1] for pair in row] for row in pairs]


def solved(a: Rows, b: Rows) -> Rows | None:
    to_flint = lambda rows: flint.fmpq_mat(
        len(rows), len(rows[0]), [flint.fmpq(x.numerator, x.denominator) for row in rows for x in row]
    )
    try:
        x = to_flint(a).solve(to_flint(b))
    except ZeroDivisionError:
        return None
    return [[Fraction(int(x[i, j].p), int(x[i, j].q)) for j in range(len(b[0]))] for i in range(len(a))]


def log10(value: Fraction) -> float:
    """Of a positive number, whatever its size."""
    return math.log10(value.numerator) - math.log10(value.denominator)


def right_digits(got: Rows, exact: Rows, by_columns: bool) -> float:
    cols = range(len(exact[0]))
    worst = math.inf
    for group in [[col] for col in cols] if by_columns else [list(cols)]:
        pairs = [(got[i][j], exact[i][j]) for i in range(len(exact)) for j in group]
        error = max(abs(x - y) for x, y in pairs)
        if error != 0:
            worst = min(worst, -log10(error / max(abs(y) for _, y in pairs)))
    return worst


class Tally:
    """Digits that were stated and proven, counted beside those that are right."""

    def __init__(self) -> None:
        self.answers = self.above = self.below = self.loose = 0

    def note(self, label: str, precision: int, stated: float, proven: float, truth: float) -> None:
        # The logarithm of the truth is rounded here.
        assert proven <= max(truth, 0.0) + 1e-12, f"{label}: {proven} digits proven, {truth} right"
        self.answers += 1
        self.above += stated > max(truth, 0.0) + 1
        # None need be stated that the precision does not give.
        truth = min(max(truth, 0.0), precision * math.log10(2))
        self.below += stated < truth - 2
        self.loose += proven < truth - 3

    def check(self) -> None:
        counts = vars(self)
        print(counts)
        assert 1000 * self.above <= max(self.answers, 999), counts
        assert 10 * self.below <= self.answers, counts
        assert 10 * self.loose <= self.answers, counts


def test_digits_are_those_of_the_numbers_as_given() -> None:
    solutions, inverses, reports = Tally(), Tally(), Tally()
    context = sunzi.Context(threads=1)
    for seed in range(SEEDS):
        for index, family in enumerate(FAMILIES):
            rng = random.Random(6 * seed + index)
            n = rng.randint(2, 9)
            form = rng.choice(["fraction", "text", "decimal", "float"])
            a, exact_a = given(form, family(n, rng))
            cols = rng.choice([1, 1, 4, 9])
            right = [[Fraction(rng.randint(-1000, 1000), rng.randint(1, 30)) for _ in range(cols)] for _ in range(n)]
            b, exact_b = given(form, right)
            precision = rng.randint(30, 450)
            label = f"{family.__name__}, seed {seed}, {form}, {n} rows, {cols} columns, {precision} bits"
            report: dict[str, object] = {}
            try:
                factor = sunzi.Cholesky(a, precision=precision, context=context)
                x = sunzi.solve(a, b, precision=precision, context=context, report=report)
            except sunzi.NotPositiveDefiniteError:
                continue
            # The caller's numbers, not their roundings, are what is judged; of matrices that doubles make singular, which
            # roundings give a factor, no digit is right.
            exact = solved(exact_a, exact_b)
            truth = right_digits(exact_rows(x), exact, True) if exact else 0.0
            stated = factor.solution_digits(a, b, x, context=context)
            proven = factor.solution_digits(a, b, x, certified=True, context=context)
            solutions.note(label, precision, stated, proven, truth)
            digits = report["digits"]
            assert isinstance(digits, float)
            reports.note(label, precision, digits, proven, truth)
            inverse = factor.inverse(context=context)
            identity = [[Fraction(i == j) for j in range(n)] for i in range(n)]
            exact = solved(exact_a, identity)
            truth = right_digits(exact_rows(sunzi.Matrix(inverse, numbers="fraction")), exact, False) if exact else 0.0
            stated = factor.inverse_digits(a, inverse, context=context)
            proven = factor.inverse_digits(a, inverse, certified=True, context=context)
            inverses.note(f"{label}, inverse", precision, stated, proven, truth)
    for tally in [solutions, inverses, reports]:
        assert tally.answers > 4 * SEEDS
        tally.check()


def is_positive(rows: Rows, shift: Fraction) -> bool:
    """Whether `A - shift I` is positive definite: exact elimination."""
    a = [[x - shift * (i == j) for j, x in enumerate(row)] for i, row in enumerate(rows)]
    for k, pivot_row in enumerate(a):
        if pivot_row[k] <= 0:
            return False
        for row in a[k + 1 :]:
            factor = row[k] / pivot_row[k]
            for j in range(k, len(a)):
                row[j] -= factor * pivot_row[j]
    return True


def test_intervals_hold_the_least_eigenvalue_of_the_numbers_as_given() -> None:
    tiny = Fraction(1, 2**4000)
    for seed in range(SEEDS):
        rng = random.Random(seed)
        rows = rng.choice(FAMILIES)(rng.randint(2, 7), rng)
        form = rng.choice(["fraction", "matrix"])
        bits = rng.choice([20, 32, 53, 120, 250])
        a = rows if form == "fraction" else sunzi.Matrix(rows, precision=rng.choice([53, 150]))
        low, high = sunzi.extreme_eigenvalue(a, precision=bits)
        assert is_positive(rows, low - tiny), (seed, form, bits)
        assert not is_positive(rows, high + tiny), (seed, form, bits)
    low, high = sunzi.extreme_eigenvalue([["0.1"]])
    assert low <= Fraction(1, 10) <= high and high - low < Fraction(1, 10**9)


def test_copies_and_multiples_remember_what_was_rounded() -> None:
    rows = [[Fraction(1, i + j + 1) for j in range(12)] for i in range(12)]
    m = sunzi.Matrix(rows, precision=150)
    same = {
        "itself": m,
        "copy": m.copy(),
        "deepcopy": copy.deepcopy(m),
        "pickle": pickle.loads(pickle.dumps(m)),
        "more bits": sunzi.Matrix(m, precision=400),
        "below": sunzi.vstack([m[:5], m[5:]]),
        "beside": sunzi.hstack([m[:, :5], m[:, 5:]]),
        "signs": -(-m),
        "product": m * 1,
        "quotient": (m / 3) * 3,
    }
    b = [[Fraction(1)]] * 12
    exact = solved(rows, b)
    assert exact is not None
    for name, a in same.items():
        report = sunzi.Report()
        found = exact_rows(sunzi.solve(a, b, precision=400, certified=True, report=report))
        truth = right_digits(found, exact, True)
        assert report["certified"] <= truth + 1e-12, (name, report["certified"], truth)
        assert report["certified"] > 20, name


def test_a_report_has_the_figures_of_one_call() -> None:
    report = sunzi.Report()
    a, b = [[4, 2], [2, 10]], [8, 13]
    sunzi.solve(a, b, precision=100, certified=True, report=report)
    assert report["certified"] > 20
    sunzi.solve(a, b, precision=100, report=report)
    assert "certified" not in report
